//! States that the volume service puts volumes into, and what clients of the file service are told meanwhile
//! (docs/protocol fileserver.md "10. Volume states as seen by calls").

mod serving;
mod uses;
mod waiting;

pub(crate) use serving::{Served, is_published};
pub(crate) use uses::{UseNow, VolumeUses};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionId, VolumeId};
use parking_lot::{RwLock, RwLockWriteGuard};
use waiting::Waiting;

/// Volumes remembered as moved. Clients that ask for one that is forgotten are told that it is not here, which makes
/// them ask where it is just as well.
const MOVED_MAX: usize = 65_536;

/// Why a volume does not serve everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VolumeState {
    /// In use by the volume service for a while: changes are answered VBUSY, reads are served.
    Busy,
    /// Taken offline by the volume service.
    Offline,
    /// Not to be seen: being created or taken away.
    Hidden,
    /// Moved to another server.
    Moved,
}

/// A volume on one partition. While a volume moves between two partitions of a server it is on both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) volume: VolumeId,
    pub(crate) partition: PartitionId,
}

/// The volumes in such a state, almost always none; and how much each volume is used.
#[derive(Default)]
pub struct VolumeStates {
    count: AtomicUsize,
    table: RwLock<Table>,
    uses: VolumeUses,
    waiting: Waiting,
}

#[derive(Default)]
struct Table {
    /// Of volumes wherever on the server they are.
    everywhere: BTreeMap<VolumeId, VolumeState>,
    /// Of those that a transaction holds.
    held: BTreeMap<Place, VolumeState>,
}

impl VolumeStates {
    /// Puts a volume into a state, or out of any, on whichever partition it is.
    pub fn set(&self, volume: VolumeId, state: Option<VolumeState>) {
        let mut table = self.write();
        match state {
            Some(state) => table.everywhere.insert(volume, state),
            None => table.everywhere.remove(&volume),
        };
        if table.everywhere.len() > MOVED_MAX {
            table.everywhere.pop_first();
        }
        self.changed(table);
    }

    /// Puts a volume into a state, or out of any, on one partition.
    pub(crate) fn hold(&self, place: Place, state: Option<VolumeState>) {
        let mut table = self.write();
        match state {
            Some(state) => table.held.insert(place, state),
            None => table.held.remove(&place),
        };
        self.changed(table);
    }

    /// The state of a volume.
    pub(crate) fn get(&self, place: Place) -> Option<VolumeState> {
        if !self.any() {
            return None;
        }
        let table = self.table.read();
        table.everywhere.get(&place.volume).or_else(|| table.held.get(&place)).copied()
    }

    /// What a client that wants to read, or to change, is refused with.
    pub(crate) fn check(&self, place: Place, change: bool) -> Result<(), AbortCode> {
        refusal(self.get(place), change).map_or(Ok(()), Err)
    }

    /// What is known of a volume that is on no partition.
    fn of_absent(&self, volume: VolumeId) -> AbortCode {
        let table = self.table.read();
        let moved = table.everywhere.get(&volume) == Some(&VolumeState::Moved);
        if moved { AbortCode::VMOVED } else { AbortCode::VNOVOL }
    }

    /// How much volumes are used.
    pub(crate) fn uses(&self) -> &VolumeUses {
        &self.uses
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write()
    }

    fn changed(&self, table: RwLockWriteGuard<'_, Table>) {
        self.count.store(table.everywhere.len() + table.held.len(), Ordering::Release);
        drop(table);
        self.waiting.wake();
    }

    /// Whether any volume is in such a state.
    fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }
}

fn refusal(state: Option<VolumeState>, change: bool) -> Option<AbortCode> {
    match state? {
        VolumeState::Busy if !change => None,
        VolumeState::Busy => Some(AbortCode::VBUSY),
        VolumeState::Offline => Some(AbortCode::VOFFLINE),
        VolumeState::Hidden => Some(AbortCode::VNOVOL),
        VolumeState::Moved => Some(AbortCode::VMOVED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: VolumeId = VolumeId(1);
    const A: Place = Place { volume: VOLUME, partition: PartitionId(0) };
    const B: Place = Place { volume: VOLUME, partition: PartitionId(1) };

    #[test]
    fn reads_go_on_while_a_volume_is_busy() {
        let states = VolumeStates::default();
        let table = [
            (VolumeState::Busy, Ok(()), Err(AbortCode::VBUSY)),
            (VolumeState::Offline, Err(AbortCode::VOFFLINE), Err(AbortCode::VOFFLINE)),
            (VolumeState::Hidden, Err(AbortCode::VNOVOL), Err(AbortCode::VNOVOL)),
            (VolumeState::Moved, Err(AbortCode::VMOVED), Err(AbortCode::VMOVED)),
        ];
        for (state, read, change) in table {
            states.hold(A, Some(state));
            assert_eq!((states.check(A, false), states.check(A, true)), (read, change));
            assert_eq!(states.check(B, true), Ok(()), "on another partition");
        }
        states.hold(A, None);
        assert_eq!(states.check(A, true), Ok(()));
        states.set(VOLUME, Some(VolumeState::Moved));
        assert_eq!([A, B].map(|place| states.check(place, false)), [Err(AbortCode::VMOVED); 2]);
    }

    #[test]
    fn not_every_volume_that_ever_moved_is_remembered() {
        let states = VolumeStates::default();
        for volume in 1..=MOVED_MAX as u32 + 10 {
            states.set(VolumeId(volume), Some(VolumeState::Moved));
        }
        assert_eq!(states.count.load(Ordering::Relaxed), MOVED_MAX);
        assert_eq!(states.of_absent(VolumeId(1)), AbortCode::VNOVOL);
        assert_eq!(states.of_absent(VolumeId(MOVED_MAX as u32)), AbortCode::VMOVED);
    }
}
