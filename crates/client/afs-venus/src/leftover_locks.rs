//! Leftover locks: locks that a server may still hold for this client although no process here does, because the
//! release or the request got no reply.

use std::collections::BTreeMap;

use afs_rpc::{Instant, sync};
use parking_lot::Mutex;

use crate::identity::User;
use crate::key::Key;

/// Limit of objects, about 100 bytes each. Beyond it the lock ends by itself at the server.
const LEFTOVER_MAX: usize = 10_000;

/// A leftover lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeftoverLock {
    /// The user for whom it was held.
    pub user: User,
    /// Until then it is certainly still held by this client: the server has not received the release, and the lock has
    /// not expired. `None`: it may have been released, and be held by another machine.
    pub held_at_least_until: Option<Instant>,
}

/// Table of leftover locks, ordered by volume. Independent of the status cache.
pub(crate) struct LeftoverLocks {
    leftover: Mutex<BTreeMap<Key, LeftoverLock>>,
    /// Serialises their release.
    pub releasing: sync::Mutex<()>,
}

impl LeftoverLocks {
    pub fn new() -> Self {
        LeftoverLocks { leftover: Mutex::default(), releasing: sync::Mutex::new(()) }
    }

    /// Adds one. `false` if there are too many.
    pub fn add(&self, key: Key, leftover: LeftoverLock) -> bool {
        let mut all = self.leftover.lock();
        if all.len() >= LEFTOVER_MAX && !all.contains_key(&key) {
            return false;
        }
        all.insert(key, leftover);
        true
    }

    /// Removes one that was released or has ended.
    pub fn remove(&self, key: Key) {
        self.leftover.lock().remove(&key);
    }

    pub fn get(&self, key: Key) -> Option<LeftoverLock> {
        self.leftover.lock().get(&key).copied()
    }

    /// All objects, ordered by volume.
    pub fn keys(&self) -> Vec<Key> {
        self.leftover.lock().keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.leftover.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::key::CellIndex;

    fn key(n: usize) -> Key {
        Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n as u32), Uniquifier(1)))
    }

    #[test]
    fn a_full_table_refuses_new_locks_and_keeps_the_old_ones() {
        let (all, leftover) = (LeftoverLocks::new(), LeftoverLock { user: None, held_at_least_until: None });
        assert!((0..LEFTOVER_MAX).all(|n| all.add(key(n), leftover)));
        let sure = LeftoverLock { held_at_least_until: Some(Instant::ZERO), ..leftover };
        assert!(!all.add(key(LEFTOVER_MAX), leftover) && all.add(key(7), sure));
        assert_eq!((all.keys().len(), all.get(key(7))), (LEFTOVER_MAX, Some(sure)));
        all.remove(key(3));
        assert!(all.add(key(LEFTOVER_MAX), leftover) && !all.is_empty());
    }
}
