//! Space in a volume.

/// Reply of statfs(2): the smaller of the volume's quota and the partition's free space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Block size in bytes: 1024.
    pub block_bytes: u32,
    /// Total number of blocks.
    pub blocks: u64,
    /// Number of free blocks.
    pub blocks_free: u64,
    /// Longest name, in bytes.
    pub name_bytes_max: u32,
}
