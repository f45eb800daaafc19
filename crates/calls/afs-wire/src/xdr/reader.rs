//! Cursor over received bytes.

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("{needed} more bytes needed, {left} left")]
    Short {
        /// Bytes the next item takes.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// A count exceeds its bound.
    #[error("count {got} is over the bound of {limit}")]
    TooLong {
        /// The bound, in bytes or elements.
        limit: usize,
        /// The count received.
        got: usize,
    },
    /// A value without a meaning in the protocol.
    #[error("{value:#x} is no valid {what}")]
    BadValue {
        /// The expected type of value.
        what: &'static str,
        /// The word received.
        value: u32,
    },
    /// Bytes follow the last item.
    #[error("{left} bytes too many")]
    Trailing {
        /// Number of bytes.
        left: usize,
    },
}

/// Reads XDR items one after another from a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Takes exactly `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(DecodeError::Short { needed: N, left: self.rest.len() }),
        }
    }

    /// Takes exactly `len` bytes, without padding.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(DecodeError::Short { needed: len, left: self.rest.len() }),
        }
    }

    /// An unsigned word.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(|word| u32::from_be_bytes(*word))
    }

    /// A signed word.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(|word| i32::from_be_bytes(*word))
    }

    /// Two words, the high one first.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(|words| u64::from_be_bytes(*words))
    }

    /// A count that may be at most `max`.
    ///
    /// # Errors
    /// [`DecodeError::Short`], [`DecodeError::TooLong`].
    pub fn count(&mut self, max: usize) -> Result<usize, DecodeError> {
        let got = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if got > max { Err(DecodeError::TooLong { limit: max, got }) } else { Ok(got) }
    }

    /// A counted opaque of at most `max` bytes, with its padding skipped. The padding's contents are ignored: peers
    /// reuse buffers.
    ///
    /// # Errors
    /// [`DecodeError::Short`], [`DecodeError::TooLong`].
    pub fn opaque(&mut self, max: usize) -> Result<&'a [u8], DecodeError> {
        let len = self.count(max)?;
        let bytes = self.raw(len)?;
        self.raw(len.wrapping_neg() & 3)?;
        Ok(bytes)
    }

    /// A counted string: the same form as [`Reader::opaque`], and like it raw bytes of no particular character set.
    ///
    /// # Errors
    /// As [`Reader::opaque`].
    pub fn string(&mut self, max: usize) -> Result<&'a [u8], DecodeError> {
        self.opaque(max)
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`].
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }
}
