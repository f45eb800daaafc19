//! Chunk reference with its drive, as the store's rows contain it.

use afs_drive::{ChunkRef, DriveId};

use crate::codec::{BadRecord, Decoded, Fields};

/// Most places of a chunk's bytes: the chunk that references name, and two copies of it.
pub const COPIES_MAX: usize = 3;

/// A chunk of one of the store's drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocatedChunk {
    /// Its drive.
    pub drive: DriveId,
    /// Its id on the drive, and its expected length and checksum.
    pub chunk: ChunkRef,
}

impl LocatedChunk {
    /// Length of the stored form.
    pub(crate) const STORED_LEN: usize = 4 + ChunkRef::STORED_LEN;

    /// The stored form: drive, then chunk.
    pub(crate) fn to_bytes(self) -> [u8; Self::STORED_LEN] {
        let mut bytes = [0; Self::STORED_LEN];
        bytes[..4].copy_from_slice(&self.drive.0.to_be_bytes());
        bytes[4..].copy_from_slice(&self.chunk.to_bytes());
        bytes
    }

    pub(crate) fn decode(fields: &mut Fields) -> Decoded<Self> {
        let drive = DriveId(fields.u32()?);
        Ok(Self { drive, ..Self::decode_format_2(fields)? })
    }

    /// Decodes the second format, in which all chunks are on the store's own drive.
    pub(crate) fn decode_format_2(fields: &mut Fields) -> Decoded<Self> {
        let chunk = ChunkRef::from_bytes(&fields.bytes(ChunkRef::STORED_LEN)?).ok_or(BadRecord)?;
        Ok(Self { drive: DriveId::OWN, chunk })
    }

    /// Decodes a row that contains nothing else, of either format: their lengths differ.
    pub(crate) fn decode_row(row: bytes::Bytes) -> Decoded<Self> {
        let is_old = row.len() == ChunkRef::STORED_LEN;
        let mut fields = Fields::new(row);
        let located = if is_old { Self::decode_format_2(&mut fields)? } else { Self::decode(&mut fields)? };
        fields.finish().map(|()| located)
    }
}
