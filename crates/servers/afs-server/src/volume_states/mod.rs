//! Volume states set by the volume service, and the codes that clients of the file service get meanwhile
//! (docs/protocol fileserver.md "10. Volume states as seen by calls").

mod fenced;
mod serving;
mod uses;
mod waiting;

pub(crate) use fenced::{FENCED, is_fenced};
pub(crate) use serving::{Served, is_published};
pub(crate) use uses::{UseNow, VolumeUses};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionId, VolumeId};
use parking_lot::{RwLock, RwLockWriteGuard};
use waiting::Waiting;

use crate::file::FileServer;
use crate::leases::Bar;
use crate::partitions::Partitions;

/// Volumes remembered as moved. For one that is no longer remembered clients get "not here", on which they
/// ask for its location as well.
const MOVED_MAX: usize = 65_536;

/// Why a volume does not serve all calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VolumeState {
    /// In use by the volume service: changes are answered VBUSY, reads are served.
    Busy,
    /// Taken offline by the volume service.
    Offline,
    /// Invisible: being created or deleted.
    Hidden,
    /// Moved to another server.
    Moved,
}

/// A volume on one partition. During a move between two partitions of a server it is on both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Site {
    pub(crate) volume: VolumeId,
    pub(crate) partition: PartitionId,
}

/// The volumes that are in such a state (almost always none), and the use counts of all volumes.
#[derive(Default)]
pub struct VolumeStates {
    count: AtomicUsize,
    /// Whether read-write volumes wait to be compared with the location database.
    unsettled: AtomicBool,
    table: RwLock<Table>,
    uses: VolumeUses,
    waiting: Waiting,
    /// Revokes what the data path has given out.
    files: OnceLock<Weak<FileServer>>,
}

#[derive(Default)]
struct Table {
    /// States of volumes on any partition.
    everywhere: BTreeMap<VolumeId, VolumeState>,
    /// States set by transactions, on one partition.
    held: BTreeMap<Site, VolumeState>,
}

impl VolumeStates {
    /// Sets or clears the state of a volume, on any partition.
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

    /// Sets or clears the state of a volume on one partition.
    pub(crate) fn hold(&self, site: Site, state: Option<VolumeState>) {
        let mut table = self.write();
        match state {
            Some(state) => table.held.insert(site, state),
            None => table.held.remove(&site),
        };
        self.changed(table);
    }

    /// The state of a volume.
    pub(crate) fn get(&self, site: Site) -> Option<VolumeState> {
        if !self.any() {
            return None;
        }
        let table = self.table.read();
        table.everywhere.get(&site.volume).or_else(|| table.held.get(&site)).copied()
    }

    /// The code that refuses a client's read, or change.
    pub(crate) fn check(&self, site: Site, change: bool) -> Result<(), AbortCode> {
        refusal(self.get(site), change).map_or(Ok(()), Err)
    }

    /// The code for a volume that is on no partition.
    fn of_absent(&self, partitions: &Partitions, volume: VolumeId) -> AbortCode {
        let table = self.table.read();
        let moved = table.everywhere.get(&volume) == Some(&VolumeState::Moved);
        if moved { AbortCode::VMOVED } else { partitions.code_of_absent() }
    }

    /// Changes of read-write volumes wait until [`VolumeStates::settle`]: another server may have become theirs.
    pub fn unsettle(&self) {
        self.unsettled.store(true, Ordering::Release);
    }

    /// The volumes were compared with the location database, or that cannot be.
    pub fn settle(&self) {
        self.unsettled.store(false, Ordering::Release);
        self.waiting.wake();
    }

    fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire)
    }

    /// The file server whose volumes these are.
    pub(crate) fn belong_to(&self, files: Weak<FileServer>) {
        // One file server has the volumes of a process.
        let _ = self.files.set(files);
    }

    /// The content of a volume was replaced, or it went out of service here. Whoever has a capability for it
    /// needs another one.
    pub(crate) fn revoke(&self, volume: VolumeId) {
        if let Some(files) = self.files.get().and_then(Weak::upgrade) {
            files.data_path.volume_changed(volume);
        }
    }

    /// Recalls all leases in a volume. No directory of it is lent until the bar is dropped.
    pub(crate) async fn recall_leases(&self, volume: VolumeId) -> Option<Arc<Bar>> {
        let files = self.files.get().and_then(Weak::upgrade)?;
        Some(Arc::new(files.recall_volume(volume).await))
    }

    /// Use counts of volumes.
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
        self.count.load(Ordering::Acquire) != 0 || self.is_unsettled()
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
    const A: Site = Site { volume: VOLUME, partition: PartitionId(0) };
    const B: Site = Site { volume: VOLUME, partition: PartitionId(1) };

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
        assert_eq!([A, B].map(|site| states.check(site, false)), [Err(AbortCode::VMOVED); 2]);
    }

    #[test]
    fn not_every_volume_that_ever_moved_is_remembered() {
        let states = VolumeStates::default();
        for volume in 1..=MOVED_MAX as u32 + 10 {
            states.set(VolumeId(volume), Some(VolumeState::Moved));
        }
        assert_eq!(states.count.load(Ordering::Relaxed), MOVED_MAX);
        assert_eq!(states.of_absent(&Partitions::new([]), VolumeId(1)), AbortCode::VNOVOL);
        assert_eq!(states.of_absent(&Partitions::new([]), VolumeId(MOVED_MAX as u32)), AbortCode::VMOVED);
    }
}
