//! Secret of a capability on its way to the client that it is given to.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;

/// The secret of a capability ([`GetCapability`](super::GetCapability)): `opaque[32]`. Whoever knows it may do what the
/// capability permits, so it is not printable, and is wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct CapabilitySecret(pub [u8; 32]);

impl Drop for CapabilitySecret {
    fn drop(&mut self) {
        self.0.fill(0);
        // The bytes are looked at, so that the compiler keeps the line above.
        std::hint::black_box(&self.0);
    }
}

impl fmt::Debug for CapabilitySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CapabilitySecret")
    }
}

impl Encode for CapabilitySecret {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode for CapabilitySecret {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", CapabilitySecret([0x41; 32])), "CapabilitySecret");
    }
}
