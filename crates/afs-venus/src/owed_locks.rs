//! Locks that a server may still have in this machine's name though nobody here holds them: it did not answer when they were
//! given back, or asked for.

use std::collections::BTreeMap;

use afs_rpc::{Instant, sync};
use parking_lot::Mutex;

use crate::identity::Who;
use crate::key::Key;

/// Objects remembered, about 100 bytes each. What does not fit ends by itself at the server.
const OWED_MAX: usize = 10_000;

/// What is known of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owed {
    /// For whom it was held.
    pub who: Who,
    /// Until when it is certainly still ours at the server: it has not heard that the lock was given back, and the lock has not
    /// ended yet. `None`: it may have been given back, and be another machine's by now.
    pub surely_until: Option<Instant>,
}

/// All of them, those of a volume side by side. Outlives the objects' places in the status cache.
pub(crate) struct OwedLocks {
    owed: Mutex<BTreeMap<Key, Owed>>,
    /// One at a time gives them back.
    pub turn: sync::Mutex<()>,
}

impl OwedLocks {
    pub fn new() -> Self {
        OwedLocks { owed: Mutex::default(), turn: sync::Mutex::new(()) }
    }

    /// Remembers one. `false` if there are too many.
    pub fn add(&self, key: Key, owed: Owed) -> bool {
        let mut all = self.owed.lock();
        if all.len() >= OWED_MAX && !all.contains_key(&key) {
            return false;
        }
        all.insert(key, owed);
        true
    }

    /// The server has nothing any more of which nobody here knows.
    pub fn settle(&self, key: Key) {
        self.owed.lock().remove(&key);
    }

    pub fn get(&self, key: Key) -> Option<Owed> {
        self.owed.lock().get(&key).copied()
    }

    /// All, in the order of their volumes.
    pub fn keys(&self) -> Vec<Key> {
        self.owed.lock().keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.owed.lock().is_empty()
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
        let (all, owed) = (OwedLocks::new(), Owed { who: None, surely_until: None });
        assert!((0..OWED_MAX).all(|n| all.add(key(n), owed)));
        let sure = Owed { surely_until: Some(Instant::ZERO), ..owed };
        assert!(!all.add(key(OWED_MAX), owed) && all.add(key(7), sure));
        assert_eq!((all.keys().len(), all.get(key(7))), (OWED_MAX, Some(sure)));
        all.settle(key(3));
        assert!(all.add(key(OWED_MAX), owed) && !all.is_empty());
    }
}
