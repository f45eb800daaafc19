//! On which drives of its file server the data of a volume's files are.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;
use std::num::NonZeroU8;

/// A number of drives: 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriveCount(NonZeroU8);

impl DriveCount {
    /// One drive.
    pub const ONE: Self = Self(NonZeroU8::MIN);
    /// The greatest number: a chunk and two copies of it.
    pub const MAX: u8 = 3;

    /// That number of drives; `None` for 0 and more than [`DriveCount::MAX`].
    #[must_use]
    pub fn new(count: u32) -> Option<Self> {
        let count = u8::try_from(count).ok().filter(|count| *count <= Self::MAX)?;
        NonZeroU8::new(count).map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

impl fmt::Display for DriveCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// On which of the drives for the new data of its partition a volume's chunks are, in the order of the list of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// On how many drives each chunk is, durably, before a store is acknowledged. By default (`None`) a store waits for one drive, and
    /// all others of the list get copies in the background.
    pub copies: Option<DriveCount>,
    /// Over how many drives the chunks of a file go round, mebibyte by mebibyte. 1 by default.
    pub width: DriveCount,
}

impl Default for Placement {
    fn default() -> Self {
        Self { copies: None, width: DriveCount::ONE }
    }
}

impl Encode for Placement {
    fn encode(&self, out: &mut Vec<u8>) {
        self.copies.map_or(0, |count| u32::from(count.get())).encode(out);
        u32::from(self.width.get()).encode(out);
    }
}

impl Decode for Placement {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let copies = match r.u32()? {
            0 => None,
            value => Some(count(value)?),
        };
        Ok(Self { copies, width: count(r.u32()?)? })
    }
}

fn count(value: u32) -> Result<DriveCount, DecodeError> {
    DriveCount::new(value).ok_or(DecodeError::BadValue { what: "number of drives", value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_are_read_back_and_other_numbers_refused() {
        let counts: Vec<_> = (1..=3).filter_map(DriveCount::new).collect();
        for copies in [None].into_iter().chain(counts.iter().copied().map(Some)) {
            for width in counts.iter().copied() {
                let placement = Placement { copies, width };
                assert_eq!(Placement::from_bytes(&placement.to_bytes()), Ok(placement));
            }
        }
        assert_eq!(Placement::default().to_bytes(), [0, 0, 0, 0, 0, 0, 0, 1]);
        for [copies, width] in [[4u8, 1], [0, 0], [0, 4], [1, 255]] {
            assert!(Placement::from_bytes(&[0, 0, 0, copies, 0, 0, 0, width]).is_err());
        }
        assert_eq!((DriveCount::new(0), DriveCount::new(257)), (None, None));
    }
}
