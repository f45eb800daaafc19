//! `andrew fs flush` and `andrew fs flushvolume`: drop cached data.

use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;

/// Options of `andrew fs flush`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Dirty data is never dropped.\n\nExamples:\n  andrew fs flush ~/afs/readme")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

/// Options of `andrew fs flushvolume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Dirty data is never dropped.\n\nExamples:\n  andrew fs flushvolume ~/afs/projects")]
pub struct VolumeArgs {
    #[command(flatten)]
    paths: Paths,
}

impl Args {
    /// Drops the cached status and data of the paths.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self) -> CommandResult {
        flush(self.paths, b"file")
    }
}

impl VolumeArgs {
    /// Drops the cached status and data of the volumes that hold the paths.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self) -> CommandResult {
        flush(self.paths, b"volume")
    }
}

fn flush(paths: Paths, what: &[u8]) -> CommandResult {
    paths.all().iter().try_for_each(|path| attribute::set(path, "afs.flush", what))
}
