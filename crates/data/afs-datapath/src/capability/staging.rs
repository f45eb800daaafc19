//! Staging of chunks by a client: the tag under which they are staged, and the number of the claim that takes them.

use std::fmt;

use afs_wire::ids::Fid;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::proof::mac;
use super::{DriveKey, HolderId};

/// Name of a room at a drive: what a client stages there is kept under it. The file server makes it of a random number, the file
/// and the client ([`DriveKey::staging_tag`]), so that it need not remember it: a commit of another file, or by another client,
/// has another tag, under which nothing is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StagingTag(pub [u8; Self::LEN]);

/// Number of a claim, random: a claim that is repeated because its reply was lost has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u128);

impl StagingTag {
    /// Bytes of a tag.
    pub const LEN: usize = 8;
}

impl DriveKey {
    /// The tag of a room with a random number, which was given to a client for a file.
    #[must_use]
    pub fn staging_tag(&self, room: u128, file: Fid, holder: HolderId) -> StagingTag {
        let digest = mac(self.bytes(), &[TAG, &room.to_be_bytes(), &file.to_bytes(), &holder.to_bytes()]);
        StagingTag(std::array::from_fn(|at| digest[at]))
    }
}

/// Distinguishes a tag from other MACs.
const TAG: &[u8; 16] = b"afs-data-stage-1";

impl fmt::Display for StagingTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Encode for StagingTag {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode for StagingTag {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(*bytes))
    }
}

impl Encode for ClaimId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

impl Decode for ClaimId {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(u128::from_be_bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::capability::{DriveId, KeyEpoch};

    fn file(vnode: u32) -> Fid {
        Fid::new(VolumeId(5), VnodeId(vnode), Uniquifier(1))
    }

    #[test]
    fn a_tag_is_of_one_room_one_file_and_one_client() {
        let (key, other) = (
            DriveKey::new(DriveId(1), KeyEpoch(1), [3; 32]),
            DriveKey::new(DriveId(1), KeyEpoch(1), [4; 32]),
        );
        let tag = key.staging_tag(1, file(2), HolderId(1));
        assert_eq!(tag, key.staging_tag(1, file(2), HolderId(1)));
        let others = [
            key.staging_tag(2, file(2), HolderId(1)),
            key.staging_tag(1, file(4), HolderId(1)),
            key.staging_tag(1, file(2), HolderId(2)),
            other.staging_tag(1, file(2), HolderId(1)),
        ];
        assert!(!others.contains(&tag));
    }
}
