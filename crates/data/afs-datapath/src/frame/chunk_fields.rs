//! Fields of messages about chunks: ids, references, ranges, and lists of bounded length.

use afs_drive::{ChunkId, ChunkRef};
use afs_wire::xdr::{DecodeError, Encode, Reader};

use super::chunk_request::CHUNKS_MAX;

pub(super) fn put_id(id: ChunkId, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.to_bytes());
}

pub(super) fn take_id(r: &mut Reader<'_>) -> Result<ChunkId, DecodeError> {
    Ok(ChunkId::from_bytes(*r.array()?))
}

pub(super) fn put_chunk(chunk: &ChunkRef, out: &mut Vec<u8>) {
    out.extend_from_slice(&chunk.to_bytes());
}

pub(super) fn take_chunk(r: &mut Reader<'_>) -> Result<ChunkRef, DecodeError> {
    Ok(ChunkRef { id: take_id(r)?, len: r.u32()?, crc: r.u32()? })
}

/// What is read: a chunk; begin and end of the range, and the credit.
pub(super) fn put_read(chunk: &ChunkRef, numbers: [u32; 3], out: &mut Vec<u8>) {
    put_chunk(chunk, out);
    numbers.iter().for_each(|number| number.encode(out));
}

/// The same, decoded.
pub(super) fn take_read(r: &mut Reader<'_>) -> Result<(ChunkRef, [u32; 3]), DecodeError> {
    Ok((take_chunk(r)?, [r.u32()?, r.u32()?, r.u32()?]))
}

/// A list of chunks or groups.
pub(super) fn put_many<T>(all: &[T], put: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    (all.len() as u32).encode(out);
    all.iter().for_each(|one| put(one, out));
}

/// The same, decoded.
///
/// # Errors
/// There are more than [`CHUNKS_MAX`], or one cannot be decoded.
pub(super) fn take_many<T>(
    r: &mut Reader<'_>,
    take: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = r.u32()?;
    if count as usize > CHUNKS_MAX {
        return Err(DecodeError::BadValue { what: "number of chunks or groups", value: count });
    }
    (0..count).map(|_| take(r)).collect()
}
