//! Leases: readers of data of older states, by commit number.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_env::sync::Notify;
use parking_lot::{Mutex, MutexGuard};

/// Number of readers of each commit number. A chunk freed by a commit is discarded only when no lease is
/// older.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<BTreeMap<u64, usize>>>);

impl Leases {
    /// Takes a lease on everything that a snapshot of this commit number references. The snapshot must be
    /// alive.
    pub(crate) fn take(&self, sequence: u64, work: Arc<Notify>) -> Lease {
        *self.lock().entry(sequence).or_default() += 1;
        Lease { leases: self.clone(), sequence, work }
    }

    pub(crate) fn oldest(&self) -> Option<u64> {
        self.lock().keys().next().copied()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock()
    }
}

/// Released when dropped.
pub(crate) struct Lease {
    leases: Leases,
    sequence: u64,
    work: Arc<Notify>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut leases = self.leases.lock();
        if let Some(count) = leases.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                leases.remove(&self.sequence);
                drop(leases);
                self.work.notify_one();
            }
        }
    }
}
