//! Writing a scattered slot anew, as one chunk.

use std::sync::Arc;

use afs_wire::ids::VnodeId;
use bytes::{Bytes, BytesMut};

use crate::error::VolumeError;
use crate::extent::{Extent, Slot, Source};
use crate::ids::SlotIndex;
use crate::new_data::DataWriter;
use crate::rows::Rows;
use crate::store::Store;
use crate::volume::Volume;

/// Reads a slot, writes its bytes as one chunk, and puts that in its place if the slot is still what was read.
pub(crate) async fn compact(
    store: &Arc<Store>,
    volume: &Arc<Volume>,
    vnode: VnodeId,
    index: SlotIndex,
) -> Result<(), VolumeError> {
    let (lease, slot) = {
        let snapshot = store.kv.snapshot();
        let lease = store.leases.take(snapshot.sequence(), store.work.clone());
        let place = volume.place_at(&snapshot)?;
        let Some(record) = volume.record_at(&snapshot, vnode)? else { return Ok(()) };
        (lease, snapshot.slot_row(place.group, &record, index, place.epoch)?)
    };
    let (Some(first), true) = (slot.extents.first(), slot.wants_compaction()) else { return Ok(()) };
    let start = first.start;
    let bytes = assemble(store, &slot, start).await?;
    drop(lease);
    let mut writer = DataWriter::new(store.drive.clone(), 0)?;
    writer.push(bytes).await?;
    let data = writer.finish().await?;
    match volume.edit(move |tx| tx.replace_slot(vnode, index, &slot, start, data)).await {
        // It was changed meanwhile, which asked for compaction again if there is still need.
        Err(VolumeError::Busy) => Ok(()),
        other => other,
    }
}

/// The bytes of a slot from `start` on, holes as zeros.
async fn assemble(store: &Arc<Store>, slot: &Slot, start: u32) -> Result<Bytes, VolumeError> {
    let mut bytes = BytesMut::new();
    for extent in &slot.extents {
        bytes.resize((extent.start - start) as usize, 0);
        match &extent.source {
            Source::Literal(literal) => bytes.extend_from_slice(literal),
            Source::Chunk { chunk, offset, len } => {
                bytes.extend_from_slice(&store.drive.read(chunk.chunk, *offset..offset + len).await?);
            }
        }
    }
    Ok(bytes.freeze())
}

impl crate::tx::VolumeTx<'_, '_> {
    /// Puts new data in place of a slot that is still `expected`; the vnode's data and version stay the same.
    pub(crate) fn replace_slot(
        &mut self,
        vnode: VnodeId,
        index: SlotIndex,
        expected: &Slot,
        start: u32,
        data: crate::new_data::NewData,
    ) -> Result<(), VolumeError> {
        let Some(record) = self.by_number(vnode)? else { return Ok(()) };
        let mut replacement = Slot::default();
        for piece in data.pieces() {
            let source = self.source_of(piece);
            replacement.write(Extent { start: start + piece.position as u32, source });
        }
        let mut same = false;
        self.check_not_staged()?;
        self.edit_slot(&record, index, |slot| {
            same = slot == expected;
            if same {
                *slot = replacement;
            }
        })?;
        if same {
            self.keep_when_durable(data)
        } else {
            return Err(VolumeError::Busy);
        }
        Ok(())
    }
}
