//! Pseudo-random bytes with a prime period, which no chunk, page or packet size divides; each file begins elsewhere in it.

use crate::split_mix::SplitMix;

/// Bytes until the pattern repeats.
const PERIOD: usize = 1_048_573;
/// Distance between the beginnings of two files in the pattern.
const STEP: u64 = 104_729;

/// Most bytes that are written, read or compared at a time.
pub(super) const BLOCK_LEN: usize = 1 << 20;

/// Contents of files. Zeros and repetitions within a block do not occur, so that nothing can be stored as a hole.
pub(super) struct Pattern(Vec<u8>);

impl Pattern {
    pub(super) fn new() -> Self {
        let mut random = SplitMix::of(1);
        let period: Vec<u8> =
            std::iter::repeat_with(|| random.next().to_le_bytes()).flatten().take(PERIOD).collect();
        // Every block is contiguous in this.
        Self(period.iter().copied().cycle().take(PERIOD + BLOCK_LEN).collect())
    }

    /// Contents of a file, which is given by its number, from `position` on: `length` bytes, at most [`BLOCK_LEN`].
    pub(super) fn at(&self, file: u64, position: u64, length: usize) -> &[u8] {
        let period = PERIOD as u64;
        let start = ((file % period * STEP + position % period) % period) as usize;
        &self.0[start..start + length.min(BLOCK_LEN)]
    }

    /// Number of the first byte in `got` that is not as at `position` of the file; at most [`BLOCK_LEN`] bytes.
    pub(super) fn difference(&self, file: u64, position: u64, got: &[u8]) -> Option<usize> {
        let want = self.at(file, position, got.len());
        if got == want {
            return None;
        }
        Some(got.iter().zip(want).position(|(got, want)| got != want).unwrap_or(want.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_block_is_the_same_whatever_is_read_at_a_time() {
        let pattern = Pattern::new();
        for position in [0, 1, 4096, PERIOD as u64 - 1, PERIOD as u64, 5 << 30] {
            let block = pattern.at(3, position, BLOCK_LEN);
            assert_eq!(block.len(), BLOCK_LEN);
            let (one, other) = block.split_at(1000);
            assert_eq!(pattern.at(3, position, 1000), one);
            assert_eq!(pattern.at(3, position + 1000, BLOCK_LEN - 1000), other);
            assert_eq!(pattern.difference(3, position, block), None);
        }
    }

    #[test]
    fn another_file_another_place_and_one_wrong_byte_are_seen() {
        let pattern = Pattern::new();
        let mut block = pattern.at(1, 1 << 20, 1 << 16).to_vec();
        assert!(pattern.difference(2, 1 << 20, &block).is_some());
        assert!(pattern.difference(1, 2 << 20, &block).is_some());
        block[777] ^= 1;
        assert_eq!(pattern.difference(1, 1 << 20, &block), Some(777));
    }
}
