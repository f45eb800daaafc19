//! Files with unsaved data that nobody is about to store: their store has failed, or their last handle is gone.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::identity::Who;
use crate::key::Key;

/// These files, and for whom each is stored again.
#[derive(Default)]
pub(super) struct Unsaved(Mutex<BTreeMap<Key, Who>>);

impl Unsaved {
    /// A store for somebody has failed: it is tried again for him.
    pub fn failed_for(&self, key: Key, who: Who) {
        self.0.lock().insert(key, who);
    }

    /// Nobody has the file open any more; it is stored for whoever it was to be stored for before, or else for the last one.
    pub fn left_by(&self, key: Key, who: Who) {
        self.0.lock().entry(key).or_insert(who);
    }

    /// The user for whom a file is listed.
    pub fn listed_for(&self, key: Key) -> Option<Who> {
        self.0.lock().get(&key).copied()
    }

    /// What is still listed is stored for this user; what is not listed any more stays so.
    pub fn stays_for(&self, key: Key, who: Who) {
        if let Some(listed) = self.0.lock().get_mut(&key) {
            *listed = who;
        }
    }

    /// It is saved, or never will be.
    pub fn forget(&self, key: Key) {
        self.0.lock().remove(&key);
    }

    pub fn all(&self) -> Vec<(Key, Who)> {
        self.0.lock().iter().map(|(key, who)| (*key, *who)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
