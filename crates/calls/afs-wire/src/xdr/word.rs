//! Integers on the wire. Everything shorter than a word takes a whole word.

use super::{Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

macro_rules! whole {
    ($($type:ty),*) => { $(
        impl Encode for $type {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl Decode for $type {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.array().map(|bytes| Self::from_be_bytes(*bytes))
            }
        }
    )* };
}

whole!(u32, i32, u64, i64);

/// Senders extend (with the sign, where the type has one); receivers take the low bits and ignore the rest, because
/// senders disagree about the extension.
macro_rules! in_a_word {
    ($($type:ty => $extended:ty),*) => { $(
        impl Encode for $type {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                <$extended>::from(*self).encode(out);
            }
        }

        impl Decode for $type {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.u32().map(|word| word as $type)
            }
        }
    )* };
}

in_a_word!(u8 => u32, u16 => u32, i8 => i32, i16 => i32);

/// A flag in a word: zero is false, everything else true.
impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
}

impl Decode for bool {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u32().map(|word| word != 0)
    }
}

/// Addresses are encoded as plain integers: 10.1.2.3 is 0x0a010203.
impl Encode for Ipv4Addr {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
}

impl Decode for Ipv4Addr {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u32().map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_take_a_word_and_keep_their_sign() {
        assert_eq!((-2i8).to_bytes(), [0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(0xfeu8.to_bytes(), [0, 0, 0, 0xfe]);
        assert_eq!(i16::from_bytes(&[0xff, 0xff, 0x80, 0]).unwrap(), i16::MIN);
        assert_eq!(u8::from_bytes(&[0xff, 0xff, 0xff, 0x8f]).unwrap(), 0x8f);
    }

    #[test]
    fn long_integers_send_the_high_word_first() {
        assert_eq!(0x1_0000_0002u64.to_bytes(), [0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(Ipv4Addr::new(10, 1, 2, 3).to_bytes(), [10, 1, 2, 3]);
    }
}
