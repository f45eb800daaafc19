//! Daemon: a command that runs until a signal stops it, in the foreground or the background.

use crate::detach::{self, Child};
use crate::error::{CommandError, CommandResult};
use crate::log;
use crate::output;
use crate::sys::signals::{STOP, Signals};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::path::Path;

/// Options of every such command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct DaemonOptions {
    /// Continue in the background once everything is ready
    #[arg(long)]
    pub detach: bool,
    /// The background's side of --detach
    #[arg(long = detach::CHILD_OPTION, hide = true, requires = "detach")]
    child: bool,
}

impl DaemonOptions {
    /// Whether this is the background process, started by another one.
    #[must_use]
    pub fn is_child(self) -> bool {
        self.child
    }
}

/// A program that runs until it is stopped.
pub trait Daemon {
    /// Output once it runs.
    type Output: Serialize + DeserializeOwned + Display;

    /// The output. Does not wait.
    fn output(&self) -> Self::Output;

    /// Stops in an orderly way.
    ///
    /// # Errors
    /// What could not be completed.
    fn stop(self) -> CommandResult;
}

/// Starts the daemon, prints its output, and runs until a signal; with `--detach` in the background, with its log in `file`.
///
/// # Errors
/// Those of `start` and of the stop.
pub fn run<D: Daemon>(
    options: DaemonOptions,
    json: bool,
    file: &Path,
    start: impl FnOnce() -> CommandResult<D>,
) -> CommandResult {
    if options.detach && !options.child {
        let output = detach::start(file)?;
        let output: D::Output = serde_json::from_value(output).map_err(CommandError::failed)?;
        output::show(json, &output);
        return Ok(());
    }
    let child = if options.child { Some(Child::begin()?) } else { None };
    // Messages of the FUSE binding also come as an error of the command, or do not matter.
    let _log = match options.child {
        true => log::into_file("info,fuser=error", file),
        false => log::to_standard_error("warn,fuser=off"),
    };
    end_at_panics();
    allow_many_files();
    let signals =
        Signals::block(&STOP).map_err(|e| CommandError::failed(format!("cannot wait for signals: {e}")))?;
    let daemon = match (start(), &child) {
        (Ok(daemon), _) => daemon,
        (Err(error), None) => return Err(error),
        (Err(error), Some(_)) => {
            if let Some(child) = child {
                child.failed(&error);
            }
            return Err(error);
        }
    };
    match child {
        Some(child) => child.ready(&daemon.output())?,
        None => output::show(json, &daemon.output()),
    }
    let signal = stop_signal(&signals, options.child)?;
    tracing::info!("signal {signal}: stopping");
    daemon.stop()
}

/// Waits for a signal that stops the daemon. SIGHUP stops one in the foreground, whose terminal is closed; what runs in the background
/// has no terminal, and to administrators the signal is an order to read options again.
fn stop_signal(signals: &Signals, is_in_background: bool) -> CommandResult<i32> {
    loop {
        let signal = signals.wait();
        let signal = signal.map_err(|e| CommandError::failed(format!("cannot wait for signals: {e}")))?;
        if signal != libc::SIGHUP || !is_in_background {
            return Ok(signal);
        }
        tracing::warn!(
            "signal {signal}: ignored; options are read at the start, and SIGTERM stops this process"
        );
    }
}

/// Raises the limit of open files to its maximum: every file open in a mount is a cache file open here, and the usual
/// limit of 1024 exists for programs that use select(2).
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// A panic of any thread ends the process, whatever it was built for: who supervises it starts it again. With a thread less it would
/// seem to work.
fn end_at_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// Ends a [`run`] of this process as a signal would: for a daemon that ended by itself.
pub fn stop_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
}
