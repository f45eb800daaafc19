//! Objects that say whose a drive is: the owner's, and one of each run.

use std::fmt;

use bytes::Bytes;

use crate::names::RunId;
use crate::pack::Salt;

/// Names the volume store that a drive belongs to, for as long as the drive exists: random bytes that no other store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerId(pub [u8; 16]);

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Length of the owner's object.
pub(crate) const OWNER_LEN: u64 = 24;
const OWNER_MAGIC: [u8; 4] = *b"AKO1";
const RUN_MAGIC: [u8; 4] = *b"AKR1";

/// Contents of the owner's object.
pub(crate) fn encode_owner(owner: OwnerId) -> Bytes {
    framed(OWNER_MAGIC, &owner.0)
}

/// The owner that an object names; `None` if it is no owner's object.
pub(crate) fn decode_owner(object: &[u8]) -> Option<OwnerId> {
    let owner = OwnerId(object.get(8..)?.try_into().ok()?);
    (encode_owner(owner) == object).then_some(owner)
}

/// Contents of the object of a run.
pub(crate) fn encode_run(run: RunId, salt: Salt) -> Bytes {
    framed(RUN_MAGIC, &[&run.0.to_be_bytes()[..], &salt.0].concat())
}

fn framed(magic: [u8; 4], content: &[u8]) -> Bytes {
    [&magic[..], &crc32c::crc32c(content).to_le_bytes(), content].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_written() {
        let owner = OwnerId(*b"0123456789abcdef");
        let object = encode_owner(owner);
        assert_eq!((object.len() as u64, decode_owner(&object)), (OWNER_LEN, Some(owner)));
        for bit in 0..object.len() * 8 {
            let mut damaged = object.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_owner(&damaged), None);
        }
        assert_eq!(decode_owner(&object[..23]), None);
        assert_eq!(encode_run(RunId(1), Salt([7; 8])).len(), 20);
    }
}
