//! How something is opened, and what may be done with it.

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Every write goes to the end, as this machine knows it.
    pub append: bool,
    /// Cut to nothing first; travels with the store at close.
    pub truncate: bool,
    /// The caller could let the kernel read and write the cache file itself. Without it
    /// [`crate::Opened::backing`] is always `None`.
    pub passthrough: bool,
}

impl OpenFlags {
    /// For reading only.
    pub const READ: OpenFlags =
        OpenFlags { read: true, write: false, append: false, truncate: false, passthrough: false };
    /// For writing only.
    pub const WRITE: OpenFlags =
        OpenFlags { read: false, write: true, append: false, truncate: false, passthrough: false };
    /// For both.
    pub const READ_WRITE: OpenFlags =
        OpenFlags { read: true, write: true, append: false, truncate: false, passthrough: false };
}

/// What access(2) asks about.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// Read a file, list a directory.
    pub read: bool,
    /// Write a file, change a directory.
    pub write: bool,
    /// Execute a file, search a directory.
    pub execute: bool,
}
