//! Nodes: what a caller of Venus holds instead of a fid.

use std::fmt;

use crate::api::{Attr, Kind};

/// An object in the mount, named by 64 bits; it doubles as the inode number.
///
/// A node id is computed from cell and fid, so it is the same after a restart (two fids that would share one
/// number are kept apart, the later takes the next free number). Where a volume is mounted the node is that of
/// the volume's root, as every AFS client reports it (docs/protocol/client.md "2. Name space: /afs").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root of the mount.
    pub const ROOT: NodeId = NodeId(1);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {:#x}", self.0)
    }
}

/// The answer to a look-up or a creation. Every `Entry` handed out counts as one look-up of its node, to be
/// given back with [`crate::Venus::forget`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The object; `attr.node` repeats it.
    pub node: NodeId,
    /// Its attributes.
    pub attr: Attr,
    /// Tells apart two objects that used one node id one after the other (the uniquifier).
    pub generation: u64,
}

/// One name of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Where the listing goes on after this entry: hand it to the next `readdir`. Stable while the entry lives,
    /// since it is the position of a slot that is never moved (docs/protocol/directory.md "3. Algorithms").
    pub next_offset: u64,
    /// The name, bytes, neither empty nor with `/` or NUL. `.` and `..` are among the entries.
    pub name: Vec<u8>,
    /// The inode number. For a mount point that has not been crossed it is the mount point's own.
    pub ino: NodeId,
    /// The kind where it is known without asking a server. A mount point is [`Kind::Directory`].
    pub kind: Option<Kind>,
}

/// One name of a directory with what is known of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntryPlus {
    /// The name.
    pub entry: DirEntry,
    /// The object, counted as one look-up; absent for `.`, `..`, a mount point not yet crossed, and what the
    /// server would not let us see.
    pub found: Option<Entry>,
}
