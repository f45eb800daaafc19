//! Files with unsaved data that nobody is about to store: their store has failed, or their last handle is gone.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::identity::User;
use crate::key::Key;

/// These files, and for whom each is stored again.
#[derive(Default)]
pub(super) struct StoreRetries(Mutex<BTreeMap<Key, User>>);

impl StoreRetries {
    /// A store for somebody has failed: it is tried again for him.
    pub fn set(&self, key: Key, user: User) {
        self.0.lock().insert(key, user);
    }

    /// Nobody has the file open any more; it is stored for whoever it was to be stored for before, or else for the last one.
    pub fn add_if_missing(&self, key: Key, user: User) {
        self.0.lock().entry(key).or_insert(user);
    }

    /// The user for whom a file is listed.
    pub fn get(&self, key: Key) -> Option<User> {
        self.0.lock().get(&key).copied()
    }

    /// What is still listed is stored for this user; what is not listed any more stays so.
    pub fn keep_user(&self, key: Key, user: User) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            *listed = user;
        }
    }

    /// It is saved, or never will be.
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
