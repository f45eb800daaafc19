//! The trait of a directory of segment files: of an operating system, or of a test that simulates power failures.

use std::io;

use crate::drive::Usage;

/// A directory that one drive uses exclusively.
///
/// Its guarantees: the existence of a file is durable when [`Folder::sync`] has returned, and its data when
/// [`FolderFile::sync`] has; neither implies the other. Until then a power failure may lose either, also of a file
/// that can be seen, and may bring back a removed one.
pub trait Folder: Send + Sync + 'static {
    /// An open file.
    type File: FolderFile;

    /// Opens an existing file; `NotFound` if there is none.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file, and creates it if it does not exist.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// A file's name for an administrator, who has to find it.
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The names of all files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Removes a file; `NotFound` if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when the existence and removal of files is durable.
    fn sync(&self) -> io::Result<()>;

    /// Free and total space on the medium.
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
