//! Tag of a group of objects: what a drive compares that knows no fids.

use std::fmt;

use afs_wire::ids::Fid;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::proof::mac;
use super::{DriveKey, Group};

/// Name of a group of objects at a drive without files. It tells the drive, and who reads it on a connection, nothing: it is
/// made of the group with the drive's key ([`DriveKey::tag`]), and the same for the same group as long as the drive has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupTag(pub [u8; Self::LEN]);

impl GroupTag {
    /// Bytes of a tag: as many as a fid has, in whose place it stands.
    pub const LEN: usize = 12;

    /// The tag that stands in the place of a fid.
    pub(super) fn of_fid(fid: Fid) -> Self {
        let words = [fid.volume.0, fid.vnode.0, fid.unique.0].map(u32::to_be_bytes);
        let mut bytes = [0; Self::LEN];
        bytes.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
        Self(bytes)
    }
}

impl DriveKey {
    /// The tag of a group at the drive.
    #[must_use]
    pub fn tag(&self, group: Group) -> GroupTag {
        let digest = mac(self.bytes(), &[PURPOSE, &group.to_bytes()]);
        GroupTag(std::array::from_fn(|at| digest[at]))
    }
}

/// Distinguishes a tag from other MACs.
const PURPOSE: &[u8; 16] = b"afs-data-group-1";

impl fmt::Display for GroupTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Encode for GroupTag {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode for GroupTag {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(*bytes))
    }
}
