//! A directory of files, as segments need it: that of an operating system, or one of a test that loses power.

use std::io;

use crate::drive::Usage;

/// A directory that one drive has for itself.
///
/// What is assumed of it: that a file is there is durable when [`Folder::sync`] has returned, and what was written to it when
/// [`FolderFile::sync`] has; neither makes the other so. Until then a power cut may lose either, also of a file that can be
/// seen, and may bring back one that was removed.
pub trait Folder: Send + Sync + 'static {
    /// A file of it.
    type File: FolderFile;

    /// Opens a file that is there; `NotFound` where it is not.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file, and makes it where it is not there.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// The names of all files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Removes a file; `NotFound` where it is not there.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when it is durable which files there are.
    fn sync(&self) -> io::Result<()>;

    /// Room on the medium.
    fn usage(&self) -> io::Result<Usage>;
}

/// An open file.
pub trait FolderFile: Send + Sync + 'static {
    /// Length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`; reading past the end is `UnexpectedEof`.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`, growing the file where needed.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Returns when everything written so far is durable.
    fn sync(&self) -> io::Result<()>;

    /// Frees a range; it reads as zeros afterwards, and the length stays.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
}
