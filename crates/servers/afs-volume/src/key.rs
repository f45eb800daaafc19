//! Keys of the tables. Layout: `docs/format.md` "Tables of the volume store".
//!
//! Every key of a volume's contents ends in the epoch, so that the newest row at or before an epoch is the last one of a short
//! range.

use std::ops::Bound;

use afs_drive::{ChunkId, DriveId};
use afs_wire::fs::SeriesId;
use afs_wire::ids::{VnodeId, VolumeId};

use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};
use crate::located::LocatedChunk;

/// Format of the store, and other single values.
pub(crate) const META: &str = "volume.meta";
/// Volume headers.
pub(crate) const HEADERS: &str = "volume.headers";
/// Vnode records.
pub(crate) const VNODES: &str = "volume.vnodes";
/// File data: a row for the extents of each slot.
pub(crate) const SLOTS: &str = "volume.slots";
/// Directory data: a row for each page.
pub(crate) const PAGES: &str = "volume.pages";
/// Free vnode numbers, as a linked list.
pub(crate) const FREE: &str = "volume.free";
/// Vnode numbers that are lent, with their uniquifiers.
pub(crate) const LENT: &str = "volume.lent";
/// The last list of each series of lists.
pub(crate) const SERIES: &str = "volume.series";
/// Chunks of the store's own drive, as recorded by the second format; no row is added.
pub(crate) const CHUNKS: &str = "volume.chunks";
/// Every other chunk that a slot row references, or referenced until its discard is complete.
pub(crate) const DRIVE_CHUNKS: &str = "volume.drive-chunks";
/// Copies of chunks on other drives.
pub(crate) const COPIES: &str = "volume.copies";
/// Chunks to discard, in the order of the commits that freed them.
pub(crate) const DEAD: &str = "volume.dead";
/// Chunks to be freed with a clone.
pub(crate) const DEADLISTS: &str = "volume.deadlists";
/// Rows to be deleted with a clone.
pub(crate) const DEADROWS: &str = "volume.deadrows";
/// Contents to be deleted.
pub(crate) const DOOMED: &str = "volume.doomed";
/// Contents with cut-out slots whose rows are to be deleted.
pub(crate) const CUTS: &str = "volume.cuts";
/// Groups of volumes.
pub(crate) const GROUPS: &str = "volume.groups";
/// Epochs that are referenced by volumes, or are to be deleted.
pub(crate) const EPOCHS: &str = "volume.epochs";
/// Rows written in an epoch while an older one is referenced.
pub(crate) const CHANGES: &str = "volume.changes";
/// Groups with background work.
pub(crate) const WORK: &str = "volume.work";
/// Advisory locks.
pub(crate) const LOCKS: &str = "volume.locks";

/// The tables to name when the index is opened.
pub const TABLES: &[&str] = &[
    META,
    HEADERS,
    VNODES,
    SLOTS,
    PAGES,
    FREE,
    CHUNKS,
    DEAD,
    DEADLISTS,
    DOOMED,
    DEADROWS,
    GROUPS,
    EPOCHS,
    CHANGES,
    WORK,
    LOCKS,
    CUTS,
    DRIVE_CHUNKS,
    COPIES,
    LENT,
    SERIES,
];

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

    pub(crate) fn group(self) -> GroupId {
        match self {
            Self::Vnode(group, _) | Self::Slot(group, ..) | Self::Page(group, ..) => group,
        }
    }

    /// Table and row within a group, for lists of rows.
    fn put_tagged(self, key: &mut Vec<u8>) {
        match self {
            Self::Vnode(_, vnode) => {
                key.push(VNODE_TAG);
                key.extend_from_slice(&vnode.0.to_be_bytes());
            }
            Self::Slot(_, content, index) | Self::Page(_, content, index) => {
                key.push(if matches!(self, Self::Slot(..)) { SLOT_TAG } else { PAGE_TAG });
                key.extend_from_slice(&content.0.to_be_bytes());
                key.extend_from_slice(&index.0.to_be_bytes());
            }
        }
    }

    fn from_tagged(group: GroupId, tagged: &[u8]) -> Option<Self> {
        let (tag, rest) = tagged.split_first()?;
        if *tag == VNODE_TAG {
            return Some(Self::Vnode(group, VnodeId(u32::from_be_bytes(rest.try_into().ok()?))));
        }
        let (content, index) = rest.split_first_chunk::<8>()?;
        let content = ContentId(u64::from_be_bytes(*content));
        let index = SlotIndex(u32::from_be_bytes(index.try_into().ok()?));
        match *tag {
            SLOT_TAG => Some(Self::Slot(group, content, index)),
            PAGE_TAG => Some(Self::Page(group, content, index)),
            _ => None,
        }
    }
}

pub(crate) fn group(group: GroupId) -> [u8; 4] {
    group.0.to_be_bytes()
}

/// A group and one of its epochs: a row of the table of epochs, and what rows of other tables begin with.
pub(crate) fn epoch(group: GroupId, epoch: Epoch) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&group.0.to_be_bytes());
    key[4..].copy_from_slice(&epoch.0.to_be_bytes());
    key
}

/// Records that a row was written in an epoch.
pub(crate) fn change(id: RowId, written: Epoch) -> Vec<u8> {
    let mut key = epoch(id.group(), written).to_vec();
    id.put_tagged(&mut key);
    key
}

/// The range of vnode changes in an epoch, from behind vnode `after` to the last.
pub(crate) fn changed_vnodes(group: GroupId, written: Epoch, after: VnodeId) -> (Vec<u8>, Vec<u8>) {
    let mut start = epoch(group, written).to_vec();
    start.push(VNODE_TAG);
    let mut end = start.clone();
    start.extend_from_slice(&after.0.to_be_bytes());
    start.push(0);
    end.extend_from_slice(&[u8::MAX; 5]);
    (start, end)
}

/// A row that was written in an epoch, from its key in the list of changes.
pub(crate) fn from_change(key: &[u8]) -> Option<(RowId, Epoch)> {
    let (group, rest) = key.split_first_chunk::<4>()?;
    let (epoch, tagged) = rest.split_first_chunk::<4>()?;
    let id = RowId::from_tagged(GroupId(u32::from_be_bytes(*group)), tagged)?;
    Some((id, Epoch(u32::from_be_bytes(*epoch))))
}

/// A row written in epoch `written` that no state newer than the clone sees.
pub(crate) fn dead_row(clone: Epoch, id: RowId, written: Epoch) -> Vec<u8> {
    let mut key = epoch(id.group(), clone).to_vec();
    id.put_tagged(&mut key);
    key.extend_from_slice(&written.0.to_be_bytes());
    key
}

/// Decodes the key of a dead row: row, and epoch in which it was written.
pub(crate) fn from_dead_row(key: &[u8]) -> Option<(RowId, Epoch)> {
    let (group, rest) = key.split_first_chunk::<4>()?;
    let (tagged, written) = rest.get(4..)?.split_last_chunk::<4>()?;
    let id = RowId::from_tagged(GroupId(u32::from_be_bytes(*group)), tagged)?;
    Some((id, Epoch(u32::from_be_bytes(*written))))
}

/// A lent vnode number.
pub(crate) fn lent(group: GroupId, vnode: VnodeId) -> [u8; 8] {
    free(group, vnode)
}

/// A lent vnode number, from its key.
pub(crate) fn from_lent(key: &[u8]) -> Option<(GroupId, VnodeId)> {
    let (group, vnode) = key.split_first_chunk::<4>()?;
    let vnode = u32::from_be_bytes(vnode.try_into().ok()?);
    Some((GroupId(u32::from_be_bytes(*group)), VnodeId(vnode)))
}

/// The epoch at the end of a key of a volume's contents.
pub(crate) fn epoch_of_row(key: &[u8]) -> Option<Epoch> {
    Some(Epoch(u32::from_be_bytes(*key.last_chunk()?)))
}

pub(crate) fn volume(id: VolumeId) -> [u8; 4] {
    id.0.to_be_bytes()
}

/// A series of lists of a volume.
pub(crate) fn series(volume: VolumeId, series: SeriesId) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&volume.0.to_be_bytes());
    key[4..].copy_from_slice(&series.0.to_be_bytes());
    key
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

/// A chunk's own row.
pub(crate) fn drive_chunk(drive: DriveId, chunk: ChunkId) -> [u8; 20] {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&drive.0.to_be_bytes());
    key[4..].copy_from_slice(&chunk.to_bytes());
    key
}

/// A table and a key in it.
pub(crate) type TableKey = (&'static str, Vec<u8>);

/// The keys under which a chunk's own row may be, at most two.
pub(crate) fn of_chunk(at: LocatedChunk) -> impl Iterator<Item = TableKey> {
    let old = (at.drive == DriveId::OWN).then(|| (CHUNKS, at.chunk.id.to_bytes().to_vec()));
    [(DRIVE_CHUNKS, drive_chunk(at.drive, at.chunk.id).to_vec())].into_iter().chain(old)
}

pub(crate) fn dead(sequence: u64, at: LocatedChunk) -> [u8; 28] {
    let mut key = [0; 28];
    key[..8].copy_from_slice(&sequence.to_be_bytes());
    key[8..].copy_from_slice(&drive_chunk(at.drive, at.chunk.id));
    key
}

pub(crate) fn deadlist(group: GroupId, clone: Epoch, at: LocatedChunk) -> [u8; 28] {
    let mut key = [0; 28];
    key[..8].copy_from_slice(&epoch(group, clone));
    key[8..].copy_from_slice(&drive_chunk(at.drive, at.chunk.id));
    key
}

/// The corresponding key of the second format.
pub(crate) fn deadlist_format_2(group: GroupId, clone: Epoch, at: LocatedChunk) -> Option<[u8; 24]> {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&epoch(group, clone));
    key[8..].copy_from_slice(&at.chunk.id.to_bytes());
    (at.drive == DriveId::OWN).then_some(key)
}

/// The smallest key greater than every key with this prefix; `None` if there is none.
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

const VNODE_TAG: u8 = 1;
const SLOT_TAG: u8 = 2;
const PAGE_TAG: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_lists_read_back() {
        let group = GroupId(7);
        for id in [
            RowId::Vnode(group, VnodeId(5)),
            RowId::Slot(group, ContentId(6), SlotIndex(7)),
            RowId::Page(group, ContentId(8), SlotIndex(9)),
        ] {
            assert_eq!(from_change(&change(id, Epoch(3))), Some((id, Epoch(3))));
            assert_eq!(from_dead_row(&dead_row(Epoch(9), id, Epoch(3))), Some((id, Epoch(3))));
            for len in 0..9 {
                assert_eq!(from_change(&change(id, Epoch(3))[..len]), None);
                assert_eq!(from_dead_row(&change(id, Epoch(3))[..len]), None);
            }
        }
        let (start, end) = changed_vnodes(group, Epoch(3), VnodeId(5));
        let listed = |vnode| change(RowId::Vnode(group, VnodeId(vnode)), Epoch(3));
        assert!(listed(5) < start && start < listed(6) && listed(u32::MAX) <= end);
        assert!(end < change(RowId::Slot(group, ContentId(0), SlotIndex(0)), Epoch(3)));
    }
}
