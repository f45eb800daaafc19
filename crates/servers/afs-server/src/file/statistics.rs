//! Counters of the file service.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the server started.
#[derive(Default, Debug)]
pub struct Statistics {
    calls: AtomicU64,
    fetches: AtomicU64,
    fetched_files: AtomicU64,
    fetched_bytes: AtomicU64,
    stores: AtomicU64,
    stored_files: AtomicU64,
    stored_bytes: AtomicU64,
    refused_commits: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatisticsNow {
    /// Calls of any kind.
    pub calls: u64,
    /// Fetches of status or data.
    pub fetches: u64,
    /// Fetches of data.
    pub fetched_files: u64,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// Stores of status or data.
    pub stores: u64,
    /// Stores of data.
    pub stored_files: u64,
    /// Bytes stored.
    pub stored_bytes: u64,
    /// Commits of chunks that were refused: chunks that the drive does not have, a room of another caller or for another file, used up or over, or
    /// chunks that are not staged.
    pub refused_commits: u64,
}

impl Statistics {
    pub(crate) fn count_call(&self) {
        add(&self.calls, 1);
    }

    pub(crate) fn count_fetch(&self) {
        add(&self.fetches, 1);
    }

    pub(crate) fn count_fetched_data(&self, bytes: u64) {
        add(&self.fetches, 1);
        add(&self.fetched_files, 1);
        add(&self.fetched_bytes, bytes);
    }

    pub(crate) fn count_store(&self) {
        add(&self.stores, 1);
    }

    pub(crate) fn count_stored_data(&self, bytes: u64) {
        add(&self.stores, 1);
        add(&self.stored_files, 1);
        add(&self.stored_bytes, bytes);
    }

    /// A fetch of data whose bytes are counted as they leave.
    pub(crate) fn count_path_read(&self) {
        add(&self.fetches, 1);
        add(&self.fetched_files, 1);
    }

    pub(crate) fn count_path_sent(&self, bytes: u64) {
        add(&self.fetched_bytes, bytes);
    }

    /// Returns how many there were, with this one.
    pub(crate) fn count_refused_commit(&self) -> u64 {
        self.refused_commits.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The counters now.
    pub fn now(&self) -> StatisticsNow {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatisticsNow {
            calls: read(&self.calls),
            fetches: read(&self.fetches),
            fetched_files: read(&self.fetched_files),
            fetched_bytes: read(&self.fetched_bytes),
            stores: read(&self.stores),
            stored_files: read(&self.stored_files),
            stored_bytes: read(&self.stored_bytes),
            refused_commits: read(&self.refused_commits),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
