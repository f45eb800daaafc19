//! Resumable walk over the data of all volumes, in bounded steps, each in one snapshot. Rows that several volumes share are
//! met once.

use std::sync::Arc;

use afs_kv::{Range, Snapshot};
use afs_wire::ids::{VnodeId, VolumeId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::group::epochs;
use crate::ids::{ContentId, Epoch, SlotIndex};
use crate::key::{self, SLOTS};
use crate::location::Location;
use crate::store::VolumeStore;
use crate::volume::Volume;
use crate::walk::{VnodeRow, vnode_rows_between};

/// Position of a walk. A new one starts with the first volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataWalk {
    pub(crate) volume: VolumeId,
    pub(crate) after: VnodeId,
    /// The file in which the last step ended, and the slot to continue with.
    pub(crate) within: Option<(VnodeId, SlotIndex)>,
}

/// The state of one volume, in the snapshot of a step.
pub(crate) struct WalkedState<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(crate) volume: VolumeId,
    pub(crate) location: Location,
    /// Rows written in or before this epoch are met with the volume that references it.
    older: Option<Epoch>,
}

/// The newest row of a slot as of some epoch; an empty one is a tombstone.
pub(crate) struct SlotRow {
    pub(crate) index: SlotIndex,
    pub(crate) written: Epoch,
    pub(crate) row: Bytes,
}

/// The slots of a content, in order.
pub(crate) struct SlotRows<'s> {
    rows: Range<'s>,
    epoch: Epoch,
    held: Option<SlotRow>,
}

impl DataWalk {
    /// The volume to continue with. `None` after the last; the walk then starts again.
    pub(crate) fn next_volume(&mut self, store: &VolumeStore) -> Option<Arc<Volume>> {
        let Some(volume) = store.volumes().into_iter().find(|volume| volume.id() >= self.volume) else {
            *self = Self::default();
            return None;
        };
        if self.volume != volume.id() {
            *self = Self { volume: volume.id(), ..Self::default() };
        }
        Some(volume)
    }

    /// Visits the next vnodes of the volume, at most 256, each with the slot to begin with. `visit` returns the slot to continue
    /// with if the step is full.
    pub(crate) fn step(
        &mut self,
        snapshot: &Snapshot,
        volume: &Arc<Volume>,
        mut visit: impl FnMut(&WalkedState<'_>, &VnodeRow, SlotIndex) -> Result<Option<SlotIndex>, VolumeError>,
    ) -> Result<(), VolumeError> {
        let location = match volume.location_at(snapshot) {
            // Deleted, or moved just now: the next step tries again.
            Err(VolumeError::NoVolume | VolumeError::Busy) => return Ok(()),
            location => location?,
        };
        let state = WalkedState::new(snapshot, volume.id(), location)?;
        let all = (self.after, VnodeId(u32::MAX));
        let rows = vnode_rows_between(snapshot, location, all, VNODES_PER_STEP, |_| true)?;
        for row in &rows {
            let from = self.within.take().filter(|(vnode, _)| *vnode == row.vnode);
            let from = from.map_or(SlotIndex(0), |(_, slot)| slot);
            if let Some(next) = visit(&state, row, from)? {
                self.within = Some((row.vnode, next));
                return Ok(());
            }
            self.after = row.vnode;
        }
        if rows.len() < VNODES_PER_STEP {
            *self = Self { volume: VolumeId(volume.id().0.saturating_add(1)), ..Self::default() };
        }
        Ok(())
    }
}

impl<'s> WalkedState<'s> {
    pub(crate) fn new(
        snapshot: &'s Snapshot,
        volume: VolumeId,
        location: Location,
    ) -> Result<Self, VolumeError> {
        let older = epochs::newest_held_before(snapshot, location)?;
        Ok(Self { snapshot, volume, location, older })
    }

    /// Whether a row written in this epoch is met with this volume.
    pub(crate) fn is_own(&self, written: Epoch) -> bool {
        self.older.is_none_or(|older| written > older)
    }

    /// The slots of a content from `from` on, whichever volume they are met with.
    pub(crate) fn slots(&self, content: ContentId, from: SlotIndex) -> SlotRows<'s> {
        let prefix = key::content_prefix(self.location.group, content);
        let mut first = prefix.to_vec();
        first.extend_from_slice(&from.0.to_be_bytes());
        let end = key::after_prefix(&prefix);
        let rows = self.snapshot.range(SLOTS, key::bounds(&first, end.as_deref()), false);
        SlotRows { rows, epoch: self.location.epoch, held: None }
    }
}

impl SlotRow {
    fn of(key: &[u8], row: Bytes) -> Option<Self> {
        let index = key.get(12..16).and_then(|index| index.try_into().ok()).map(u32::from_be_bytes)?;
        Some(Self { index: SlotIndex(index), written: key::epoch_of_row(key)?, row })
    }
}

impl Iterator for SlotRows<'_> {
    type Item = Result<SlotRow, VolumeError>;

    fn next(&mut self) -> Option<Self::Item> {
        for row in self.rows.by_ref() {
            let (key, row) = match row {
                Ok(row) => row,
                Err(error) => return Some(Err(error.into())),
            };
            let Some(found) = SlotRow::of(&key, row).filter(|found| found.written <= self.epoch) else {
                continue;
            };
            let index = found.index;
            if let Some(before) = self.held.replace(found)
                && before.index != index
            {
                return Some(Ok(before));
            }
        }
        self.held.take().map(Ok)
    }
}

const VNODES_PER_STEP: usize = 256;
