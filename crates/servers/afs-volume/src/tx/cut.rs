//! Cut of many slots of a file at once, and its completion in steps.

use afs_wire::ids::VnodeId;

use super::VolumeTx;
use super::content::DIRECT_ROWS_MAX;
use crate::cuts::CUTS_MAX;
use crate::error::VolumeError;
use crate::extent::SLOT_LEN;
use crate::ids::{ContentId, SlotIndex};
use crate::key::{self, CUTS, SLOTS};
use crate::record::VnodeRecord;
use crate::rows::{Rows, index_damaged};

/// Slots of a content that have rows, and where to continue.
type SomeSlots = (Vec<SlotIndex>, Option<SlotIndex>);

impl VolumeTx<'_, '_> {
    /// Slots that have rows, `end` not included, if they are few.
    pub(super) fn few_slots_between(
        &self,
        record: &VnodeRecord,
        first: u64,
        end: u64,
    ) -> Result<Option<Vec<SlotIndex>>, VolumeError> {
        let Some((first, last)) = whole_slots(first, end) else { return Ok(Some(Vec::new())) };
        let (slots, more) = self.slots_between(record.content, first, last, DIRECT_ROWS_MAX as usize)?;
        Ok(more.is_none().then_some(slots))
    }

    /// Turns slots into holes, `end` not included. Their rows remain, and are deleted in the background.
    ///
    /// The rest of the file is charged with the most that it can have: exact if all of it was written. Holes
    /// in it are found in the background.
    pub(super) fn cut_out(
        &mut self,
        record: &mut VnodeRecord,
        first: u64,
        end: u64,
    ) -> Result<(), VolumeError> {
        let Some((first, last)) = whole_slots(first, end) else { return Ok(()) };
        record.cuts.add(first, last, record.data_version);
        if record.cuts.len() > CUTS_MAX {
            return Err(VolumeError::Scattered);
        }
        let before = record.length.min(u64::from(first.0) * SLOT_LEN);
        let behind = record.length.saturating_sub((u64::from(last.0) + 1) * SLOT_LEN);
        record.relieve((before + behind).next_multiple_of(1024));
        Ok(())
    }

    /// Queues a file's pending cuts for the background.
    pub(super) fn note_cuts(&mut self, record: &VnodeRecord) {
        if !record.cuts.is_empty() {
            let key = key::content_prefix(self.header.group, record.content);
            self.txn.put(CUTS, &key, record.vnode.0.to_be_bytes().to_vec());
            self.work = true;
        }
    }

    /// Deletes some slots that were cut out of a file: true when none of this content is left.
    pub(crate) fn complete_cuts(&mut self, vnode: VnodeId, content: ContentId) -> Result<bool, VolumeError> {
        let record = self.by_number(vnode)?.filter(|record| record.content == content);
        // A content that has lost its vnode is deleted as a whole.
        let Some(mut record) = record else { return Ok(true) };
        let Some(cut) = record.cuts.first() else { return Ok(true) };
        let before = record.blocks();
        let (slots, next) = self.slots_between(content, cut.first, cut.last, SLOTS_PER_STEP)?;
        for slot in slots {
            let kept = self.txn.kept_slot(self.header.group, &record, slot, self.header.epoch)?;
            if record.cuts.hide(slot, kept.version) {
                self.edit_slot(&mut record, slot, |_| {})?;
            }
        }
        record.cuts.completed(next);
        self.credit(before.saturating_sub(record.blocks()));
        let done = record.cuts.is_empty();
        self.put_vnode(record);
        Ok(done)
    }

    /// Slots that have rows of any epoch, at most `limit`.
    fn slots_between(
        &self,
        content: ContentId,
        first: SlotIndex,
        last: SlotIndex,
        limit: usize,
    ) -> Result<SomeSlots, VolumeError> {
        let prefix = key::content_prefix(self.header.group, content);
        let start = [&prefix[..], &first.0.to_be_bytes()].concat();
        let end = key::after_prefix(&[&prefix[..], &last.0.to_be_bytes()].concat());
        let mut slots: Vec<SlotIndex> = Vec::new();
        for row in self.txn.range(SLOTS, key::bounds(&start, end.as_deref()), false) {
            let (key, _) = row?;
            let slot = key.get(12..16).and_then(|slot| slot.try_into().ok()).map(u32::from_be_bytes);
            let slot = SlotIndex(slot.ok_or_else(|| index_damaged("the key of a slot is too short"))?);
            if slots.last() == Some(&slot) {
                continue;
            }
            if slots.len() == limit {
                return Ok((slots, Some(slot)));
            }
            slots.push(slot);
        }
        Ok((slots, None))
    }
}

/// The first and the last of a range of slots, unless it is empty.
fn whole_slots(first: u64, end: u64) -> Option<(SlotIndex, SlotIndex)> {
    (first < end).then(|| (SlotIndex(first as u32), SlotIndex((end - 1) as u32)))
}

/// Slots that one step deletes.
const SLOTS_PER_STEP: usize = 256;
