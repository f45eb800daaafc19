//! UUIDs of file servers and clients.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;
use std::str::FromStr;

/// A UUID in the byte order of its text form.
///
/// On the wire it takes eleven words: `time_low`, `time_mid`, `time_hi_and_version`, then each remaining byte in a
/// word of its own, sign-extended as OpenAFS and kAFS do (0x8f is sent as ff ff ff 8f). Receivers keep the low bits.
/// Source: `docs/protocol/callback.md` "2. Structures".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The nil UUID.
    pub const NIL: Self = Self([0; 16]);
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 44;

    /// A random (version 4) UUID from sixteen random bytes.
    pub const fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// Whether this is the nil UUID.
    pub fn is_nil(&self) -> bool {
        *self == Self::NIL
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

/// A text that is not a UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no UUID: 32 hexadecimal digits are needed, dashes may stand between bytes")]
pub struct BadUuid(pub String);

impl FromStr for Uuid {
    type Err = BadUuid;

    fn from_str(text: &str) -> Result<Self, BadUuid> {
        let bad = || BadUuid(text.chars().take(64).collect());
        let mut bytes = [0; 16];
        let mut digits = text.chars().filter(|&c| c != '-');
        for byte in &mut bytes {
            for _ in 0..2 {
                let digit = digits.next().and_then(|c| c.to_digit(16)).ok_or_else(bad)?;
                *byte = *byte << 4 | digit as u8;
            }
        }
        if digits.next().is_some() { Err(bad()) } else { Ok(Self(bytes)) }
    }
}

impl Encode for Uuid {
    fn encode(&self, out: &mut Vec<u8>) {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.0;
        out.extend_from_slice(&[a, b, c, d]);
        u16::from_be_bytes([e, f]).encode(out);
        u16::from_be_bytes([g, h]).encode(out);
        rest.map(|byte| byte as i8).encode(out);
    }
}

impl Decode for Uuid {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [a, b, c, d] = *r.array()?;
        let [e, f] = u16::decode(r)?.to_be_bytes();
        let [g, h] = u16::decode(r)?.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = <[u8; 8]>::decode(r)?;
        Ok(Self([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eleven_words_with_sign_extension() {
        let uuid: Uuid = "00112233-8455-f677-8f99-0a8b0c0d0e0f".parse().unwrap();
        let wire = uuid.to_bytes();
        assert_eq!(wire.len(), Uuid::WIRE_LEN);
        assert_eq!(
            wire[..16],
            [0, 0x11, 0x22, 0x33, 0, 0, 0x84, 0x55, 0, 0, 0xf6, 0x77, 0xff, 0xff, 0xff, 0x8f]
        );
        assert_eq!(Uuid::from_bytes(&wire), Ok(uuid));
        assert_eq!(uuid.to_string(), "00112233-8455-f677-8f99-0a8b0c0d0e0f");
    }

    #[test]
    fn zero_extension_is_accepted_too() {
        let mut wire = Uuid([0x8f; 16]).to_bytes();
        for word in wire[12..].chunks_mut(4) {
            word[..3].fill(0);
        }
        assert_eq!(Uuid::from_bytes(&wire), Ok(Uuid([0x8f; 16])));
    }

    #[test]
    fn texts_that_are_no_uuid() {
        assert!("0011".parse::<Uuid>().is_err());
        assert!("00112233-8455-f677-8f99-0a8b0c0d0e0f0".parse::<Uuid>().is_err());
        assert!("g0112233-8455-f677-8f99-0a8b0c0d0e0f".parse::<Uuid>().is_err());
    }
}
