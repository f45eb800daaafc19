//! Attributes of a node, and changes to them.

use afs_wire::ids::{DataVersion, Fid, Mode, UnixSeconds, ViceId};

use crate::api::NodeId;

/// What an object is. A mount point is a directory, seen from above.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// Attributes, true until the [`crate::InvalidationSink`] says otherwise: a caller may keep them without limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attr {
    /// The object.
    pub node: NodeId,
    /// Its fid; of a synthetic directory, all zeros.
    pub fid: Fid,
    /// What it is.
    pub kind: Kind,
    /// Bytes. Of a file that is open for writing here: as written so far.
    pub size: u64,
    /// Bytes that are not in holes, as far as is known: of what is not in the cache nobody tells, and all counts.
    pub data_bytes: u64,
    /// The permission bits, 12 of them, without the kind.
    pub mode: Mode,
    /// Links: names of a file; 2 + subdirectories of a directory.
    pub nlink: u32,
    /// Owner, a Vice id; shown as a uid.
    pub owner: ViceId,
    /// Group, not interpreted by AFS.
    pub group: u32,
    /// When the data was changed, whole seconds. AFS knows no other time of the user's.
    pub mtime: UnixSeconds,
    /// When the server last changed anything of it.
    pub ctime: UnixSeconds,
    /// The version of the data that `size` belongs to.
    pub data_version: DataVersion,
    /// Everybody on this machine may know these attributes. Otherwise a cache above must ask for each user.
    pub is_public: bool,
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewTime {
    /// The present, by this machine's clock.
    Now,
    /// A given second.
    At(UnixSeconds),
}

/// Changes to attributes; what is `None` stays.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<Mode>,
    /// Owner: administrators only.
    pub owner: Option<ViceId>,
    /// Group: administrators only.
    pub group: Option<u32>,
    /// New length. With a handle that is open for writing it is stored when that is closed; else at once.
    pub size: Option<u64>,
    /// New modification time. Of a file with unsaved data it travels with the data.
    pub mtime: Option<NewTime>,
}
