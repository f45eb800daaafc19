//! Locks that a server may still have in this machine's name though nobody here holds them: it did not answer when they were
//! given back, or asked for.

use std::collections::BTreeMap;

use afs_rpc::{Instant, sync};
use parking_lot::Mutex;

use crate::identity::User;
use crate::key::Key;

/// Objects remembered, about 100 bytes each. What does not fit ends by itself at the server.
const LEFTOVER_MAX: usize = 10_000;

/// What is known of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeftoverLock {
    /// For whom it was held.
    pub user: User,
    /// Until when it is certainly still ours at the server: it has not heard that the lock was given back, and the lock has not
    /// ended yet. `None`: it may have been given back, and be another machine's by now.
    pub held_at_least_until: Option<Instant>,
}

/// All of them, those of a volume side by side. Outlives the objects' places in the status cache.
pub(crate) struct LeftoverLocks {
    leftover: Mutex<BTreeMap<Key, LeftoverLock>>,
    /// One at a time gives them back.
    pub releasing: sync::Mutex<()>,
}

impl LeftoverLocks {
    pub fn new() -> Self {
        LeftoverLocks { leftover: Mutex::default(), releasing: sync::Mutex::new(()) }
    }

    /// Remembers one. `false` if there are too many.
    pub fn add(&self, key: Key, leftover: LeftoverLock) -> bool {
        let mut all = self.leftover.lock();
        if all.len() >= LEFTOVER_MAX && !all.contains_key(&key) {
            return false;
        }
        all.insert(key, leftover);
        true
    }

    /// The server has nothing any more of which nobody here knows.
    pub fn remove(&self, key: Key) {
        self.leftover.lock().remove(&key);
    }

    pub fn get(&self, key: Key) -> Option<LeftoverLock> {
        self.leftover.lock().get(&key).copied()
    }

    /// All, in the order of their volumes.
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
    fn what_does_not_fit_is_refused_and_what_is_there_is_kept() {
        let (all, leftover) = (LeftoverLocks::new(), LeftoverLock { user: None, held_at_least_until: None });
        assert!((0..LEFTOVER_MAX).all(|n| all.add(key(n), leftover)));
        let sure = LeftoverLock { held_at_least_until: Some(Instant::ZERO), ..leftover };
        assert!(!all.add(key(LEFTOVER_MAX), leftover) && all.add(key(7), sure));
        assert_eq!((all.keys().len(), all.get(key(7))), (LEFTOVER_MAX, Some(sure)));
        all.remove(key(3));
        assert!(all.add(key(LEFTOVER_MAX), leftover) && !all.is_empty());
    }
}
