//! Flags of open(2) and access(2).

/// Flags with which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Every write goes to the end of the file, as known on this machine.
    pub append: bool,
    /// Truncate to length 0 at open; stored with the data at close.
    pub truncate: bool,
    /// The caller can let the kernel read and write the cache file itself. If false, [`crate::Opened::backing`] is
    /// `None`.
    pub passthrough: bool,
    /// To be run as a program: it is open for that as long as a process runs it.
    pub execute: bool,
}

impl OpenFlags {
    /// Reading only.
    pub const READ: OpenFlags = OpenFlags {
        read: true,
        write: false,
        append: false,
        truncate: false,
        passthrough: false,
        execute: false,
    };
    /// Writing only.
    pub const WRITE: OpenFlags = OpenFlags {
        read: false,
        write: true,
        append: false,
        truncate: false,
        passthrough: false,
        execute: false,
    };
    /// Reading and writing.
    pub const READ_WRITE: OpenFlags = OpenFlags {
        read: true,
        write: true,
        append: false,
        truncate: false,
        passthrough: false,
        execute: false,
    };
}

/// Permissions that access(2) checks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// Read a file, list a directory.
    pub read: bool,
    /// Write a file, change a directory.
    pub write: bool,
    /// Execute a file, search a directory.
    pub execute: bool,
}
