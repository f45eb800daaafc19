//! Write and read of one file, block by block, with the time of each.

use super::pattern::{BLOCK_LEN, Pattern};
use super::usage::{Stopwatch, Taken};
use crate::close::close;
use crate::error::{Context, LabError};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// A file to store and fetch.
#[derive(Clone, Copy)]
pub(super) struct Contents<'a> {
    pub(super) pattern: &'a Pattern,
    /// Number by which its bytes differ from those of other files.
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// Called after each block with its length; its error ends the transfer.
pub(super) type Tick<'a> = &'a dyn Fn(u64) -> Result<(), LabError>;

/// Creates, writes and closes a file. A file system that stores on close has stored it then.
pub(super) fn store(path: &Path, contents: Contents<'_>, tick: Tick<'_>) -> Result<Taken, LabError> {
    let stopwatch = Stopwatch::start();
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).during("create", path)?;
    let mut position = 0;
    while position < contents.bytes {
        let length = (contents.bytes - position).min(BLOCK_LEN as u64);
        let block = contents.pattern.at(contents.number, position, length as usize);
        file.write_all(block).during("write", path)?;
        position += length;
        tick(length)?;
    }
    close(file.into_raw_fd()).during("close", path)?;
    Ok(stopwatch.read())
}

/// Opens, reads, compares and closes a file.
pub(super) fn fetch(
    path: &Path,
    contents: Contents<'_>,
    buffer: &mut [u8],
    tick: Tick<'_>,
) -> Result<Taken, LabError> {
    let stopwatch = Stopwatch::start();
    let mut file = File::open(path).during("open", path)?;
    let mut position = 0;
    loop {
        let length = file.read(buffer).during("read", path)?;
        if length == 0 {
            break;
        }
        if let Some(at) = contents.pattern.difference(contents.number, position, &buffer[..length]) {
            return Err(LabError::WrongData { path: path.to_owned(), position: position + at as u64 });
        }
        position += length as u64;
        tick(length as u64)?;
    }
    if position != contents.bytes {
        return Err(LabError::WrongLength { path: path.to_owned(), got: position, want: contents.bytes });
    }
    drop(file);
    Ok(stopwatch.read())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};

    #[test]
    fn what_comes_back_is_compared_to_the_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        let (path, pattern) = (folder.path().join("file"), Pattern::new());
        let contents = Contents { pattern: &pattern, number: 5, bytes: (3 << 20) + 1 };
        let fetched = |number| {
            fetch(&path, Contents { number, ..contents }, &mut vec![0; BLOCK_LEN], &|_| Ok(()))
                .map_err(|error| error.to_string())
        };
        store(&path, contents, &|_| Ok(())).unwrap();
        assert!(fetched(5).is_ok());
        assert!(fetched(6).unwrap_err().starts_with("byte 0 of "));
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(3 << 20)).unwrap();
        let last = pattern.at(5, 3 << 20, 1)[0];
        file.write_all(&[!last]).unwrap();
        assert!(fetched(5).unwrap_err().starts_with("byte 3145728 of "));
        file.set_len(3 << 20).unwrap();
        assert!(fetched(5).unwrap_err().contains("was read back with 3145728 bytes"));
    }

    #[test]
    fn the_caller_can_end_a_transfer() {
        let folder = tempfile::tempdir().unwrap();
        let (path, pattern) = (folder.path().join("file"), Pattern::new());
        let contents = Contents { pattern: &pattern, number: 0, bytes: 2 << 20 };
        let stopped = store(&path, contents, &|_| Err(LabError::Stopped));
        assert!(matches!(stopped, Err(LabError::Stopped)));
        assert_eq!(path.metadata().unwrap().len(), 1 << 20);
    }
}
