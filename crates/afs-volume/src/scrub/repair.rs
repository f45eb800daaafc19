//! Repair: replaces a damaged chunk by sound bytes.

use std::collections::BTreeSet;

use afs_kv::Txn;
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use super::{BadData, BadPart};
use crate::chunks;
use crate::error::VolumeError;
use crate::extent::{OwnedChunk, SLOT_LEN, Slot, Source};
use crate::group::epochs;
use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};
use crate::key::{self, DEADLISTS, RowId, SLOTS, VNODES};
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::{damaged, index_damaged};
use crate::store::{VolumeStore, decode_header};

/// A chunk and its replacement.
#[derive(Clone, Copy)]
struct Exchange {
    old: LocatedChunk,
    new: LocatedChunk,
}

impl VolumeStore {
    /// Replaces a damaged chunk by `bytes`, read from a replica of the same fid and data version at the same
    /// position. All volumes that share the chunk get the new one. The bytes must have the length and the
    /// checksum that were stored.
    ///
    /// # Errors
    /// `Invalid` if the damage is not a whole chunk, or the bytes are not those that were written; `Busy` if
    /// the file changed meanwhile.
    pub async fn repair(&self, bad: &BadData, bytes: Bytes) -> Result<(), VolumeError> {
        let BadPart::Chunk { position, len, chunk: old, .. } = bad.part else {
            return Err(VolumeError::Invalid);
        };
        if len != u64::from(old.chunk.len) || bytes.len() as u64 != len {
            return Err(VolumeError::Invalid);
        }
        let drive = self.store.drives.get(old.drive)?;
        let new = drive.write(bytes).await?;
        if new.crc != old.chunk.crc {
            drive.discard(vec![new]).await?;
            return Err(VolumeError::Invalid);
        }
        drive.sync(&[new]).await?;
        let (volume, vnode) = (bad.volume, bad.vnode);
        let slot = SlotIndex((position / SLOT_LEN) as u32);
        let store = self.store.clone();
        let exchanged = self.store.kv.update(move |txn| {
            let header = txn.get(crate::key::HEADERS, &key::volume(volume))?.ok_or(VolumeError::NoVolume)?;
            let group = decode_header(header)?.group;
            let new = LocatedChunk { drive: old.drive, chunk: new };
            exchange(txn, group, (vnode, slot), Exchange { old, new })?;
            txn.before_visible(move |_| store.work.notify_one());
            Ok(())
        });
        let exchanged: Result<(), VolumeError> = exchanged.await.map_err(VolumeError::from);
        if let Err(VolumeError::Busy | VolumeError::NoVolume) = exchanged {
            drive.discard(vec![new]).await?;
        }
        exchanged
    }
}

fn exchange(
    txn: &mut Txn<'_>,
    group: GroupId,
    (vnode, slot): (VnodeId, SlotIndex),
    chunk: Exchange,
) -> Result<(), VolumeError> {
    let mut birth = None;
    for content in contents(txn, group, vnode)? {
        let id = RowId::Slot(group, content, slot);
        birth = exchange_rows(txn, id, vnode, chunk)?.or(birth);
    }
    let birth = birth.ok_or(VolumeError::Busy)?;
    for (epoch, _) in epochs::all(txn, group)? {
        if take_from_deadlist(txn, group, epoch, chunk.old)? {
            chunks::release(txn, group, Some(epoch), OwnedChunk { at: chunk.new, birth })?;
        }
    }
    chunks::adopt(txn, group, OwnedChunk { at: chunk.new, birth });
    chunks::free_once(txn, chunk.old)
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

/// Replaces the chunk in the rows of all epochs; returns its birth if any row has it.
fn exchange_rows(
    txn: &mut Txn<'_>,
    id: RowId,
    vnode: VnodeId,
    exchange: Exchange,
) -> Result<Option<Epoch>, VolumeError> {
    let (first, last) = (id.key(Epoch(0)), id.key(Epoch(u32::MAX)));
    let rows = txn.range(SLOTS, key::bounds(&first, Some(&last)), false).collect::<Result<Vec<_>, _>>()?;
    let mut birth = None;
    for (key, row) in rows.into_iter().filter(|(_, row)| !row.is_empty()) {
        let mut slot =
            Slot::decode(row).map_err(|_| damaged(vnode, "a slot of its data cannot be decoded"))?;
        let mut changed = false;
        for extent in &mut slot.extents {
            if let Source::Chunk { chunk, .. } = &mut extent.source
                && chunk.at == exchange.old
            {
                chunk.at = exchange.new;
                (birth, changed) = (Some(chunk.birth), true);
            }
        }
        if changed {
            let written = key::epoch_of_row(&key).ok_or_else(|| index_damaged("a row's key is too short"))?;
            txn.put(SLOTS, &id.key(written), slot.encode());
        }
    }
    Ok(birth)
}
