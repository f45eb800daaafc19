//! `andrew umount`.

use crate::error::{CommandError, CommandResult};
use crate::mounts;
use std::path::PathBuf;

/// Options of `andrew umount`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A cell that `andrew up` started goes on without its mount; `andrew down` stops it.

Examples:
  andrew umount ~/afs")]
pub struct Args {
    /// The mounted directory
    dir: PathBuf,
    /// Take it out of sight even while files in it are open
    #[arg(long)]
    lazy: bool,
}

impl Args {
    /// Unmounts.
    ///
    /// # Errors
    /// Nothing of ours is mounted there, or it is in use.
    pub fn run(self, _json: bool) -> CommandResult {
        let directory = mounts::absolute(&self.dir)?;
        let shown = directory.display();
        if !mounts::list()?.iter().any(|m| m.directory == directory) {
            return Err(CommandError::usage(format!(
                "{shown} is not a mount of andrew; `andrew status` shows those there are"
            )));
        }
        afs_fuse::unmount(&directory, self.lazy).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => CommandError::failed(format!(
                "{shown} is in use; close the files and leave the directories in it, or say --lazy"
            )),
            _ => CommandError::failed(format!("cannot unmount {shown}: {error}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_mount_is_refused() {
        let error = Args { dir: "/proc".into(), lazy: false }.run(false).unwrap_err();
        assert_eq!(error.status, CommandError::USAGE);
        assert_eq!(error.message, "/proc is not a mount of andrew; `andrew status` shows those there are");
    }
}
