//! Lock between changes of a file's data and the stores that read it.
//!
//! A change first records the affected bytes and then writes them; a store that began in between would send bytes that
//! are not written yet. A store therefore begins only when no change is in progress. Changes continue while its bytes
//! are sent, except that a truncation waits for the store: the data that a close must store must not be removed
//! meanwhile.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afs_rpc::sync::{Mutex, MutexGuard, Notify};

/// Lock of the data of one file.
pub(crate) struct ChangeLock {
    /// Held to prevent further changes from beginning.
    entry: Mutex<()>,
    /// Number of changes in progress.
    changes: AtomicU32,
    done: Notify,
    /// Held by a change of the length, and by a store that no change of the length may disturb.
    length: Mutex<()>,
    /// Number of changes of the length begun so far.
    cuts: AtomicU64,
}

/// A change in progress; it ends when this is dropped.
pub(crate) struct ChangeGuard<'a>(&'a ChangeLock);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_sub(1, Ordering::SeqCst);
        self.0.done.notify_waiters();
    }
}

impl ChangeLock {
    pub fn new() -> Self {
        ChangeLock {
            entry: Mutex::new(()),
            changes: AtomicU32::new(0),
            done: Notify::new(),
            length: Mutex::new(()),
            cuts: AtomicU64::new(0),
        }
    }

    /// Begins a change of the data.
    pub async fn begin_change(&self) -> ChangeGuard<'_> {
        let _guard = self.entry.lock().await;
        self.changes.fetch_add(1, Ordering::SeqCst);
        ChangeGuard(self)
    }

    /// Waits until no change is in progress. None begins while the guard lives.
    pub async fn block_changes(&self) -> MutexGuard<'_, ()> {
        let turn = self.entry.lock().await;
        loop {
            let done = self.done.notified();
            if self.changes.load(Ordering::SeqCst) == 0 {
                return turn;
            }
            done.await;
        }
    }

    /// Begins a change of the length, after stores that block such changes.
    pub async fn begin_cut(&self) -> (MutexGuard<'_, ()>, ChangeGuard<'_>) {
        let length = self.length.lock().await;
        self.cuts.fetch_add(1, Ordering::SeqCst);
        (length, self.begin_change().await)
    }

    /// Blocks changes of the length while the guard lives.
    pub async fn block_cuts(&self) -> MutexGuard<'_, ()> {
        self.length.lock().await
    }

    /// Number of changes of the length begun so far.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}
