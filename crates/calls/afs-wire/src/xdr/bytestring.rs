//! Counted bytes: strings and opaques.

use super::{Decode, DecodeError, Encode, Reader, TooLong};
use std::fmt;
use std::ops::Deref;

/// A counted string or opaque of at most `MAX` bytes. The bytes are raw: no character set, compared bytewise
/// (`docs/protocol/fileserver.md` "15. Traps", T23).
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> ByteString<MAX> {
    /// The bound in bytes.
    pub const MAX: usize = MAX;

    /// A string of these bytes.
    ///
    /// # Errors
    /// [`TooLong`] over `MAX` bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, TooLong> {
        let bytes = bytes.into();
        match bytes.len() {
            got if got > MAX => Err(TooLong { limit: MAX, got }),
            _ => Ok(Self(bytes)),
        }
    }

    /// A string of the first `MAX` bytes; for texts that may be truncated, such as messages.
    pub fn truncated(bytes: &[u8]) -> Self {
        Self(bytes.iter().copied().take(MAX).collect())
    }

    /// No bytes.
    pub const fn empty() -> Self {
        Self(Vec::new())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as a plain vector.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// The text, with replacement characters where the bytes are not UTF-8. For display only.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl<const MAX: usize> Deref for ByteString<MAX> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> AsRef<[u8]> for ByteString<MAX> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> TryFrom<&[u8]> for ByteString<MAX> {
    type Error = TooLong;

    fn try_from(bytes: &[u8]) -> Result<Self, TooLong> {
        Self::new(bytes)
    }
}

impl<const MAX: usize> TryFrom<Vec<u8>> for ByteString<MAX> {
    type Error = TooLong;

    fn try_from(bytes: Vec<u8>) -> Result<Self, TooLong> {
        Self::new(bytes)
    }
}

impl<const MAX: usize> TryFrom<&str> for ByteString<MAX> {
    type Error = TooLong;

    fn try_from(text: &str) -> Result<Self, TooLong> {
        Self::new(text.as_bytes())
    }
}

impl<const MAX: usize> fmt::Debug for ByteString<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<const MAX: usize> fmt::Display for ByteString<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl<const MAX: usize> Encode for ByteString<MAX> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).encode(out);
        out.extend_from_slice(&self.0);
        let padding = self.0.len().wrapping_neg() & 3;
        out.extend_from_slice(&[0; 3][..padding]);
    }
}

impl<const MAX: usize> Decode for ByteString<MAX> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.opaque(MAX).map(|bytes| Self(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_counted_and_padded() {
        let name = ByteString::<256>::new("hello").unwrap();
        assert_eq!(name.to_bytes(), b"\0\0\0\x05hello\0\0\0");
        assert_eq!(ByteString::<256>::from_bytes(b"\0\0\0\x05hello\0\0\0").unwrap(), name);
        assert_eq!(ByteString::<256>::empty().to_bytes(), [0; 4]);
    }

    #[test]
    fn missing_padding_and_long_strings_are_refused() {
        assert!(matches!(ByteString::<256>::from_bytes(b"\0\0\0\x05hello"), Err(DecodeError::Short { .. })));
        assert!(matches!(
            ByteString::<4>::from_bytes(b"\0\0\0\x05hello\0\0\0"),
            Err(DecodeError::TooLong { .. })
        ));
    }
}
