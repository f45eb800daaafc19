//! Files whose store is to be retried: the last store failed, or the last handle was released with dirty data.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::identity::User;
use crate::key::Key;

/// These files, and for which user each is stored.
#[derive(Default)]
pub(super) struct StoreRetries(Mutex<BTreeMap<Key, User>>);

impl StoreRetries {
    /// Adds a file whose store for a user failed.
    pub fn set(&self, key: Key, user: User) {
        self.0.lock().insert(key, user);
    }

    /// Adds a file whose last handle was released; a user that is listed already stays.
    pub fn add_if_missing(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(user);
    }

    /// The user for whom a file is listed.
    pub fn get(&self, key: Key) -> Option<User> {
        self.0.lock().get(&key).copied()
    }

    /// Sets the user of a file that is still listed.
    pub fn keep_user(&self, key: Key, user: User) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            *listed = user;
        }
    }

    /// Removes a file that is stored, or cannot be stored any more.
    pub fn remove(&self, key: Key) {
        self.0.lock().remove(&key);
    }

    pub fn all(&self) -> Vec<(Key, User)> {
        self.0.lock().iter().map(|(key, user)| (*key, *user)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
