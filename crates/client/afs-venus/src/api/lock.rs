//! Types of advisory locks.

/// Kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Shared: many holders.
    Read,
    /// Exclusive: one holder.
    Write,
}

/// Bytes covered by a lock, first and last included. The kernel writes the largest signed offset for "to the end" and
/// accepts nothing beyond it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl LockRange {
    /// The whole file: the only range that is locked at the server and therefore valid on other machines
    /// (docs/protocol/client.md "Semantics promised to applications").
    pub const WHOLE: LockRange = LockRange { first: 0, last: i64::MAX as u64 };

    /// True if the two ranges have a byte in common.
    pub fn overlaps(&self, other: &LockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// True if together the two ranges have no gap.
    pub fn touches(&self, other: &LockRange) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

/// A lock that is held, and its holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockHolder {
    /// Its kind.
    pub kind: LockKind,
    /// Its bytes.
    pub range: LockRange,
    /// Process id given when the lock was taken; 0 if the holder is on another machine.
    pub pid: u32,
}
