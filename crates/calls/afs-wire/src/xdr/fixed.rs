//! Opaques of fixed length: raw bytes without a count.

use super::{Decode, DecodeError, Encode, Reader};

/// A fixed number of raw bytes: `opaque[N]` with `N` a multiple of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fixed<const N: usize>(pub [u8; N]);

impl<const N: usize> Encode for Fixed<N> {
    fn encode(&self, out: &mut Vec<u8>) {
        const { assert!(N.is_multiple_of(4)) };
        out.extend_from_slice(&self.0);
    }
}

impl<const N: usize> Decode for Fixed<N> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(*bytes))
    }
}
