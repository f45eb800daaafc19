//! Signed address of an object, which is a permission: not printed.

use std::fmt;

use crate::xdr::{ByteString, Decode, DecodeError, Encode, Reader};

/// Longest address of a chunk in an object store, in bytes: a session token in it may have more than a KiB.
pub const OBJECT_ADDRESS_MAX: usize = 4096;

/// A signed address of HTTP(S), by which its holder reads a range of an object until the address expires. Not printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ObjectAddress(pub ByteString<OBJECT_ADDRESS_MAX>);

impl fmt::Debug for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectAddress")
    }
}

impl Encode for ObjectAddress {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for ObjectAddress {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        ByteString::decode(r).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bounded_and_not_printed() {
        let longest = ObjectAddress(ByteString::truncated(&[b'x'; OBJECT_ADDRESS_MAX]));
        let mut bytes = longest.to_bytes();
        assert_eq!(ObjectAddress::from_bytes(&bytes), Ok(longest.clone()));
        assert_eq!(format!("{longest:?}"), "ObjectAddress");
        bytes[2..4].copy_from_slice(&(OBJECT_ADDRESS_MAX as u16 + 1).to_be_bytes());
        bytes.extend([0; 4]);
        assert!(matches!(ObjectAddress::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }
}
