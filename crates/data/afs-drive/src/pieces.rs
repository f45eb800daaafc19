//! Pieces of a chunk with their checksums, as a reader verifies them.

use std::ops::Range;

use bytes::Bytes;

use crate::chunk::ChunkRef;
use crate::error::DriveError;
use crate::header::{self, PIECE};

/// Whole pieces of a chunk, with the checksums of all pieces of the chunk.
///
/// A chunk's reference has a checksum of the whole chunk. Those of its pieces (64 KiB, the last one what is left) give
/// that sum together, so that a reader of a part can verify it against the reference alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// CRC-32C of each piece of the chunk.
    pub sums: Vec<u32>,
    /// The bytes of the pieces that were read.
    pub bytes: Bytes,
}

impl Pieces {
    /// Number of pieces of a chunk of `len` bytes.
    #[must_use]
    pub fn count(len: u32) -> usize {
        (len as usize).div_ceil(PIECE)
    }

    /// The bytes of the pieces in which a range of a chunk of `len` bytes lies.
    ///
    /// # Errors
    /// [`DriveError::Length`] if the range is not in the chunk.
    pub fn covering(len: u32, range: &Range<u32>) -> Result<Range<u32>, DriveError> {
        if range.start > range.end || range.end > len {
            return Err(DriveError::Length { len: u64::from(range.end) });
        }
        let piece = PIECE as u32;
        let start = range.start / piece * piece;
        // A chunk has at most 4 MiB, so that nothing overflows below that.
        let end = range.end.checked_next_multiple_of(piece).unwrap_or(len).min(len).max(start);
        Ok(start..end)
    }

    /// Whether these are the pieces of the range, and have the checksums that give the chunk's.
    ///
    /// # Errors
    /// [`DriveError::Damaged`], [`DriveError::Length`].
    pub fn check(&self, chunk: ChunkRef, range: &Range<u32>) -> Result<(), DriveError> {
        let whole = Self::covering(chunk.len, range)?;
        let first = whole.start as usize / PIECE;
        let sums = self.sums.get(first..).unwrap_or_default();
        let is_right = self.sums.len() == Self::count(chunk.len)
            && header::combined(&self.sums, chunk.len as usize) == chunk.crc
            && self.bytes.len() == whole.len()
            && self.bytes.chunks(PIECE).zip(sums).all(|(piece, sum)| crc32c::crc32c(piece) == *sum);
        if is_right { Ok(()) } else { Err(DriveError::Damaged { chunk: chunk.id }) }
    }

    /// The bytes of the range, verified.
    ///
    /// # Errors
    /// As [`Pieces::check`].
    pub fn verified(self, chunk: ChunkRef, range: Range<u32>) -> Result<Bytes, DriveError> {
        self.check(chunk, &range)?;
        let start = Self::covering(chunk.len, &range)?.start;
        Ok(self.bytes.slice((range.start - start) as usize..(range.end - start) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkId;

    #[test]
    fn pieces_are_those_of_the_reference_or_refused() {
        let data: Vec<u8> = (0..2 * PIECE + 100).map(|at| (at % 251) as u8).collect();
        let chunk = ChunkRef { id: ChunkId::MIN, len: data.len() as u32, crc: crc32c::crc32c(&data) };
        let range = PIECE as u32 + 5..PIECE as u32 + 9;
        let bytes = Bytes::copy_from_slice(&data[PIECE..2 * PIECE]);
        let right = Pieces { sums: header::piece_sums(&data), bytes };
        assert_eq!(right.clone().verified(chunk, range.clone()).unwrap(), data[PIECE + 5..PIECE + 9]);
        let mut sums = right.clone();
        sums.sums[0] ^= 1;
        let mut fewer = right.clone();
        fewer.sums.pop();
        let mut bytes = right.clone();
        bytes.bytes = Bytes::copy_from_slice(&data[..PIECE]);
        let mut longer = right.clone();
        longer.bytes = Bytes::copy_from_slice(&data[PIECE..]);
        for wrong in [sums, fewer, bytes, longer] {
            assert!(matches!(wrong.verified(chunk, range.clone()), Err(DriveError::Damaged { .. })));
        }
        assert!(Pieces::covering(10, &(0..11)).is_err());
        assert_eq!(Pieces::covering(chunk.len, &(chunk.len..chunk.len)).unwrap().len(), 100);
    }
}
