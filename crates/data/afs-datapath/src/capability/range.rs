//! Range of bytes of a file: start and end.

use std::fmt;

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

/// Bytes of a file from `start` up to `end`, without `end`. `start` is never behind `end`, and `end` at most 2^63 - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    start: u64,
    end: u64,
}

/// The largest position in a file: that of POSIX's `off_t`.
const END_MAX: u64 = i64::MAX as u64;

impl ByteRange {
    /// Every byte that a file may have.
    pub const ALL: Self = Self { start: 0, end: END_MAX };

    /// The bytes from `start` up to `end`. `None` if they are in the wrong order, or beyond 2^63 - 1.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if start <= end && end <= END_MAX { Some(Self { start, end }) } else { None }
    }

    /// `len` bytes from `start` on. `None` if they end beyond 2^63 - 1.
    #[must_use]
    pub const fn at(start: u64, len: u64) -> Option<Self> {
        match start.checked_add(len) {
            Some(end) => Self::new(start, end),
            None => None,
        }
    }

    /// The first byte.
    #[must_use]
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The byte behind the last one.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.end
    }

    /// Number of bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it has no byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether every byte of `other` is in it, and its ends too if `other` is empty.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl fmt::Debug for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl Encode for ByteRange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.start.encode(out);
        self.end.encode(out);
    }
}

impl Decode for ByteRange {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (start, end) = (r.u64()?, r.u64()?);
        let wrong = DecodeError::BadValue { what: "range (high word of its end)", value: (end >> 32) as u32 };
        Self::new(start, end).ok_or(wrong)
    }
}
