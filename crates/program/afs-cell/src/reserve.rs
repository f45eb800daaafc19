//! Reserve: a file whose space a start gives up on a full disk, so that servers and mounts start there and files can be removed.

use afs_own::Opening;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file in a state directory, a partition or a cache.
const NAME: &str = "reserve";
/// Its size, in bytes. An index and a log write a few hundred KiB when they are opened.
const BYTES: u64 = 8 << 20;
/// With less room than this, in bytes, a disk counts as full.
const FULL: u64 = 2 << 20;
/// A reserve is made where it takes no more than this share of the room.
const SHARE: u64 = 16;

/// The reserves of some directories.
pub(crate) struct Reserves(Vec<PathBuf>);

impl Reserves {
    /// Before anything in the directories is opened: where a disk is full, its reserve is given up.
    pub(crate) fn before_start(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        let all: Vec<PathBuf> = directories.into_iter().collect();
        for directory in all.iter().filter(|directory| room(directory).is_ok_and(|room| room < FULL)) {
            if fs::remove_file(directory.join(NAME)).is_ok() {
                let shown = directory.display();
                tracing::warn!(
                    "the disk of {shown} is full: {BYTES} bytes that were kept for this start are given up; remove files"
                );
            }
        }
        Self(all)
    }

    /// When all is open: makes the reserves that are missing, where there is room for much more, except in some of the directories.
    pub(crate) fn keep(&self, left_alone: &[PathBuf]) {
        for directory in self.0.iter().filter(|directory| !left_alone.contains(directory)) {
            if let Err(error) = keep(directory) {
                tracing::debug!(%error, directory = %directory.display(), "no reserve can be kept");
            }
        }
    }
}

fn room(directory: &Path) -> io::Result<u64> {
    let disk = statvfs(directory)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn keep(directory: &Path) -> io::Result<()> {
    let path = directory.join(NAME);
    if path.exists() || room(directory)? < SHARE * BYTES {
        return Ok(());
    }
    let file = Opening::write().new_file().open(&path)?;
    fallocate(&file, FallocateFlags::empty(), 0, BYTES).map_err(|error| {
        // It would keep nothing.
        let _ = fs::remove_file(&path);
        error.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_made_once_and_stays_while_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let reserves = || Reserves::before_start([dir.path().to_owned(), dir.path().join("none")]);
        reserves().keep(&[]);
        let path = dir.path().join(NAME);
        let made = room(dir.path()).unwrap() >= SHARE * BYTES;
        assert_eq!(fs::metadata(&path).ok().map(|file| file.len()), made.then_some(BYTES));
        reserves().keep(&[]);
        assert_eq!(path.exists(), made);
    }
}
