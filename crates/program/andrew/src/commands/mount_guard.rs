//! Guard of a mount: a process that ends the kernel's connection to the process of the mount when that dies.
//!
//! The kernel ends the connection itself when the last descriptor of the device is closed. A thread of a killed process can keep its descriptors open
//! for ever: the thread waits in the kernel for the lock of a directory, a program holds that lock, and the program waits for a reply of the killed
//! process. The kernel sends the guard a signal when the thread that started the guard ends (PR_SET_PDEATHSIG). A pipe or a pidfd would not report the
//! death, since the waiting thread keeps the process.

use crate::error::{CommandError, CommandResult};
use crate::sys::signals::{STOP, Signals};
use afs_cell::Client;
use afs_cell::connections::abort_by;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The signal of the death. None of those that are sent to all processes of a terminal or a service.
const DEATH: Signal = Signal::USR1;

/// There are none: standard input is the file that aborts the connection, standard output is read by the process of the mount.
#[derive(clap::Args, Debug)]
pub struct Args {}

impl Args {
    /// Waits for the death of the process that started this one, and ends its connection.
    ///
    /// # Errors
    /// The system refuses a call, or that process is dead already, and its connection with it.
    pub fn run(self) -> CommandResult {
        let mut signals = STOP.to_vec();
        signals.push(DEATH.as_raw());
        let signals = Signals::block(&signals).map_err(CommandError::failed)?;
        set_parent_process_death_signal(Some(DEATH)).map_err(CommandError::failed)?;
        let mut ready = io::stdout().lock();
        ready.write_all(b"\n").and_then(|()| ready.flush()).map_err(CommandError::failed)?;
        while signals.wait().map_err(CommandError::failed)? != DEATH.as_raw() {}
        abort_by(io::stdin());
        Ok(())
    }
}

/// Starts the guard of a mount of this process. Call on the thread that lives as long as the process. If the guard cannot be started, the log says why,
/// and the mount works without one: after a kill of this process root may have to end the mount with `umount -f`.
pub(super) fn start(client: &Client) {
    let started = match client.connection() {
        Ok(connection) => connection.abort_file().and_then(spawn),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    };
    if let Err(error) = started {
        tracing::info!(
            "the mount has no guard ({error}): if this process is killed and programs then hang in the mount, root ends it with `umount -f`"
        );
    }
}

/// Starts the process, and waits until it is ready.
fn spawn(abort: std::fs::File) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("andrew").arg("mount-guard").current_dir("/").process_group(0);
    let mut guard = command.stdin(abort).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut ready = [0];
    guard.stdout.take().map_or(Ok(()), |mut told| told.read_exact(&mut ready))
}
