//! Files with unsaved data that nobody is about to store: their store has failed, or their last handle is gone.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::identity::Who;
use crate::key::Key;
use crate::lock;

/// These files, and for whom each is stored again.
#[derive(Default)]
pub(super) struct Unsaved(Mutex<BTreeMap<Key, Who>>);

impl Unsaved {
    /// A store for somebody has failed: it is tried again for him.
    pub fn failed_for(&self, key: Key, who: Who) {
        lock(&self.0).insert(key, who);
    }

    /// Nobody has the file open any more; it is stored for whoever it was to be stored for before, or else for the last one.
    pub fn left_by(&self, key: Key, who: Who) {
        lock(&self.0).entry(key).or_insert(who);
    }

    /// It is saved, or never will be.
    pub fn forget(&self, key: Key) {
        lock(&self.0).remove(&key);
    }

    pub fn all(&self) -> Vec<(Key, Who)> {
        lock(&self.0).iter().map(|(key, who)| (*key, *who)).collect()
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}
