//! Bounded map of what is known of capabilities. When it is full, refusals are given up first, and then what was not used for longest.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_rpc::Instant;

use super::given::Given;
use super::need::Key;

/// Most capabilities of one server, with those that are being asked for.
pub(super) const CAPABILITIES_MAX: usize = 1024;

/// What is known of a capability.
pub(super) enum Slot {
    /// Being asked for.
    Asked,
    /// Here, put at a count of uses and last used at another.
    Here { given: Arc<Given>, renewing: bool, put: u64, used: u64 },
    /// Not asked for until then.
    Refused { until: Instant },
}

/// The map.
#[derive(Default)]
pub(super) struct Slots(BTreeMap<Key, Slot>);

impl Slots {
    pub fn get(&self, key: &Key) -> Option<&Slot> {
        self.0.get(key)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Slot> {
        self.0.get_mut(key)
    }

    /// Puts a slot in the place of another one, or where there is room. Whether it is there now.
    pub fn put(&mut self, key: Key, slot: Slot, now: Instant) -> bool {
        let is_possible = self.0.contains_key(&key) || self.make_room(now);
        if is_possible {
            self.0.insert(key, slot);
        }
        is_possible
    }

    /// All of them, in the order of their keys.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Slot)> {
        self.0.iter_mut()
    }

    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Drops a capability, wherever it is. Whether it was anywhere.
    pub fn drop_given(&mut self, dropped: &Arc<Given>) -> bool {
        let before = self.0.len();
        self.0.retain(|_, slot| !matches!(slot, Slot::Here { given, .. } if Arc::ptr_eq(given, dropped)));
        self.0.len() < before
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is a free slot, after the oldest one was given up if need be. None is given up that is being asked for.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.0.len() < CAPABILITIES_MAX {
            return true;
        }
        self.0.retain(|_, slot| match slot {
            Slot::Asked => true,
            Slot::Here { given, .. } => now < given.ends,
            Slot::Refused { until } => now < *until,
        });
        if self.0.len() >= CAPABILITIES_MAX {
            let oldest = self.0.iter().filter_map(|(key, slot)| Some((age(slot)?, *key))).min();
            oldest.map(|(_, key)| self.0.remove(&key));
        }
        self.0.len() < CAPABILITIES_MAX
    }
}

/// By what slots that may be given up are ordered: refusals first.
fn age(slot: &Slot) -> Option<u64> {
    match slot {
        Slot::Asked => None,
        Slot::Refused { .. } => Some(0),
        Slot::Here { used, .. } => Some(*used),
    }
}
