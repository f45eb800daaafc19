//! Exchange of a chunk for another one with the same bytes, in the rows of all volumes that share it.

use std::collections::BTreeSet;

use afs_kv::Txn;
use afs_wire::ids::VnodeId;

use crate::chunks;
use crate::copies;
use crate::error::VolumeError;
use crate::extent::{OwnedChunk, Slot, Source};
use crate::group::epochs;
use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};
use crate::key::{self, DEADLISTS, RowId, SLOTS, VNODES};
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::{damaged, index_damaged};

/// A chunk and its replacement, which has the same length and checksum.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) old: LocatedChunk,
    pub(crate) new: LocatedChunk,
}

/// The slot of a file whose rows name a chunk: in all epochs of a group, and under every content id that the vnode has had.
#[derive(Clone, Copy)]
pub(crate) struct ChunkPlace {
    pub(crate) group: GroupId,
    pub(crate) vnode: VnodeId,
    pub(crate) slot: SlotIndex,
}

/// Rows that name the old chunk, with the new one.
struct Rewritten {
    rows: Vec<(Vec<u8>, Slot)>,
    birth: Epoch,
}

/// Replaces the old chunk by the new one wherever it is referenced, and queues the old one for discard. False, and nothing is
/// changed, if the old chunk is not referenced at this place any longer.
///
/// Rows of states that no volume sees may keep the old chunk: they are about to be deleted, and are never read.
///
/// # Errors
/// `Damaged` if a row cannot be decoded; nothing is changed.
pub(crate) fn exchange(txn: &mut Txn<'_>, place: ChunkPlace, chunk: Exchange) -> Result<bool, VolumeError> {
    if !chunks::is_live(txn, chunk.old)? {
        return Ok(false);
    }
    let Some(Rewritten { rows, birth }) = rewritten(txn, place, chunk)? else { return Ok(false) };
    for (key, slot) in rows {
        txn.put(SLOTS, &key, slot.encode());
    }
    for (epoch, _) in epochs::all(txn, place.group)? {
        if take_from_deadlist(txn, place.group, epoch, chunk.old)? {
            chunks::release(txn, place.group, Some(epoch), OwnedChunk { at: chunk.new, birth })?;
        }
    }
    chunks::adopt(txn, place.group, OwnedChunk { at: chunk.new, birth });
    copies::hand_over(txn, chunk.old, chunk.new)?;
    chunks::free_once(txn, chunk.old)?;
    Ok(true)
}

/// Removes a chunk from a clone's deadlist; false if it is not on it.
fn take_from_deadlist(
    txn: &mut Txn<'_>,
    group: GroupId,
    clone: Epoch,
    at: LocatedChunk,
) -> Result<bool, VolumeError> {
    let old = key::deadlist_format_2(group, clone, at).map(|key| key.to_vec());
    let mut was_there = false;
    for key in [key::deadlist(group, clone, at).to_vec()].into_iter().chain(old) {
        if txn.get(DEADLISTS, &key)?.is_some() {
            txn.delete(DEADLISTS, &key);
            was_there = true;
        }
    }
    Ok(was_there)
}

/// The content ids that a vnode has had, as far as any volume sees them.
fn contents(txn: &Txn<'_>, group: GroupId, vnode: VnodeId) -> Result<BTreeSet<ContentId>, VolumeError> {
    let id = RowId::Vnode(group, vnode);
    let (first, last) = (id.key(Epoch(0)), id.key(Epoch(u32::MAX)));
    let mut contents = BTreeSet::new();
    for row in txn.range(VNODES, key::bounds(&first, Some(&last)), false) {
        let (_, row) = row?;
        if !row.is_empty() {
            let record = VnodeRecord::decode(vnode, row);
            contents.insert(record.map_err(|_| damaged(vnode, "its record cannot be decoded"))?.content);
        }
    }
    Ok(contents)
}

/// The rows that name the chunk, rewritten; `None` if there is none.
fn rewritten(txn: &Txn<'_>, place: ChunkPlace, exchange: Exchange) -> Result<Option<Rewritten>, VolumeError> {
    let (mut rows, mut birth) = (Vec::new(), None);
    for content in contents(txn, place.group, place.vnode)? {
        let id = RowId::Slot(place.group, content, place.slot);
        let (first, last) = (id.key(Epoch(0)), id.key(Epoch(u32::MAX)));
        for row in txn.range(SLOTS, key::bounds(&first, Some(&last)), false) {
            let (key, row) = row?;
            if row.is_empty() {
                continue;
            }
            let mut slot = Slot::decode(row)
                .map_err(|_| damaged(place.vnode, "a slot of its data cannot be decoded"))?;
            if let Some(born) = replace(&mut slot, exchange) {
                let written =
                    key::epoch_of_row(&key).ok_or_else(|| index_damaged("a row's key is too short"))?;
                rows.push((id.key(written), slot));
                birth = Some(born);
            }
        }
    }
    Ok(birth.map(|birth| Rewritten { rows, birth }))
}

/// Replaces the chunk in a slot; returns its birth if the slot has it.
fn replace(slot: &mut Slot, exchange: Exchange) -> Option<Epoch> {
    let mut birth = None;
    for extent in &mut slot.extents {
        if let Source::Chunk { chunk, .. } = &mut extent.source
            && chunk.at == exchange.old
        {
            chunk.at = exchange.new;
            birth = Some(chunk.birth);
        }
    }
    birth
}
