//! Compaction: rewrites a scattered slot as one chunk.

use std::sync::Arc;

use afs_wire::ids::{Fid, VnodeId};
use afs_wire::vol::Placement;
use bytes::{Bytes, BytesMut};

use crate::data_writer::DataWriter;
use crate::error::VolumeError;
use crate::extent::{Extent, Slot, Source};
use crate::ids::SlotIndex;
use crate::new_data::NewData;
use crate::store::Store;
use crate::volume::Volume;

/// Reads a slot, writes its bytes as one chunk, and replaces the slot by it if the slot is still what was
/// read.
pub(crate) async fn compact(
    store: &Arc<Store>,
    volume: &Arc<Volume>,
    vnode: VnodeId,
    index: SlotIndex,
) -> Result<(), VolumeError> {
    let leased = volume.read(move |reads| reads.leased_slot(vnode, index)).await?;
    let Some((lease, slot)) = leased else { return Ok(()) };
    if !slot.wants_compaction() {
        return Ok(());
    }
    let data = write_runs(store, (volume.header().placement, index), &slot).await?;
    drop(lease);
    match volume.edit(move |tx| tx.replace_slot(vnode, index, &slot, data)).await {
        // Changed meanwhile; the change may have requested compaction before this one began.
        Err(VolumeError::Changed) => {
            store.compactions.add(volume.id(), vnode, index);
            Ok(())
        }
        other => other,
    }
}

impl Volume {
    /// Compacts the slots of a file that many small stores have crowded, before `data` is stored into them in
    /// a transaction, which then is not refused as [`VolumeError::Scattered`]. Cost if there are none: the
    /// rows of the slots that `data` covers in part, which are read on a thread that may wait for a disk
    /// unless they are in memory.
    pub async fn compact_for(self: &Arc<Self>, fid: Fid, data: &NewData) -> Result<(), VolumeError> {
        self.make_room_for_cuts(fid).await?;
        let parts = data.slots_in_part();
        for index in self.read(move |reads| reads.crowded(fid.vnode, &parts)).await? {
            compact(self.store(), self, fid.vnode, index).await?;
        }
        Ok(())
    }
}

/// Writes the bytes of a slot, at their positions within it. Short holes are filled with zeros.
async fn write_runs(
    store: &Arc<Store>,
    (placement, index): (Placement, SlotIndex),
    slot: &Slot,
) -> Result<NewData, VolumeError> {
    let mut writer = DataWriter::from_slot(store, placement, index, 0)?.keeping_zeros();
    for run in slot.runs() {
        let Some(first) = run.first() else { continue };
        writer.skip_to(first.start.into()).await?;
        writer.push(assemble(store, run, first.start).await?).await?;
    }
    writer.finish().await
}

/// The bytes of some extents from `start` on, with holes as zeros.
async fn assemble(store: &Arc<Store>, extents: &[Extent], start: u32) -> Result<Bytes, VolumeError> {
    let mut bytes = BytesMut::new();
    for extent in extents {
        bytes.resize((extent.start - start) as usize, 0);
        match &extent.source {
            Source::Literal(literal) => bytes.extend_from_slice(literal),
            Source::Chunk { chunk, offset, len } => {
                bytes.extend_from_slice(&store.read(chunk.at, *offset..offset + len)?.await?);
            }
        }
    }
    Ok(bytes.freeze())
}

impl crate::tx::VolumeTx<'_, '_> {
    /// Replaces a slot, if it still equals `expected`, by new data; the vnode's data and version stay the
    /// same.
    pub(crate) fn replace_slot(
        &mut self,
        vnode: VnodeId,
        index: SlotIndex,
        expected: &Slot,
        data: NewData,
    ) -> Result<(), VolumeError> {
        let Some(mut record) = self.by_number(vnode)? else { return Ok(()) };
        let mut replacement = Slot::default();
        for piece in data.pieces() {
            replacement.extents.extend(self.extent_of(piece, piece.position as u32)?);
        }
        let mut same = false;
        self.check_not_staged()?;
        self.edit_slot(&mut record, index, |slot| {
            same = slot == expected;
            if same {
                *slot = replacement;
            }
        })?;
        if same {
            self.keep_when_durable(data)
        } else {
            return Err(VolumeError::Changed);
        }
        Ok(())
    }
}
