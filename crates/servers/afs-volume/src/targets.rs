//! The drives to which one store writes: for each slot of the file those that its chunk goes to, without those that have failed.

use std::sync::Arc;

use afs_drive::{Drive, DriveError, DriveId};
use afs_wire::vol::Placement;

use crate::ids::SlotIndex;

/// A drive with its id.
pub(crate) type NamedDrive = (DriveId, Arc<dyn Drive>);

/// The drives of one store.
pub(crate) struct Targets {
    /// The drives for new data when the store began. Not empty.
    list: Vec<NamedDrive>,
    /// Drives that are to have each chunk.
    copies: usize,
    /// Drives over which the slots go round.
    width: usize,
    /// The slot of the first bytes that positions of the store count from.
    base: SlotIndex,
    /// Drives that have failed a part of the store, which goes on without them.
    failed: Vec<(DriveId, DriveError)>,
}

impl Targets {
    /// For drives that take new data, at least one, in their order.
    pub(crate) fn new(list: Vec<NamedDrive>, placement: Placement, base: SlotIndex) -> Self {
        let at_most = |count: u8| usize::from(count).clamp(1, list.len());
        let copies = at_most(placement.copies.map_or(1, |count| count.get()));
        let width = at_most(placement.width.get());
        Self { list, copies, width, base, failed: Vec::new() }
    }

    /// Drives that are to have each chunk.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    /// Drives over which the slots go round.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// All drives that a chunk of a slot is to be on, whatever has become of them: the one that references name first.
    pub(crate) fn all_of_slot(&self, slot: u64) -> impl Iterator<Item = &NamedDrive> {
        let first = (u64::from(self.base.0) + slot) % self.width as u64;
        round(&self.list, first as usize).take(self.copies)
    }

    /// The drives for a chunk of a slot: the one that references name first. Those that have failed are left out, and those that
    /// did not answer a moment ago, as long as another one is left.
    pub(crate) fn of_slot(&self, slot: u64, is_away: impl Fn(DriveId) -> bool) -> Vec<NamedDrive> {
        let all = self.all_of_slot(slot);
        let here: Vec<_> = all.filter(|(id, _)| !self.has_failed(*id)).cloned().collect();
        let answering: Vec<_> = here.iter().filter(|(id, _)| !is_away(*id)).cloned().collect();
        if answering.is_empty() { here } else { answering }
    }

    /// A drive of the list.
    pub(crate) fn named(&self, id: DriveId) -> Option<NamedDrive> {
        self.list.iter().find(|(listed, _)| *listed == id).cloned()
    }

    /// Leaves a drive out from now on.
    pub(crate) fn fails(&mut self, drive: DriveId, error: &DriveError) {
        if self.has_failed(drive) {
            return;
        }
        if self.copies > 1 {
            tracing::warn!(%drive, %error, "a store goes on without a drive, and lacks copies there");
        }
        self.failed.push((drive, error.clone()));
    }

    /// The drives that are left out.
    pub(crate) fn failed(&self) -> impl Iterator<Item = (DriveId, &DriveError)> {
        self.failed.iter().map(|(id, error)| (*id, error))
    }

    fn has_failed(&self, drive: DriveId) -> bool {
        self.failed().any(|(failed, _)| failed == drive)
    }

    /// Whether a rebuild may succeed now where this store has failed. A drive that is away, or full, gets its copies by a later pass.
    pub(crate) fn could_be_copied(&self, is_away: impl Fn(DriveId) -> bool) -> bool {
        self.failed().any(|(drive, error)| !is_away(drive) && !matches!(error, DriveError::NoSpace))
    }

    /// Why no drive is left for a chunk.
    pub(crate) fn why_none(&self) -> DriveError {
        self.failed.last().map_or(DriveError::Closed, |(_, error)| error.clone())
    }
}

/// A list from one of its elements on, and round to the one before that.
pub(crate) fn round<T>(list: &[T], from: usize) -> impl Iterator<Item = &T> {
    let (before, behind) = list.split_at(from.min(list.len()));
    behind.iter().chain(before)
}
