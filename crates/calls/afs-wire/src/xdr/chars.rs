//! `char[n]`: one word a character.

use super::{Decode, DecodeError, Encode, Reader, TooLong};
use std::fmt;

/// A NUL-padded text of `N` characters in `N` words, each a sign-extended `char` (`docs/protocol/volserver.md` "2.
/// XDR conventions that surprise").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chars<const N: usize>([u8; N]);

impl<const N: usize> Chars<N> {
    /// A text that leaves room for at least one NUL.
    ///
    /// # Errors
    /// [`TooLong`] from `N` bytes on.
    pub fn new(text: &[u8]) -> Result<Self, TooLong> {
        if text.len() >= N {
            return Err(TooLong { limit: N.saturating_sub(1), got: text.len() });
        }
        Ok(Self::truncated(text))
    }

    /// As much of a text as leaves room for a NUL.
    pub fn truncated(text: &[u8]) -> Self {
        let mut chars = [0; N];
        let len = text.len().min(N.saturating_sub(1));
        if let (Some(to), Some(from)) = (chars.get_mut(..len), text.get(..len)) {
            to.copy_from_slice(from);
        }
        Self(chars)
    }

    /// The text up to the first NUL, or all `N` characters if there is none.
    pub fn text(&self) -> &[u8] {
        self.0.split(|&c| c == 0).next().unwrap_or_default()
    }

    /// All characters, padding included.
    pub fn as_array(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> Default for Chars<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> From<[u8; N]> for Chars<N> {
    fn from(chars: [u8; N]) -> Self {
        Self(chars)
    }
}

impl<const N: usize> fmt::Debug for Chars<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.text().escape_ascii())
    }
}

impl<const N: usize> fmt::Display for Chars<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.text()))
    }
}

impl<const N: usize> Encode for Chars<N> {
    fn encode(&self, out: &mut Vec<u8>) {
        for c in self.0 {
            (c as i8).encode(out);
        }
    }
}

impl<const N: usize> Decode for Chars<N> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        <[u8; N]>::decode(r).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_a_sign_extended_word() {
        let name = Chars::<4>::new(b"a\xe9").unwrap();
        assert_eq!(name.to_bytes(), [0, 0, 0, 0x61, 0xff, 0xff, 0xff, 0xe9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Chars::<4>::from_bytes(&name.to_bytes()).unwrap(), name);
        assert_eq!(name.text(), b"a\xe9");
    }

    #[test]
    fn a_text_must_leave_room_for_its_nul() {
        assert!(Chars::<4>::new(b"abc").is_ok());
        assert_eq!(Chars::<4>::new(b"abcd"), Err(TooLong { limit: 3, got: 4 }));
        assert_eq!(Chars::from(*b"abcd").text(), b"abcd");
    }
}
