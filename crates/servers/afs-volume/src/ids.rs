//! Ids that are internal to the store.

use std::fmt;

/// Volumes that share data: a read-write volume with its clones, or what is left of them. Assigned by the
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A span of a volume group's life between two clones. A clone freezes an epoch and the group continues in
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch of a group that was never cloned.
    pub const FIRST: Self = Self(1);
}

/// Identifies the data of one vnode, so that data can change hands or be deleted slowly while the vnode's
/// number is already in use again. Never reused within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub u64);

/// Index of a mebibyte ([`SLOT_LEN`](crate::SLOT_LEN)) of a file, or of a page of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u32);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
