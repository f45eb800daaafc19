//! Node ids: the names by which a caller of Venus refers to objects.

use std::fmt;

/// Id of an object in the mount: 64 bits, also used as inode number.
///
/// Computed from cell and fid, so that it is the same after a restart. If two fids have the same computed id, the later
/// one takes the next free number. At a mount point the node is the root of the mounted volume, as in every AFS client
/// (docs/protocol/client.md "2. Name space: /afs").
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
