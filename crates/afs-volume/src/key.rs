//! Keys of the tables. Layout: `docs/format.md` "Tables of the volume store".
//!
//! Every key of a volume's contents ends in the epoch, so that the newest row at or before an epoch is the last one of a short
//! range.

use std::ops::Bound;

use afs_drive::ChunkId;
use afs_wire::ids::{VnodeId, VolumeId};

use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};

/// Format of the store, and whatever there is one of.
pub(crate) const META: &str = "volume.meta";
/// Volume headers.
pub(crate) const HEADERS: &str = "volume.headers";
/// Vnode records.
pub(crate) const VNODES: &str = "volume.vnodes";
/// File data: the extents of one slot a row.
pub(crate) const SLOTS: &str = "volume.slots";
/// Directory data: one page a row.
pub(crate) const PAGES: &str = "volume.pages";
/// Free vnode numbers, each naming the next.
pub(crate) const FREE: &str = "volume.free";
/// Every chunk that some slot row has, or had until its discard is through.
pub(crate) const CHUNKS: &str = "volume.chunks";
/// Chunks to discard, in the order of the commits that freed them.
pub(crate) const DEAD: &str = "volume.dead";
/// Chunks that die with a clone.
pub(crate) const DEADLISTS: &str = "volume.deadlists";
/// Contents to take down.
pub(crate) const DOOMED: &str = "volume.doomed";

/// The tables to name when the index is opened.
pub const TABLES: &[&str] = &[META, HEADERS, VNODES, SLOTS, PAGES, FREE, CHUNKS, DEAD, DEADLISTS, DOOMED];

/// A row of a volume's contents, without the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowId {
    Vnode(GroupId, VnodeId),
    Slot(GroupId, ContentId, SlotIndex),
    Page(GroupId, ContentId, SlotIndex),
}

impl RowId {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Vnode(..) => VNODES,
            Self::Slot(..) => SLOTS,
            Self::Page(..) => PAGES,
        }
    }

    pub(crate) fn key(self, epoch: Epoch) -> Vec<u8> {
        let mut key = Vec::with_capacity(20);
        match self {
            Self::Vnode(group, vnode) => {
                key.extend_from_slice(&group.0.to_be_bytes());
                key.extend_from_slice(&vnode.0.to_be_bytes());
            }
            Self::Slot(group, content, slot) | Self::Page(group, content, slot) => {
                key.extend_from_slice(&content_prefix(group, content));
                key.extend_from_slice(&slot.0.to_be_bytes());
            }
        }
        key.extend_from_slice(&epoch.0.to_be_bytes());
        key
    }
}

pub(crate) fn volume(id: VolumeId) -> [u8; 4] {
    id.0.to_be_bytes()
}

pub(crate) fn content_prefix(group: GroupId, content: ContentId) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..].copy_from_slice(&content.0.to_be_bytes());
    key
}

pub(crate) fn free(group: GroupId, vnode: VnodeId) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..].copy_from_slice(&vnode.0.to_be_bytes());
    key
}

pub(crate) fn dead(sequence: u64, chunk: ChunkId) -> [u8; 24] {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&sequence.to_be_bytes());
    key[8..].copy_from_slice(&chunk.to_bytes());
    key
}

pub(crate) fn deadlist(group: GroupId, clone: Epoch, chunk: ChunkId) -> [u8; 24] {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..8].copy_from_slice(&clone.0.to_be_bytes());
    key[8..].copy_from_slice(&chunk.to_bytes());
    key
}

/// The smallest key greater than every key with this prefix; `None` where there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(end);
        }
        end.pop();
    }
    None
}

/// From `start` on, up to but without `end`.
pub(crate) fn bounds<'k>(start: &'k [u8], end: Option<&'k [u8]>) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded))
}
