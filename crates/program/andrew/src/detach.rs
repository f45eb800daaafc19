//! Background process: the program starts itself again and waits until the new process is ready.
//!
//! The child's standard output is a pipe to the parent. The child writes one line of JSON to it when it is ready or has
//! failed, and then closes it. Its standard error is the log, which it sets aside itself when it is full.

use crate::error::{CommandError, CommandResult};
use crate::log;
use afs_net::threads::refused;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The option that makes a process the child; not for users.
pub const CHILD_OPTION: &str = "detached-child";

/// Longest line read, in bytes.
const REPORT_LEN_MAX: u64 = 64 * 1024;

/// Message of the child to the parent.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
enum StartReport {
    /// The child runs; the value is the command's output.
    Ready(serde_json::Value),
    /// The child failed, with this status and message.
    Failed(u8, String),
}

/// Starts this program again in the background with the same arguments and waits for its message. Returns the output of
/// the child.
///
/// # Errors
/// The child's error, or it ended without a message; the log has the reason.
pub fn start(file: &Path) -> CommandResult<serde_json::Value> {
    let failed = |e: std::io::Error| CommandError::failed(format!("cannot run in the background: {e}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    arguments.push(format!("--{CHILD_OPTION}").into());
    let errors = log::file(file).to_give().map_err(failed)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|error| CommandError::failed(refused("the process in the background", &error)))?;
    let mut line = String::new();
    if let Some(report) = child.stdout.take() {
        BufReader::new(report.take(REPORT_LEN_MAX)).read_line(&mut line).map_err(failed)?;
    }
    match serde_json::from_str(&line) {
        Ok(StartReport::Ready(answer)) => Ok(answer),
        Ok(StartReport::Failed(status, message)) => Err(CommandError { status, message }),
        Err(_) => Err(CommandError::failed(format!(
            "the process in the background ended early; see {}",
            file.display()
        ))),
    }
}

/// The child's side.
pub struct Child(());

impl Child {
    /// Leaves the terminal's session, so that closing the terminal does not end this process.
    ///
    /// # Errors
    /// The system refuses.
    pub fn begin() -> CommandResult<Self> {
        rustix::process::setsid().map_err(|e| {
            CommandError::failed(format!("cannot detach from the terminal: {}", std::io::Error::from(e)))
        })?;
        Ok(Self(()))
    }

    /// Reports to the parent that the child runs.
    ///
    /// # Errors
    /// Standard output cannot be closed.
    pub fn ready(self, answer: &impl Serialize) -> CommandResult {
        let value = serde_json::to_value(answer).map_err(CommandError::failed)?;
        // The start directory may be one that is to be unmounted. Until here, paths on the command line are relative to
        // it.
        let _ = std::env::set_current_dir("/");
        send(&StartReport::Ready(value));
        let failed = |e: std::io::Error| CommandError::failed(format!("/dev/null: {e}"));
        let null = File::options().write(true).open("/dev/null").map_err(failed)?;
        rustix::stdio::dup2_stdout(&null).map_err(|e| failed(e.into()))
    }

    /// Reports to the parent that the start failed.
    pub fn failed(self, error: &CommandError) {
        send(&StartReport::Failed(error.status, error.message.clone()));
    }
}

/// A parent that has ended is not an error.
fn send(report: &StartReport) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_one_line() {
        for report in
            [StartReport::Ready(serde_json::json!({"a": "b\nc"})), StartReport::Failed(2, "no\nway".into())]
        {
            let line = serde_json::to_string(&report).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<StartReport>(&line).unwrap(), report);
        }
    }
}
