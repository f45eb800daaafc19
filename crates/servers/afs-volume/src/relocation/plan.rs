//! The chunks that one step of a relocation moves, found in one snapshot.

use afs_drive::DriveId;
use afs_kv::Snapshot;
use afs_wire::ids::Fid;

use super::{Relocated, What};
use crate::data_walk::{SlotRow, WalkedState};
use crate::error::VolumeError;
use crate::exchange::ChunkPlace;
use crate::extent::Slot;
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::Rows;
use crate::store::VolumeStore;
use crate::walk::VnodeRow;

/// A chunk to be moved, and where its references are.
#[derive(Clone, Copy)]
pub(super) struct Moving {
    pub(super) place: ChunkPlace,
    pub(super) at: LocatedChunk,
}

pub(super) struct Plan {
    pub(super) chunks: Vec<Moving>,
    pub(super) report: Relocated,
    wanted: Wanted,
    bytes: u64,
    bytes_max: u64,
}

/// Which chunks are moved.
#[derive(Clone, Copy)]
enum Wanted {
    On(DriveId),
    NotOn(DriveId),
}

impl Wanted {
    fn has(self, at: LocatedChunk) -> bool {
        match self {
            Self::On(drive) => at.drive == drive,
            Self::NotOn(drive) => at.drive != drive,
        }
    }
}

impl Plan {
    /// Plans the next step, and moves the position behind it.
    pub(super) fn new(
        store: &VolumeStore,
        snapshot: &Snapshot,
        what: &mut What,
        to: DriveId,
        bytes_max: u64,
    ) -> Result<Self, VolumeError> {
        let wanted = match what {
            What::Drive(from, _) => Wanted::On(*from),
            What::File(..) => Wanted::NotOn(to),
        };
        let mut plan = Self { chunks: Vec::new(), report: Relocated::default(), wanted, bytes: 0, bytes_max };
        match what {
            What::Drive(_, walk) => match walk.next_volume(store) {
                Some(volume) => {
                    walk.step(snapshot, &volume, |state, row, from| plan.vnode(state, row, from))?
                }
                None => plan.report.complete = true,
            },
            What::File(file, from) => {
                let next = plan.file(store, snapshot, *file, *from)?;
                plan.report.complete = next.is_none();
                *from = next.unwrap_or(SlotIndex(0));
            }
        }
        Ok(plan)
    }

    /// Plans one vnode of a walk; returns the slot to continue with if the step is full.
    fn vnode(
        &mut self,
        state: &WalkedState<'_>,
        row: &VnodeRow,
        from: SlotIndex,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        self.report.rows += 1;
        let Ok(record) = VnodeRecord::decode(row.vnode, row.row.clone()) else {
            self.report.bad += 1;
            return Ok(None);
        };
        if record.is_directory() {
            return Ok(None);
        }
        self.slots(state, &record, from, |row| state.is_own(row.written))
    }

    /// Plans a part of one file, with all that it shares with clones.
    fn file(
        &mut self,
        store: &VolumeStore,
        snapshot: &Snapshot,
        file: Fid,
        from: SlotIndex,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        let location = store.volume_of(file.volume)?.location_at(snapshot)?;
        let state = WalkedState::new(snapshot, file.volume, location)?;
        self.report.rows += 1;
        let record = snapshot.vnode_row(location.group, file.vnode, location.epoch)?;
        let record = record.filter(|record| record.unique == file.unique && !record.is_directory());
        self.slots(&state, &record.ok_or(VolumeError::NoVnode)?, from, |_| true)
    }

    fn slots(
        &mut self,
        state: &WalkedState<'_>,
        record: &VnodeRecord,
        from: SlotIndex,
        is_met: impl Fn(&SlotRow) -> bool,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        for (number, row) in state.slots(record.content, from).enumerate() {
            let row = row?;
            // A step has one slot at least.
            if number > 0 && self.is_full() {
                return Ok(Some(row.index));
            }
            self.report.rows += 1;
            if !row.row.is_empty() && is_met(&row) {
                self.slot(
                    ChunkPlace { group: state.location.group, vnode: record.vnode, slot: row.index },
                    row,
                );
            }
        }
        Ok(None)
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max || self.report.rows >= ROWS_PER_STEP
    }

    /// A slot that was cut out is moved too: a clone may keep its row for as long as it lives.
    fn slot(&mut self, place: ChunkPlace, row: SlotRow) {
        let Ok(slot) = Slot::decode(row.row) else {
            self.report.bad += 1;
            return;
        };
        for chunk in slot.chunks().into_iter().filter(|chunk| self.wanted.has(chunk.at)) {
            self.bytes += u64::from(chunk.at.chunk.len);
            self.chunks.push(Moving { place, at: chunk.at });
        }
    }
}

/// Rows that one step reads, so that files without a chunk to be moved do not make it long.
const ROWS_PER_STEP: u64 = 4096;
