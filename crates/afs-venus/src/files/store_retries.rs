//! Files whose store is to be retried: the last store failed, or the last handle was released with dirty data.

use std::collections::BTreeMap;

use afs_wire::ids::UnixSeconds;
use parking_lot::Mutex;

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
}

/// These files.
#[derive(Default)]
pub(super) struct StoreRetries(Mutex<BTreeMap<Key, StoreRetry>>);

impl StoreRetries {
    /// Adds a file whose store for a user failed.
    pub fn set(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(StoreRetry { user, failure: None }).user = user;
    }

    /// Adds a file whose last handle was released; a user that is listed already stays.
    pub fn add_if_missing(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(StoreRetry { user, failure: None });
    }

    /// Records why the store of a file that is listed failed.
    pub fn note_failure(&self, key: Key, error: &VenusError, now: UnixSeconds) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            let since = listed.failure.as_ref().map_or(now, |first| first.since);
            listed.failure = Some(Failure { error: error.clone(), since });
        }
    }

    /// The user for whom a file is listed.
    pub fn get(&self, key: Key) -> Option<User> {
        self.0.lock().get(&key).map(|listed| listed.user)
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
