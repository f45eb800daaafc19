//! `andrew umount`: unmounts a directory.

use crate::error::{CommandError, CommandResult};
use crate::open_files;
use afs_cell::mounts::{self, Mount};
use afs_cell::process::Process;
use afs_cell::tokens::{MountLocation, Mounts, known_cells};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `andrew umount`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A cell that `andrew up` started continues without its mount; `andrew down` stops it.

Examples:
  andrew umount ~/afs")]
pub struct Args {
    /// The mounted directory
    dir: PathBuf,
    /// Detach the mount even while files in it are open
    #[arg(long)]
    lazy: bool,
    /// Seconds to wait for the mount's process to store dirty data and end
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

impl Args {
    /// Unmounts.
    ///
    /// # Errors
    /// The directory is not a mount of Andrew's, it is in use, or its process does not end in time.
    pub fn run(self, _json: bool) -> CommandResult {
        let directory = mounts::absolute(&self.dir)?;
        let shown = directory.display();
        let Some(mount) = mounts::list()?.into_iter().rev().find(|m| m.directory == directory) else {
            return Err(CommandError::usage(format!(
                "{shown} is not a mount of andrew; `andrew status` shows those there are"
            )));
        };
        let process = process(&mount)?;
        if process.is_none() && !self.lazy {
            refuse_stopped(&directory)?;
        }
        afs_fuse::unmount(&directory, self.lazy).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => CommandError::failed(format!(
                "{shown} is in use{}; close the files and leave the directories in it, or give --lazy",
                in_use(&directory)
            )),
            _ => CommandError::failed(format!("cannot unmount {shown}: {error}")),
        })?;
        match process {
            // With --lazy the process continues as long as files are open.
            Some((pid, process)) if !self.lazy => self.wait(&mount, pid, &process),
            _ => Ok(()),
        }
    }

    /// Waits until the mount's process has stored dirty data and ended.
    fn wait(&self, mount: &Mount, pid: u32, process: &Process) -> CommandResult {
        let shown = mount.directory.display();
        let failed = |e: std::io::Error| CommandError::failed(format!("cannot wait for process {pid}: {e}"));
        if process.ended_within(PROMPT).map_err(failed)? {
            return Ok(());
        }
        let goes_on = format!("{shown} is unmounted here, but its process {pid} still runs");
        let others = mounts::holders(&mount.device);
        if let [(other, name), ..] = others.as_slice() {
            return Err(CommandError::failed(format!(
                "{goes_on}: process {other} ({name}) has it in another mount namespace; it ends with that, or `kill {pid}` ends it"
            )));
        }
        if process.ended_within(Duration::from_secs(self.wait)).map_err(failed)? {
            return Ok(());
        }
        Err(CommandError::failed(format!(
            "{goes_on} after {} s: it stores what is unsaved, or another mount namespace has the mount; `kill {pid}` ends it",
            self.wait
        )))
    }
}

/// Processes that use the mount, as far as this user may know.
fn in_use(directory: &Path) -> String {
    let uses = open_files::of(directory);
    if uses.is_empty() { String::new() } else { format!(": {}", open_files::Shown(&uses)) }
}

/// Time within which a process without dirty data ends.
const PROMPT: Duration = Duration::from_secs(2);

/// The process of a mount, if it ends with the mount and is known to this user.
fn process(mount: &Mount) -> CommandResult<Option<(u32, Process)>> {
    let is_it = |place: &MountLocation| place.device == mount.device && !place.serves;
    let Some(place) = known_cells().into_iter().filter_map(|cell| cell.mount).find(is_it) else {
        return Ok(None);
    };
    let process = Process::open(place.pid)
        .map_err(|e| CommandError::failed(format!("cannot wait for process {}: {e}", place.pid)))?;
    Ok(process.map(|process| (place.pid, process)))
}

/// If no running process answers for the mount, a stopped one (SIGSTOP) may own it. While it is stopped, it cannot store unsaved data.
fn refuse_stopped(directory: &Path) -> CommandResult {
    let stopped = Mounts::running().stopped();
    let Some(pid) = stopped.first() else { return Ok(()) };
    let all = stopped.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    Err(CommandError::failed(format!(
        "the process of {} does not reply, and process {pid} of a mount is stopped: it stores nothing that is unsaved; `kill -CONT {all}` continues it, or --lazy unmounts without it",
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_mount_is_refused() {
        let error = Args { dir: "/proc".into(), lazy: false, wait: 1 }.run(false).unwrap_err();
        assert_eq!(error.status, CommandError::USAGE);
        assert_eq!(error.message, "/proc is not a mount of andrew; `andrew status` shows those there are");
    }
}
