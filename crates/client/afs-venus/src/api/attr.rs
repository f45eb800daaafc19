//! Attributes of a node, and changes to them.

use afs_wire::ids::{DataVersion, Fid, FileTime, Mode, ViceId};

use crate::api::NodeId;

/// Type of an object. A mount point appears as a directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// Attributes, valid until the [`crate::InvalidationSink`] reports otherwise: a caller may cache them without a time
/// limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attr {
    /// The object.
    pub node: NodeId,
    /// Its fid; of a synthetic directory, all zeros.
    pub fid: Fid,
    /// Its type.
    pub kind: Kind,
    /// Length in bytes; of a file open for writing here, including data not yet stored.
    pub size: u64,
    /// Bytes outside of holes. Ranges that are not cached count in full, because the server does not report their
    /// holes.
    pub data_bytes: u64,
    /// The permission bits, 12 of them, without the kind.
    pub mode: Mode,
    /// Links: names of a file; 2 + subdirectories of a directory.
    pub nlink: u32,
    /// Owner, a Vice id of its cell; shown as a uid.
    pub owner: ViceId,
    /// Whether it is in the home cell: only then the owner is a user of that cell.
    pub is_home: bool,
    /// Group, not interpreted by AFS.
    pub group: u32,
    /// Modification time of the data: the only time that AFS lets a user set. In whole seconds, unless the servers are ours.
    pub mtime: FileTime,
    /// Time of the last change at the server.
    pub ctime: FileTime,
    /// Version of the data to which `size` belongs.
    pub data_version: DataVersion,
    /// True if every user of this machine may see these attributes. Otherwise a cache of the caller must ask for each
    /// user separately.
    pub is_public: bool,
    /// True if `size`, the times and `data_version` are those of a version that is open here, while the server has a newer one. A cache
    /// of the caller must ask each time.
    pub is_older: bool,
}

/// Attributes of a file, as those who have it open see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenAttr {
    /// The attributes. Their size is that of the data which the handle reads.
    pub attr: Attr,
    /// Whether a new open gets the same data.
    pub is_current: bool,
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewTime {
    /// The present, by this machine's clock.
    Now,
    /// A given time.
    At(FileTime),
}

/// Changes to attributes; `None` leaves an attribute unchanged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<Mode>,
    /// Owner: administrators only.
    pub owner: Option<ViceId>,
    /// Group: administrators only.
    pub group: Option<u32>,
    /// New length. Set through a handle open for writing, it is stored when the handle is closed; otherwise at once.
    pub size: Option<u64>,
    /// New modification time. Of a file with dirty data it is stored together with the data.
    pub mtime: Option<NewTime>,
}
