//! Keeps changes of a file's bytes and the stores that read them apart.
//!
//! A change notes first which bytes it is about and moves them then; a store that began in between would send bytes that
//! are not there yet. A store therefore begins while no change is half done. Changes go on while its bytes travel, except
//! that a cut waits for the store: what a close was promised to store must not be taken from under it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afs_rpc::sync::{Mutex, MutexGuard, Notify};

/// The gate of one file's bytes.
pub(crate) struct ChangeLock {
    /// Held by who lets no further change begin.
    entry: Mutex<()>,
    /// Changes under way.
    changes: AtomicU32,
    done: Notify,
    /// Held by a cut, and by a store that no cut may disturb.
    length: Mutex<()>,
    /// Cuts that have begun.
    cuts: AtomicU64,
}

/// A change under way; it ends when this is dropped.
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

    /// Begins a change of bytes.
    pub async fn begin_change(&self) -> ChangeGuard<'_> {
        let _guard = self.entry.lock().await;
        self.changes.fetch_add(1, Ordering::SeqCst);
        ChangeGuard(self)
    }

    /// Waits until no change is under way. None begins while the guard lives.
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

    /// Begins a change of the length. Stores that hold lengths off are over then.
    pub async fn begin_cut(&self) -> (MutexGuard<'_, ()>, ChangeGuard<'_>) {
        let length = self.length.lock().await;
        self.cuts.fetch_add(1, Ordering::SeqCst);
        (length, self.begin_change().await)
    }

    /// Holds changes of the length off.
    pub async fn block_cuts(&self) -> MutexGuard<'_, ()> {
        self.length.lock().await
    }

    /// How many changes of the length have begun.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}
