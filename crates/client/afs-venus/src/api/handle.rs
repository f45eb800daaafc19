//! Handles of open files and directories.

use std::fs::File;
use std::sync::Arc;

/// Handle of an open file, valid until [`crate::Venus::release`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandleId(pub u64);

/// The cache file behind an open file, for a kernel that can read and write it directly.
#[derive(Clone, Debug)]
pub struct Backing {
    /// Open for reading and writing. Holds the whole file.
    pub file: Arc<File>,
    /// Number of the cache file. Another version of the data has another file and another number.
    pub id: u64,
}

/// Reply to an open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Handle for reads, writes, flush and fsync; to be released.
    pub handle: HandleId,
    /// True if the pages that the kernel holds of this file are still valid.
    pub keep_cache: bool,
    /// Number of the data that was opened. Handles of the same file with different numbers read different versions and
    /// must not share pages of the kernel.
    pub data: u64,
    /// The complete cache file, if passthrough was requested and is possible. A caller that does not use it calls
    /// [`crate::Venus::passthrough_refused`] before the first write.
    pub backing: Option<Backing>,
}

/// Reply to opening a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedDir {
    /// True if names read through this handle may enter the listing that the kernel caches, and come from it. Then the
    /// caller must call [`crate::Venus::closedir`].
    pub caches: bool,
    /// True if the listing that the kernel caches of this directory is still valid.
    pub keep_cache: bool,
}
