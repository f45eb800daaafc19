//! Data of vnodes within a transaction: slots of files, deletion of contents.

use afs_wire::ids::DataVersion;
use bytes::Bytes;

use super::VolumeTx;
use crate::cuts::Cuts;
use crate::doomed_row;
use crate::error::VolumeError;
use crate::extent::{Extent, OwnedChunk, SLOT_LEN, Slot, Source};
use crate::ids::{ContentId, SlotIndex};
use crate::key::{self, DOOMED, RowId};
use crate::record::VnodeRecord;
use crate::rows::Rows;

/// Rows deleted within the transaction that frees them; more are left to the background.
pub(super) const DIRECT_ROWS_MAX: u64 = 64;

impl VolumeTx<'_, '_> {
    /// Makes `bytes` the whole data of a vnode without any.
    pub(super) fn put_literal(&mut self, record: &mut VnodeRecord, bytes: Bytes) -> Result<(), VolumeError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let extent = Extent { start: 0, source: Source::Literal(bytes) };
        self.edit_slot(record, SlotIndex(0), |slot| slot.write(extent)).map(drop)
    }

    /// Changes one slot: its row, the chunks it no longer references, and the charge in the record.
    pub(crate) fn edit_slot(
        &mut self,
        record: &mut VnodeRecord,
        index: SlotIndex,
        edit: impl FnOnce(&mut Slot),
    ) -> Result<Slot, VolumeError> {
        let (group, epoch) = (self.header.group, self.header.epoch);
        let mut slot = self.txn.kept_slot(group, record, index, epoch)?;
        let (before, existed) = (slot.chunks(), !slot.is_empty());
        if record.cuts.hide(index, slot.version) {
            record.drop_hidden(slot.allocated());
            slot = Slot::default();
        }
        let allocated = slot.allocated();
        edit(&mut slot);
        record.stored = (record.stored + slot.allocated()).saturating_sub(allocated);
        slot.version = if record.cuts.cover(index) { record.data_version } else { DataVersion(0) };
        let after = slot.chunks();
        if existed || !slot.is_empty() {
            let row = (!slot.is_empty()).then(|| slot.encode());
            self.put_row(RowId::Slot(group, record.content, index), row)?;
        }
        self.drop_chunks(&before, &after)?;
        Ok(slot)
    }

    fn drop_chunks(&mut self, before: &[OwnedChunk], after: &[OwnedChunk]) -> Result<(), VolumeError> {
        let gone = before.iter().filter(|chunk| after.binary_search(chunk).is_err());
        gone.copied().try_for_each(|chunk| self.drop_chunk(chunk))
    }

    /// Deletes a vnode's data: at once if it is small, else in the background.
    pub(super) fn drop_content(&mut self, record: &VnodeRecord) -> Result<(), VolumeError> {
        if record.is_directory() {
            self.forget_pages(record.content);
            let pages = record.length.div_ceil(afs_wire::dir::PAGE_LEN as u64);
            if pages > DIRECT_ROWS_MAX {
                self.doom(record.content);
            } else {
                for page in 0..pages {
                    let page = SlotIndex(page as u32);
                    self.drop_row(RowId::Page(self.header.group, record.content, page))?;
                }
            }
            return Ok(());
        }
        let slots = record.length.div_ceil(SLOT_LEN);
        if slots > DIRECT_ROWS_MAX || !record.cuts.is_empty() {
            self.doom(record.content);
            return Ok(());
        }
        (0..slots).try_for_each(|slot| self.drop_last_slot(record, slot))
    }

    /// Truncates a file to `length`, in bounded time. Cost: the rows behind `length`, or the slots before it,
    /// at most 64; if there are more of both, the cut is recorded and completed later.
    pub(super) fn truncate(&mut self, record: &mut VnodeRecord, length: u64) -> Result<(), VolumeError> {
        let (kept, had) = (length.div_ceil(SLOT_LEN), record.length.div_ceil(SLOT_LEN));
        let within = (length % SLOT_LEN) as u32;
        if within != 0 {
            self.edit_slot(record, SlotIndex((kept - 1) as u32), |slot| slot.erase(within, SLOT_LEN as u32))?;
        }
        record.length = length;
        match self.few_slots_between(record, kept, had)? {
            Some(slots) => slots.into_iter().try_for_each(|slot| self.drop_slot(record, slot))?,
            None if kept <= DIRECT_ROWS_MAX => self.move_to_new_content(record, kept)?,
            None => self.cut_out(record, kept, had)?,
        }
        Ok(())
    }

    /// Makes a hole. Cost: the rows in it, at most 64; more are recorded and deleted later.
    pub(super) fn erase(&mut self, record: &mut VnodeRecord, from: u64, to: u64) -> Result<(), VolumeError> {
        let mut edge = |slot: u64, from: u64, to: u64| {
            let (from, to) = ((from - slot * SLOT_LEN) as u32, (to - slot * SLOT_LEN) as u32);
            self.edit_slot(record, SlotIndex(slot as u32), |slot| slot.erase(from, to)).map(drop)
        };
        let (first, last) = (from / SLOT_LEN, to / SLOT_LEN);
        if first == last {
            return edge(first, from, to);
        }
        if !from.is_multiple_of(SLOT_LEN) {
            edge(first, from, (first + 1) * SLOT_LEN)?;
        }
        if !to.is_multiple_of(SLOT_LEN) {
            edge(last, last * SLOT_LEN, to)?;
        }
        match self.few_slots_between(record, from.div_ceil(SLOT_LEN), last)? {
            Some(slots) => slots.into_iter().try_for_each(|slot| self.drop_slot(record, slot)),
            None => self.cut_out(record, from.div_ceil(SLOT_LEN), last),
        }
    }

    fn drop_slot(&mut self, record: &mut VnodeRecord, slot: SlotIndex) -> Result<(), VolumeError> {
        self.edit_slot(record, slot, |slot| slot.extents.clear()).map(drop)
    }

    /// Releases a slot of a content that is deleted as a whole.
    fn drop_last_slot(&mut self, record: &VnodeRecord, slot: u64) -> Result<(), VolumeError> {
        let (group, epoch, index) = (self.header.group, self.header.epoch, SlotIndex(slot as u32));
        let slot = self.txn.slot_row(group, record, index, epoch)?;
        if !slot.is_empty() {
            self.drop_row(RowId::Slot(group, record.content, index))?;
            self.drop_chunks(&slot.chunks(), &[])?;
        }
        Ok(())
    }

    /// Moves the first slots to a new content id and dooms the rest with the old one.
    fn move_to_new_content(&mut self, record: &mut VnodeRecord, kept: u64) -> Result<(), VolumeError> {
        let (group, epoch) = (self.header.group, self.header.epoch);
        let content = self.header.take_content();
        self.header_changed = true;
        let mut stored = 0;
        for index in (0..kept).map(|slot| SlotIndex(slot as u32)) {
            let slot = self.txn.slot_row(group, record, index, epoch)?;
            if !slot.is_empty()
                && let Some(row) = self.txn.row(RowId::Slot(group, record.content, index), epoch)?
            {
                stored += slot.allocated();
                // The chunks move along, so the old content must not be seen to reference them.
                self.put_row(RowId::Slot(group, record.content, index), None)?;
                self.put_row(RowId::Slot(group, content, index), Some(row.to_vec()))?;
            }
        }
        self.doom(record.content);
        (record.content, record.stored, record.cuts) = (content, stored, Cuts::default());
        Ok(())
    }

    fn doom(&mut self, content: ContentId) {
        let row = doomed_row::encode(self.header.epoch, SlotIndex(0));
        self.txn.put(DOOMED, &key::content_prefix(self.header.group, content), row);
        self.work = true;
    }
}
