//! Open files.

use std::fs::File;
use std::sync::Arc;

/// An open file, until [`crate::Venus::release`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandleId(pub u64);

/// The cache file behind an open file, for a kernel that can read and write it directly.
#[derive(Clone, Debug)]
pub struct Backing {
    /// Open for reading and writing. It holds the whole file.
    pub file: Arc<File>,
    /// The same number for as long as it is the same cache file; another version of the data is another file
    /// with another number.
    pub id: u64,
}

/// The answer to an open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// To be used for reads, writes, flush, fsync, and released in the end.
    pub handle: HandleId,
    /// The pages which the kernel holds of this file are still true.
    pub keep_cache: bool,
    /// A number of the data that was opened: handles that have another one of the same file open read another version, and
    /// must not share the kernel's pages with this one.
    pub data: u64,
    /// The complete cache file, where passthrough was asked for and is possible. Whoever does not use it says so
    /// with [`crate::Venus::passthrough_refused`] before the first write.
    pub backing: Option<Backing>,
}

/// The answer to opening a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedDir {
    /// What is read through it may go into the listing that the kernel keeps, and come from there. To be given back with
    /// [`crate::Venus::closedir`].
    pub caches: bool,
    /// The listing which the kernel keeps of this directory is still true.
    pub keep_cache: bool,
}
