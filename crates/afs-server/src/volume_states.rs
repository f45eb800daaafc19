//! States that the volume service puts volumes into, and what clients of the file service are told meanwhile
//! (docs/protocol fileserver.md "10. Volume states as seen by calls").

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;

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

/// The volumes in such a state; almost always none.
#[derive(Default)]
pub struct VolumeStates {
    count: AtomicUsize,
    states: Mutex<BTreeMap<VolumeId, VolumeState>>,
}

impl VolumeStates {
    /// Puts a volume into a state, or out of any.
    pub fn set(&self, volume: VolumeId, state: Option<VolumeState>) {
        let mut states = self.lock();
        match state {
            Some(state) => states.insert(volume, state),
            None => states.remove(&volume),
        };
        self.count.store(states.len(), Ordering::Release);
    }

    /// The state of a volume.
    pub fn get(&self, volume: VolumeId) -> Option<VolumeState> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.lock().get(&volume).copied()
    }

    /// What a client that wants to read, or to change, is refused with.
    pub fn check(&self, volume: VolumeId, change: bool) -> Result<(), AbortCode> {
        match self.get(volume) {
            None => Ok(()),
            Some(VolumeState::Busy) if !change => Ok(()),
            Some(VolumeState::Busy) => Err(AbortCode::VBUSY),
            Some(VolumeState::Offline) => Err(AbortCode::VOFFLINE),
            Some(VolumeState::Hidden) => Err(AbortCode::VNOVOL),
            Some(VolumeState::Moved) => Err(AbortCode::VMOVED),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<VolumeId, VolumeState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_on_while_a_volume_is_busy() {
        let states = VolumeStates::default();
        let volume = VolumeId(1);
        let table = [
            (VolumeState::Busy, Ok(()), Err(AbortCode::VBUSY)),
            (VolumeState::Offline, Err(AbortCode::VOFFLINE), Err(AbortCode::VOFFLINE)),
            (VolumeState::Hidden, Err(AbortCode::VNOVOL), Err(AbortCode::VNOVOL)),
            (VolumeState::Moved, Err(AbortCode::VMOVED), Err(AbortCode::VMOVED)),
        ];
        for (state, read, change) in table {
            states.set(volume, Some(state));
            assert_eq!((states.check(volume, false), states.check(volume, true)), (read, change));
        }
        states.set(volume, None);
        assert_eq!(states.check(volume, true), Ok(()));
    }
}
