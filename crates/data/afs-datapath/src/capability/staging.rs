//! Staging of chunks by a client: the tag under which they are staged, and receipts of a drive for them.

use std::fmt;

use afs_drive::ChunkRef;
use afs_wire::ids::Fid;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use subtle::ConstantTimeEq;

use super::proof::mac;
use super::{DriveKey, HolderId, StoreNumber};

/// Name of a room at a drive: what a client stages there is kept under it. The file server makes it of a random number, the file
/// and the client ([`DriveKey::staging_tag`]), so that it need not remember it: a commit of another file, or by another client,
/// has another tag, for which there is no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StagingTag(pub [u8; Self::LEN]);

/// A short MAC under the drive's key: the drive has this chunk, durably, since this run, for this room. Public; it is worth
/// nothing but to whom the room was given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Receipt(pub [u8; Self::LEN]);

/// Number of a claim, random: a claim that is repeated because its reply was lost has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u128);

impl StagingTag {
    /// Bytes of a tag.
    pub const LEN: usize = 8;
}

impl Receipt {
    /// Bytes of a receipt.
    pub const LEN: usize = 16;

    /// Whether two receipts are the same, compared in constant time.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl DriveKey {
    /// The tag of a room with a random number, which was given to a client for a file.
    #[must_use]
    pub fn staging_tag(&self, room: u128, file: Fid, holder: HolderId) -> StagingTag {
        let digest = mac(self.bytes(), &[TAG, &room.to_be_bytes(), &file.to_bytes(), &holder.to_bytes()]);
        StagingTag(std::array::from_fn(|at| digest[at]))
    }

    /// The receipt for a chunk that was staged under a tag in a run of the drive, and is durable.
    #[must_use]
    pub fn receipt(&self, store: StoreNumber, tag: StagingTag, run: u64, chunk: ChunkRef) -> Receipt {
        let (store, run) = (store.to_bytes(), run.to_be_bytes());
        let digest = mac(self.bytes(), &[RECEIPT, &store, &tag.0, &run, &chunk.to_bytes()]);
        Receipt(std::array::from_fn(|at| digest[at]))
    }
}

/// Distinguish a tag and a receipt from other MACs.
const TAG: &[u8; 16] = b"afs-data-stage-1";
const RECEIPT: &[u8; 16] = b"afs-data-receipt";

impl fmt::Display for StagingTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt(..)")
    }
}

/// Encodes the bytes as they are.
macro_rules! bytes {
    ($($name:ident),*) => {
        $(
            impl Encode for $name {
                fn encode(&self, out: &mut Vec<u8>) {
                    out.extend_from_slice(&self.0);
                }
            }

            impl Decode for $name {
                fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    r.array().map(|bytes| Self(*bytes))
                }
            }
        )*
    };
}

bytes!(StagingTag, Receipt);

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
    use afs_drive::ChunkId;
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

    #[test]
    fn a_receipt_is_of_one_chunk_one_tag_one_store_and_one_run() {
        let key = DriveKey::new(DriveId(1), KeyEpoch(1), [3; 32]);
        let other = DriveKey::new(DriveId(2), KeyEpoch(1), [4; 32]);
        let (tag, store) = (StagingTag([1; 8]), StoreNumber(0));
        let chunk = ChunkRef { id: ChunkId::from_parts(1, 0), len: 5, crc: 7 };
        let receipt = key.receipt(store, tag, 9, chunk);
        assert!(receipt.equals(&key.receipt(store, tag, 9, chunk)));
        let others = [
            other.receipt(store, tag, 9, chunk),
            key.receipt(StoreNumber(1), tag, 9, chunk),
            key.receipt(store, StagingTag([2; 8]), 9, chunk),
            key.receipt(store, tag, 10, chunk),
            key.receipt(store, tag, 9, ChunkRef { id: ChunkId::from_parts(1, 4096), ..chunk }),
            key.receipt(store, tag, 9, ChunkRef { len: 6, ..chunk }),
            key.receipt(store, tag, 9, ChunkRef { crc: 8, ..chunk }),
        ];
        assert!(!others.iter().any(|other| receipt.equals(other)));
    }
}
