//! Numbers of the store that never travel.

use std::fmt;

/// Volumes that share data: a read-write volume with its clones, or what is left of them. The store numbers its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A span of a volume group's life between two clones. A clone freezes an epoch and the group goes on in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// Of a group that was never cloned.
    pub const FIRST: Self = Self(1);
}

/// The data of one vnode, so that data can change hands or be taken down slowly while the vnode's number is already
/// in use again. Never reused within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub u64);

/// Which [`SLOT_LEN`](crate::SLOT_LEN) bytes of a file, or which page of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u32);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
