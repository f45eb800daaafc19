//! The data of vnodes: slots of files, taking contents down.

use bytes::Bytes;

use super::VolumeTx;
use crate::doomed_row;
use crate::error::VolumeError;
use crate::extent::{Extent, OwnedChunk, SLOT_LEN, Slot, Source};
use crate::ids::{ContentId, SlotIndex};
use crate::key::{self, DOOMED, RowId, SLOTS};
use crate::record::VnodeRecord;
use crate::rows::Rows;

/// Rows taken down within the transaction that frees them; more are left to the background.
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

    /// Changes one slot: its row, the chunks that no longer are in it, and what the record says is stored.
    pub(crate) fn edit_slot(
        &mut self,
        record: &mut VnodeRecord,
        index: SlotIndex,
        edit: impl FnOnce(&mut Slot),
    ) -> Result<Slot, VolumeError> {
        let (group, epoch) = (self.header.group, self.header.epoch);
        let mut slot = self.txn.slot_row(group, record, index, epoch)?;
        let before = slot.chunks();
        let (existed, allocated) = (!slot.is_empty(), slot.allocated());
        edit(&mut slot);
        record.stored = (record.stored + slot.allocated()).saturating_sub(allocated);
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

    /// Takes down a vnode's data: at once where it is little, else in the background.
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
        if slots > DIRECT_ROWS_MAX {
            self.doom(record.content);
            return Ok(());
        }
        (0..slots).try_for_each(|slot| self.drop_last_slot(record, slot))
    }

    /// Cuts a file to `length`.
    ///
    /// Cost: a row for each slot cut, or for each slot kept, whichever are fewer than 64. A file that keeps and loses more
    /// than 64 MiB costs a row for each megabyte lost.
    pub(super) fn truncate(&mut self, record: &mut VnodeRecord, length: u64) -> Result<(), VolumeError> {
        let (kept, had) = (length.div_ceil(SLOT_LEN), record.length.div_ceil(SLOT_LEN));
        let within = (length % SLOT_LEN) as u32;
        if within != 0 {
            self.edit_slot(record, SlotIndex((kept - 1) as u32), |slot| slot.erase(within, SLOT_LEN as u32))?;
        }
        if had.saturating_sub(kept) <= DIRECT_ROWS_MAX {
            (kept..had).try_for_each(|slot| self.drop_slot(record, slot))?;
        } else if kept <= DIRECT_ROWS_MAX {
            self.move_to_new_content(record, kept)?;
        } else {
            self.drop_slots_between(record, kept, had)?;
        }
        record.length = length;
        Ok(())
    }

    /// Makes a hole. Cost: the rows that there are in it.
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
        self.drop_slots_between(record, from.div_ceil(SLOT_LEN), last)
    }

    fn drop_slot(&mut self, record: &mut VnodeRecord, slot: u64) -> Result<(), VolumeError> {
        self.edit_slot(record, SlotIndex(slot as u32), |slot| slot.extents.clear()).map(drop)
    }

    /// Lets go of a slot of a content that goes as a whole.
    fn drop_last_slot(&mut self, record: &VnodeRecord, slot: u64) -> Result<(), VolumeError> {
        let (group, epoch, index) = (self.header.group, self.header.epoch, SlotIndex(slot as u32));
        let slot = self.txn.slot_row(group, record, index, epoch)?;
        if !slot.is_empty() {
            self.drop_row(RowId::Slot(group, record.content, index))?;
            self.drop_chunks(&slot.chunks(), &[])?;
        }
        Ok(())
    }

    /// Keeps the first slots under a new content number and dooms the rest with the old one.
    fn move_to_new_content(&mut self, record: &mut VnodeRecord, kept: u64) -> Result<(), VolumeError> {
        let (group, epoch) = (self.header.group, self.header.epoch);
        let content = self.header.take_content();
        self.header_changed = true;
        let mut stored = 0;
        for index in (0..kept).map(|slot| SlotIndex(slot as u32)) {
            if let Some(row) = self.txn.row(RowId::Slot(group, record.content, index), epoch)? {
                stored += self.txn.slot_row(group, record, index, epoch)?.allocated();
                // The chunks go along, so that the old content must not be seen to have them.
                self.put_row(RowId::Slot(group, record.content, index), None)?;
                self.put_row(RowId::Slot(group, content, index), Some(row.to_vec()))?;
            }
        }
        self.doom(record.content);
        (record.content, record.stored) = (content, stored);
        Ok(())
    }

    /// Makes holes of whole slots, `end` not included.
    fn drop_slots_between(
        &mut self,
        record: &mut VnodeRecord,
        first: u64,
        end: u64,
    ) -> Result<(), VolumeError> {
        if first >= end {
            return Ok(());
        }
        let prefix = key::content_prefix(self.header.group, record.content);
        let mut start = prefix.to_vec();
        start.extend_from_slice(&(first as u32).to_be_bytes());
        let end = match u32::try_from(end) {
            Ok(end) => Some([&prefix[..], &end.to_be_bytes()].concat()),
            // The last slot that there can be.
            Err(_) => key::after_prefix(&prefix).map(|end| end.to_vec()),
        };
        let mut slots = Vec::new();
        for row in self.txn.range(SLOTS, key::bounds(&start, end.as_deref()), false) {
            let (key, _) = row?;
            if let Some(slot) = key.get(12..16).and_then(|slot| slot.try_into().ok()).map(u32::from_be_bytes)
            {
                slots.push(u64::from(slot));
            }
        }
        slots.dedup();
        slots.into_iter().try_for_each(|slot| self.drop_slot(record, slot))
    }

    fn doom(&mut self, content: ContentId) {
        let row = doomed_row::encode(self.header.epoch, SlotIndex(0));
        self.txn.put(DOOMED, &key::content_prefix(self.header.group, content), row);
        self.work = true;
    }
}
