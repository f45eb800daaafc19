//! Storing of data. Source: `docs/protocol/fileserver.md` "4. Data framing on the split calls" and "11. Quota
//! and space".

use std::sync::atomic::Ordering;

use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{DataVersion, Fid, Mode};

use super::quota::STORE_SPARE;
use super::{Actor, VolumeTx};
use crate::copies;
use crate::error::VolumeError;
use crate::extent::{Extent, SLOT_LEN, Source};
use crate::ids::SlotIndex;
use crate::new_data::{NewData, Piece, Stored};
use crate::record::VnodeRecord;

/// Arguments of a store, besides the bytes.
#[derive(Clone, Copy, Debug)]
pub struct StoreData {
    /// The file.
    pub fid: Fid,
    /// Length to which the file is truncated first, if it is longer.
    pub file_length: u64,
    /// Status to set together with the data.
    pub status: SetStatus,
    /// The version that the file must still have; `None` for any.
    pub expected: Option<DataVersion>,
}

impl VolumeTx<'_, '_> {
    /// Makes new bytes part of a file and counts one change of its data.
    ///
    /// Without bytes this truncates the file to `file_length`, or extends it with zeros to the position of
    /// `data`. Several ranges are one change too.
    ///
    /// # Errors
    /// `Changed` if the file does not have the expected version; `Scattered` if
    /// [`Volume::compact_for`](crate::Volume::compact_for) was not called before, or other stores intervened:
    /// the slot is queued for compaction.
    pub fn store_data(
        &mut self,
        store: StoreData,
        data: NewData,
        actor: Actor,
    ) -> Result<VnodeRecord, VolumeError> {
        let mut record = self.vnode(store.fid)?;
        if record.kind != FileKind::File {
            return Err(VolumeError::IsDirectory);
        }
        if store.expected.is_some_and(|expected| expected != record.data_version) {
            return Err(VolumeError::Changed);
        }
        let cut = record.length.min(store.file_length);
        let length = cut.max(data.end());
        let before = record.blocks();
        let (old, adds) = (record.data_version, cut == record.length && data.begins_behind(record.length));
        // Rows written from here on carry the new version.
        record.data_version = record.data_version.next();
        if cut < record.length {
            self.truncate(&mut record, cut)?;
        }
        self.put_pieces(&mut record, &data)?;
        self.store.growths.note(store.fid, (old, record.data_version), adds);
        record.length = length;
        record.relieve(length.next_multiple_of(1024));
        self.charge(record.blocks().saturating_sub(before), STORE_SPARE)?;
        self.credit(before.saturating_sub(record.blocks()));
        record.author = actor.id;
        record.client_mod_time = self.time;
        if !actor.administrator {
            record.mode = Mode(record.mode.0 & Mode::PERMISSIONS);
        }
        self.apply_status(&mut record, &store.status, actor)?;
        self.note_change_of(&mut record, store.status.mod_time);
        self.note_update();
        self.note_cuts(&record);
        self.put_vnode(record.clone());
        self.keep_when_durable(data);
        Ok(record)
    }

    /// Gives the chunks to the file from the moment this is durable, or may be.
    pub(crate) fn keep_when_durable(&mut self, data: NewData) {
        let store = self.store.clone();
        self.txn.unless_lost(move || {
            if data.keep() {
                store.wake_rebuild();
            }
        });
    }

    /// A piece as an extent of a slot, whose chunk is the volume's from now on, with its copies; `None` for zeros.
    pub(crate) fn extent_of(&mut self, piece: &Piece, start: u32) -> Result<Option<Extent>, VolumeError> {
        let source = match &piece.stored {
            Stored::Literal(bytes) => Source::Literal(bytes.clone()),
            Stored::Chunk(at, copies) => {
                if !copies.is_empty() {
                    // Before a reader can meet one.
                    self.store.has_copies.store(true, Ordering::Relaxed);
                    copies::put(self.txn, *at, copies)?;
                }
                Source::Chunk { chunk: self.adopt_chunk(*at), offset: 0, len: at.chunk.len }
            }
            Stored::Zeros(_) => return Ok(None),
        };
        Ok(Some(Extent { start, source }))
    }

    pub(super) fn put_pieces(&mut self, record: &mut VnodeRecord, data: &NewData) -> Result<(), VolumeError> {
        let slot_of = |piece: &Piece| SlotIndex((piece.position / SLOT_LEN) as u32);
        let mut bytes = Vec::with_capacity(data.pieces().len());
        for piece in data.pieces() {
            match piece.stored {
                Stored::Zeros(len) => self.erase(record, piece.position, piece.position + len)?,
                _ => bytes.push(piece),
            }
        }
        bytes
            .chunk_by(|one, next| slot_of(one) == slot_of(next))
            .filter_map(|pieces| pieces.first().map(|first| (slot_of(first), pieces)))
            .try_for_each(|(index, pieces)| self.put_in_slot(record, index, pieces))
    }

    fn put_in_slot(
        &mut self,
        record: &mut VnodeRecord,
        index: SlotIndex,
        pieces: &[&Piece],
    ) -> Result<(), VolumeError> {
        let mut extent =
            |piece: &&Piece| self.extent_of(piece, (piece.position % SLOT_LEN) as u32).transpose();
        let extents = pieces.iter().filter_map(&mut extent).collect::<Result<Vec<_>, _>>()?;
        let mut was_scattered = false;
        let slot = self.edit_slot(record, index, |slot| {
            was_scattered = slot.wants_compaction();
            extents.into_iter().for_each(|extent| slot.write(extent));
        })?;
        let compactions = &self.store.compactions;
        if slot.wants_compaction() {
            compactions.add(self.header.id, record.vnode, index);
            self.work = true;
        }
        // Scattering by one store alone is permitted; a compacted slot has room for it.
        if was_scattered && slot.needs_compaction() {
            // Nothing of this transaction remains, so the background must be woken now.
            self.store.work.notify_one();
            return Err(VolumeError::Scattered);
        }
        Ok(())
    }
}
