//! `andrew fs flush`, `flushvolume`, `flushall` and `checkvolumes`: drop what is cached.

use super::attribute;
use super::paths::Paths;
use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::known_cells;
use std::path::PathBuf;

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

/// Options of `andrew fs flushall`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Dirty data is never dropped.\n\nExamples:\n  andrew fs flushall\n  andrew fs flushall ~/afs"
)]
pub struct AllArgs {
    /// Mount points, or paths in mounts [default: all mounts]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Options of `andrew fs checkvolumes`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The next use of a volume asks the cell which one has its name, and where it is. Mounts do so by themselves when a server tells
them that a volume has another name, when it does not have the volume any more, and after ten minutes (names) or two hours (places).

Examples:
  andrew fs checkvolumes")]
pub struct LocationsArgs {
    /// Mount points, or paths in mounts [default: all mounts]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl AllArgs {
    /// Drops all cached statuses and data of the mounts.
    ///
    /// # Errors
    /// The first path that is not in AFS; no mount runs that this user may ask.
    pub fn run(self) -> CommandResult {
        flush_mounts(self.paths, b"all")
    }
}

impl LocationsArgs {
    /// Drops the known names and locations of volumes, in the kernel too.
    ///
    /// # Errors
    /// The first path that is not in AFS; no mount runs that this user may ask.
    pub fn run(self) -> CommandResult {
        flush_mounts(self.paths, b"locations")?;
        println!("All volumeID/name mappings checked.");
        Ok(())
    }
}

fn flush_mounts(mut paths: Vec<PathBuf>, what: &[u8]) -> CommandResult {
    if paths.is_empty() {
        let known = known_cells().into_iter();
        paths = known.filter_map(|cell| cell.mount.map(|mount| mount.directory)).collect();
    }
    if paths.is_empty() {
        return Err(CommandError::failed(
            "fs: no mount runs here that you may ask; `andrew up` or `andrew mount` makes one",
        ));
    }
    paths.iter().try_for_each(|path| {
        attribute::set(path, "afs.flush", what)?;
        attribute::get(path, "afs.settled").map(drop)
    })
}
