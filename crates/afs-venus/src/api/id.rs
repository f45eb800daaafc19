//! The name by which a caller of Venus knows an object.

use std::fmt;

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
