//! Files whose store is to be retried: the last store failed, or the last handle was released with dirty data.

use std::collections::BTreeMap;

use afs_wire::ids::{DataVersion, FileTime, UnixSeconds};
use parking_lot::Mutex;

use crate::cache::UnsavedTicket;
use crate::error::VenusError;
use crate::identity::User;
use crate::key::Key;

/// Why data is not stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// The last error.
    pub error: VenusError,
    /// When the first store failed since the last one that succeeded.
    pub since: UnixSeconds,
}

/// A file whose store is to be retried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoreRetry {
    /// For whom it is stored.
    pub user: User,
    /// `None`: it has not been tried yet.
    pub failure: Option<Failure>,
    /// The record on disk by which the data survives the mount.
    pub kept: Option<KeptRecord>,
    /// Of data that an earlier mount kept, what its store depends on.
    pub restored: Option<Restored>,
}

/// A record on disk, and the state of the data that it describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeptRecord {
    pub ticket: UnsavedTicket,
    /// Number of changes.
    pub changes: u64,
    /// A program had the file open for writing.
    pub is_open: bool,
}

/// What the store of data of an earlier mount depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Restored {
    /// The user had a token: without one the store would be made as somebody else.
    pub had_token: bool,
    /// The version that was changed. Once a part was stored, the data is of another one, which is known to be its own.
    pub base_version: DataVersion,
    /// Its length. A cell that was made anew may give its numbers again.
    pub base_length: u64,
    /// Its modification time, if it is known.
    pub base_time: Option<FileTime>,
}

impl StoreRetry {
    fn new(user: User) -> Self {
        StoreRetry { user, failure: None, kept: None, restored: None }
    }
}

/// These files.
#[derive(Default)]
pub(super) struct StoreRetries(Mutex<BTreeMap<Key, StoreRetry>>);

impl StoreRetries {
    /// Adds a file whose store for a user failed.
    pub fn set(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(StoreRetry::new(user)).user = user;
    }

    /// Adds a file whose last handle was released; a user that is listed already stays.
    pub fn add_if_missing(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(StoreRetry::new(user));
    }

    /// Records why the store of a file that is listed failed.
    pub fn note_failure(&self, key: Key, error: &VenusError, now: UnixSeconds) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            let since = listed.failure.as_ref().map_or(now, |first| first.since);
            listed.failure = Some(Failure { error: error.clone(), since });
        }
    }

    /// The entry of a file.
    pub fn get(&self, key: Key) -> Option<StoreRetry> {
        self.0.lock().get(&key).cloned()
    }

    /// Records that the data of a file that is still listed survives the mount. Returns false if it is not listed.
    pub fn set_kept(&self, key: Key, kept: KeptRecord) -> bool {
        let mut all = self.0.lock();
        let listed = all.get_mut(&key);
        listed.map(|listed| listed.kept = Some(kept)).is_some()
    }

    /// Adds data that an earlier mount kept.
    pub fn restore(&self, key: Key, entry: StoreRetry) {
        self.0.lock().insert(key, entry);
    }

    /// Sets the user of a file that is still listed.
    pub fn keep_user(&self, key: Key, user: User) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            listed.user = user;
        }
    }

    /// Removes a file that is stored, or cannot be stored any more.
    pub fn remove(&self, key: Key) -> Option<StoreRetry> {
        self.0.lock().remove(&key)
    }

    pub fn all(&self) -> Vec<(Key, StoreRetry)> {
        self.0.lock().iter().map(|(key, listed)| (*key, listed.clone())).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
