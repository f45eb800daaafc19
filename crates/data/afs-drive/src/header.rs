//! Header of a chunk: its reference and a table of checksums. Layout: `docs/format.md` "Chunk".

use std::sync::LazyLock;

use crate::chunk::{ChunkId, ChunkRef};

/// Bytes covered by one checksum of the table, so that a part of a chunk can be read and verified.
pub(crate) const PIECE: usize = 64 << 10;

/// Chunks of a segment begin at multiples of this many bytes, so that freeing one frees whole blocks.
pub const BLOCK: u64 = 4096;

/// Checksums of a chunk's pieces.
pub(crate) fn piece_sums(data: &[u8]) -> Vec<u32> {
    data.chunks(PIECE).map(crc32c::crc32c).collect()
}

/// The checksum of the whole chunk, from those of its pieces.
pub(crate) fn combined(sums: &[u32], len: usize) -> u32 {
    let Some((first, others)) = sums.split_first() else { return 0 };
    let mut rest = len.saturating_sub(PIECE);
    others.iter().fold(*first, |whole, sum| {
        let part = rest.min(PIECE);
        rest -= part;
        // A combination with an arbitrary length costs more than reading the piece would; all pieces but the last
        // have the same length.
        if part == PIECE { past_piece(whole) ^ sum } else { crc32c::crc32c_combine(whole, *sum, part) }
    })
}

/// The checksum after [`PIECE`] zeros are appended: a linear function, so that 32 columns determine it.
fn past_piece(sum: u32) -> u32 {
    static COLUMNS: LazyLock<[u32; 32]> =
        LazyLock::new(|| std::array::from_fn(|bit| crc32c::crc32c_combine(1 << bit, 0, PIECE)));
    let set = COLUMNS.iter().enumerate().filter(|(bit, _)| sum >> bit & 1 == 1);
    set.fold(0, |past, (_, column)| past ^ column)
}

/// Offset of the data from the beginning of the header.
pub(crate) fn data_start(len: u32) -> u64 {
    (FIXED + 4 * (len as usize).div_ceil(PIECE)).next_multiple_of(16) as u64
}

/// Distance from the beginning of a chunk to the beginning of the next one.
pub(crate) fn footprint(len: u32) -> u64 {
    (data_start(len) + u64::from(len)).next_multiple_of(BLOCK)
}

pub(crate) fn encode(chunk: ChunkRef, sums: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data_start(chunk.len) as usize);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&chunk.id.to_bytes());
    out.extend_from_slice(&chunk.len.to_le_bytes());
    out.extend_from_slice(&chunk.crc.to_le_bytes());
    for sum in sums {
        out.extend_from_slice(&sum.to_le_bytes());
    }
    out.resize(data_start(chunk.len) as usize, 0);
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The checksums of the pieces, if `bytes` is the complete header of this chunk.
pub(crate) fn decode(bytes: &[u8], chunk: ChunkRef) -> Option<Vec<u32>> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let id: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
    let same = bytes[..4] == MAGIC
        && word(4)? == crc32c::crc32c(bytes.get(8..)?)
        && ChunkId::from_bytes(id) == chunk.id
        && word(24)? == chunk.len
        && word(28)? == chunk.crc;
    let count = (chunk.len as usize).div_ceil(PIECE);
    same.then(|| (0..count).filter_map(|piece| word(FIXED + 4 * piece)).collect())
}

/// The chunk with this id whose complete header `bytes` begin with.
pub(crate) fn found(bytes: &[u8], id: ChunkId) -> Option<ChunkRef> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let (len, crc) = (word(24)?, word(28)?);
    let chunk = ChunkRef { id, len, crc };
    let head = bytes.get(..data_start(len) as usize)?;
    decode(head, chunk).map(|_| chunk)
}

const MAGIC: [u8; 4] = *b"AKC1";
const FIXED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_checksums_are_those_of_the_whole() {
        let data: Vec<u8> = (0..4 * PIECE + 7).map(|at| (at * 31 % 251) as u8).collect();
        for len in [0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 4 * PIECE, 4 * PIECE + 7] {
            let data = &data[..len];
            assert_eq!(combined(&piece_sums(data), len), crc32c::crc32c(data), "{len} bytes");
        }
    }

    #[test]
    fn a_header_is_accepted_only_for_its_own_chunk() {
        let data = vec![7; PIECE * 2 + 5];
        let sums = piece_sums(&data);
        assert_eq!(combined(&sums, data.len()), crc32c::crc32c(&data));
        let chunk = ChunkRef {
            id: ChunkId::from_parts(3, 4096),
            len: data.len() as u32,
            crc: combined(&sums, data.len()),
        };
        let encoded = encode(chunk, &sums);
        assert_eq!(decode(&encoded, chunk), Some(sums));
        assert_eq!(decode(&encoded, ChunkRef { crc: chunk.crc ^ 1, ..chunk }), None);
        assert_eq!(decode(&encoded, ChunkRef { id: ChunkId::from_parts(3, 8192), ..chunk }), None);
        for bit in 0..encoded.len() * 8 {
            let mut damaged = encoded.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged, chunk), None);
        }
    }
}
