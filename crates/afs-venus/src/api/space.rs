//! Room in a volume.

/// What statfs(2) tells: the smaller of the volume's quota and the partition's room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes in a block: 1024.
    pub block_bytes: u32,
    /// Blocks altogether.
    pub blocks: u64,
    /// Blocks free.
    pub blocks_free: u64,
    /// Longest name in bytes.
    pub name_bytes_max: u32,
}
