//! Files and names of a disk cache on the local file system: where they are, how they are opened, locked and replaced.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use afs_own::Opening;

use crate::cache::worker::lacks_descriptors;

/// Opens a file; once more after `close_others`, if the process has as many open as it may.
pub(super) fn with_descriptor<T>(
    open: impl Fn() -> io::Result<T>,
    close_others: impl FnOnce(),
) -> io::Result<T> {
    match open() {
        Err(error) if lacks_descriptors(&error) => {
            close_others();
            open()
        }
        opened => opened,
    }
}

/// An error of the system with the file or directory that it is of.
pub(super) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The lock of a cache's directory.
///
/// # Errors
/// Another process has it, or the system refuses.
pub(super) fn take_lock(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let file = Opening::write().or_make().open(path).map_err(named(path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let text = format!(
                "the cache in {} is in use by another process",
                path.parent().unwrap_or(path).display()
            );
            Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
        }
        Err(error) => Err(error.into()),
    }
}

/// Files that are made one after the other are in the same directory: a local file system then finds room for them in one place. In a
/// directory each, a file system such as ext4 searches another group of inodes for each of them.
pub(super) fn path_of(dir: &Path, id: u64) -> PathBuf {
    dir.join("data").join(format!("{:02x}", id >> 8 & 0xff)).join(format!("{id:x}"))
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces a file, whose contents are flushed.
pub(super) fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = Opening::write().or_make().open_emptied(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// Replaces a file of the cache, whose name is flushed as well.
pub(super) fn replace_durably(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    write_synced(&dir.join(name), bytes)?;
    fs::File::open(dir)?.sync_all()
}
