//! Length and checksum of a chunk that is not written yet.

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use bytes::Bytes;

use super::STAGED_LEN_MAX;

/// What the bytes of a chunk are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// How many, 1 to [`STAGED_LEN_MAX`].
    pub length: u32,
    /// Their CRC-32C.
    pub crc: u32,
}

impl Content {
    /// That of bytes, which are no more than a length can tell.
    #[must_use]
    pub fn of(bytes: &Bytes) -> Self {
        Self { length: bytes.len() as u32, crc: crc32c::crc32c(bytes) }
    }

    /// Whether a client may stage as many bytes in a chunk.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        (1..=STAGED_LEN_MAX).contains(&self.length)
    }
}

impl Encode for Content {
    fn encode(&self, out: &mut Vec<u8>) {
        self.length.encode(out);
        self.crc.encode(out);
    }
}

impl Decode for Content {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { length: r.u32()?, crc: r.u32()? })
    }
}
