//! Chunk ids and checksummed references to chunks.

use std::fmt;

/// The longest chunk, in bytes.
pub const MAX_CHUNK_LEN: usize = 4 << 20;

/// Id of a chunk on its drive. A chunk written later has a greater id. Opaque to all but the drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId([u8; 16]);

impl ChunkId {
    /// Smaller than or equal to every other.
    pub const MIN: Self = Self([0; 16]);
    /// Greater than or equal to every other.
    pub const MAX: Self = Self([0xff; 16]);

    /// An id made of two numbers, compared in this order. For drives.
    pub fn from_parts(high: u64, low: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Self(bytes)
    }

    /// The two numbers of [`ChunkId::from_parts`].
    pub fn parts(self) -> (u64, u64) {
        let joined = u128::from_be_bytes(self.0);
        ((joined >> 64) as u64, joined as u64)
    }

    /// The stored form; it sorts as the ids do.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id with this stored form.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = self.parts();
        write!(f, "{high:x}.{low:x}")
    }
}

impl fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkId({self})")
    }
}

/// Id of a drive in the references of one volume store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveId(pub u32);

impl DriveId {
    /// The drive beside the store's own index.
    pub const OWN: Self = Self(0);
}

impl fmt::Display for DriveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Reference to a chunk, with its length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkRef {
    /// The chunk's id.
    pub id: ChunkId,
    /// Its length in bytes, at least 1.
    pub len: u32,
    /// CRC-32C (Castagnoli) of its bytes.
    pub crc: u32,
}

impl ChunkRef {
    /// Bytes of the stored form.
    pub const STORED_LEN: usize = 24;

    /// The stored form.
    pub fn to_bytes(self) -> [u8; Self::STORED_LEN] {
        let mut bytes = [0; Self::STORED_LEN];
        bytes[..16].copy_from_slice(&self.id.to_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_be_bytes());
        bytes[20..].copy_from_slice(&self.crc.to_be_bytes());
        bytes
    }

    /// The reference with this stored form; `None` when there are not 24 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let crc: [u8; 4] = rest.try_into().ok()?;
        Some(Self {
            id: ChunkId::from_bytes(*id),
            len: u32::from_be_bytes(*len),
            crc: u32::from_be_bytes(crc),
        })
    }
}
