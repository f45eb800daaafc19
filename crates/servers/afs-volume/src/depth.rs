//! How deep a read may go: to memory, or to the disk.

/// What a read may wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Recently read records and small contents, and rows written since the last two checkpoints. Never
    /// blocks on a disk; [`VolumeError::NotInMemory`](crate::VolumeError::NotInMemory) where that does not suffice.
    Memory,
    /// Everything. May block on a disk.
    Disk,
}
