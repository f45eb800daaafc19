//! Advisory locks.

/// Shared or exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Many may hold it.
    Read,
    /// One may hold it.
    Write,
}

/// The bytes a lock covers, both ends included. A kernel takes no end beyond the largest signed offset, which it writes for "to
/// the end".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl LockRange {
    /// The whole file: only such a lock is taken at the server and holds on other machines
    /// (docs/protocol/client.md "Semantics promised to applications").
    pub const WHOLE: LockRange = LockRange { first: 0, last: i64::MAX as u64 };

    /// Whether the two have a byte in common.
    pub fn overlaps(&self, other: &LockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A lock that is held, and by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockHolder {
    /// Its kind.
    pub kind: LockKind,
    /// Its bytes.
    pub range: LockRange,
    /// The process, as told when it was taken; 0 if the holder is on another machine.
    pub pid: u32,
}
