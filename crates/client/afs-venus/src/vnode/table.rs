//! Table of all objects in the status cache, by age and by the expiry of their promises.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use afs_rpc::Instant;
use afs_wire::ids::VolumeId;
use parking_lot::Mutex;

use crate::key::{CellIndex, Key, Map};
use crate::vnode::Vnode;

/// The status cache: bounded, with eviction of the least recently used objects.
pub(crate) struct VnodeTable {
    max: usize,
    inner: Mutex<Inner>,
    expiries: Mutex<Expiries>,
}

#[derive(Default)]
struct Inner {
    vnodes: Map<Key, (Arc<Vnode>, u64)>,
    by_age: BTreeMap<u64, Key>,
    by_volume: BTreeMap<(CellIndex, VolumeId), BTreeSet<Key>>,
    next_age: u64,
}

#[derive(Default)]
struct Expiries {
    by_time: BTreeSet<(Instant, Key)>,
    by_key: Map<Key, Instant>,
}

/// Number of the oldest objects that are examined for eviction.
const CANDIDATES: usize = 64;

impl VnodeTable {
    pub fn new(max: usize) -> Self {
        VnodeTable {
            max: max.max(100),
            inner: Mutex::new(Inner::default()),
            expiries: Mutex::new(Expiries::default()),
        }
    }

    /// The object, created if needed and made the youngest; and the objects evicted for it.
    pub fn get_or_make(&self, key: Key) -> (Arc<Vnode>, Vec<Arc<Vnode>>) {
        let mut inner = self.inner.lock();
        if let Some(vnode) = inner.touch(key) {
            return (vnode, Vec::new());
        }
        inner.next_age += 1;
        let age = inner.next_age;
        let vnode = Arc::new(Vnode::new(key));
        inner.vnodes.insert(key, (vnode.clone(), age));
        inner.by_age.insert(age, key);
        inner.by_volume.entry(key.volume()).or_default().insert(key);
        let dropped = inner.shrink(self.max);
        drop(inner);
        dropped.iter().for_each(|vnode| self.set_expiry(vnode.key, None));
        (vnode, dropped)
    }

    /// The object, if cached; its age is unchanged.
    pub fn peek(&self, key: Key) -> Option<Arc<Vnode>> {
        self.inner.lock().vnodes.get(&key).map(|(vnode, _)| vnode.clone())
    }

    pub fn remove(&self, key: Key) {
        let mut inner = self.inner.lock();
        if let Some((_, age)) = inner.vnodes.remove(&key) {
            inner.by_age.remove(&age);
            inner.leave_volume(key);
        }
        drop(inner);
        self.set_expiry(key, None);
    }

    /// Sets the expiry of an object's promise.
    pub fn set_expiry(&self, key: Key, until: Option<Instant>) {
        let mut expiries = self.expiries.lock();
        if let Some(old) = expiries.by_key.remove(&key) {
            expiries.by_time.remove(&(old, key));
        }
        if let Some(until) = until {
            expiries.by_key.insert(key, until);
            expiries.by_time.insert((until, key));
        }
    }

    /// Objects whose promise has expired, at most `max`; each is returned once.
    pub fn take_expired(&self, now: Instant, max: usize) -> Vec<Key> {
        let mut expiries = self.expiries.lock();
        let over: Vec<_> =
            expiries.by_time.iter().take_while(|(until, _)| *until <= now).take(max).copied().collect();
        for entry in &over {
            expiries.by_time.remove(entry);
            expiries.by_key.remove(&entry.1);
        }
        over.into_iter().map(|(_, key)| key).collect()
    }

    /// All objects, oldest first.
    pub fn all(&self) -> Vec<Arc<Vnode>> {
        let inner = self.inner.lock();
        let get = |key: &Key| inner.vnodes.get(key).map(|(vnode, _)| vnode.clone());
        inner.by_age.values().filter_map(get).collect()
    }

    /// The nth object by age; the order changes as objects are used.
    pub fn nth(&self, index: usize) -> Option<Arc<Vnode>> {
        let inner = self.inner.lock();
        let key = inner.by_age.values().nth(index)?;
        inner.vnodes.get(key).map(|(vnode, _)| vnode.clone())
    }

    /// Whether there is an object of a volume.
    pub fn has_any_of(&self, cell: CellIndex, volume: VolumeId) -> bool {
        self.inner.lock().by_volume.contains_key(&(cell, volume))
    }

    /// All objects of a volume, in time proportional to their number.
    pub fn of_volume(&self, cell: CellIndex, volume: VolumeId) -> Vec<Arc<Vnode>> {
        let inner = self.inner.lock();
        let keys = inner.by_volume.get(&(cell, volume)).into_iter().flatten();
        keys.filter_map(|key| inner.vnodes.get(key).map(|(vnode, _)| vnode.clone())).collect()
    }

    /// Objects of the same volume with near numbers, which were often made together: at most `examined` with higher ones,
    /// then as many with lower ones, the nearest first.
    pub fn near(&self, key: Key, examined: usize) -> Vec<Arc<Vnode>> {
        let inner = self.inner.lock();
        let Some(keys) = inner.by_volume.get(&key.volume()) else { return Vec::new() };
        let higher = keys.range((Bound::Excluded(key), Bound::Unbounded)).take(examined);
        let keys = higher.chain(keys.range(..key).rev().take(examined));
        keys.filter_map(|key| inner.vnodes.get(key).map(|(vnode, _)| vnode.clone())).collect()
    }

    pub fn count(&self) -> usize {
        self.inner.lock().vnodes.len()
    }
}

impl Inner {
    fn leave_volume(&mut self, key: Key) {
        if let Some(keys) = self.by_volume.get_mut(&key.volume()) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_volume.remove(&key.volume());
            }
        }
    }

    fn touch(&mut self, key: Key) -> Option<Arc<Vnode>> {
        let (vnode, age) = self.vnodes.get_mut(&key)?;
        self.by_age.remove(age);
        self.next_age += 1;
        *age = self.next_age;
        self.by_age.insert(self.next_age, key);
        Some(vnode.clone())
    }

    /// Evicts old unused objects until the bound is kept, or all candidates are in use.
    fn shrink(&mut self, max: usize) -> Vec<Arc<Vnode>> {
        let excess = self.vnodes.len().saturating_sub(max);
        if excess == 0 {
            return Vec::new();
        }
        let candidates: Vec<(u64, Key)> =
            self.by_age.iter().take(CANDIDATES).map(|(a, k)| (*a, *k)).collect();
        let mut dropped = Vec::new();
        for (age, key) in candidates {
            let Some((vnode, _)) = self.vnodes.get(&key) else { continue };
            // One reference is the table's own. A task that works on the object holds another.
            if Arc::strong_count(vnode) > 1 || !vnode.state().may_be_evicted() {
                // So that many such objects do not hide others from the next search.
                drop(self.touch(key));
                continue;
            }
            self.by_age.remove(&age);
            dropped.extend(self.vnodes.remove(&key).map(|(vnode, _)| vnode));
            self.leave_volume(key);
            if dropped.len() > excess {
                break;
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use afs_wire::ids::{Fid, Uniquifier, VnodeId};

    use super::*;
    use crate::residency::Residency;

    fn key(n: u32) -> Key {
        Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
    }

    #[test]
    fn the_least_recently_used_is_evicted_first_and_nothing_in_use() {
        let table = VnodeTable::new(100);
        let held = table.get_or_make(key(0)).0;
        for n in 1..100 {
            table.get_or_make(key(n));
        }
        table.get_or_make(key(1));
        let (_, dropped) = table.get_or_make(key(100));
        let dropped: Vec<_> = dropped.iter().map(|vnode| vnode.key).collect();
        assert!(dropped.contains(&key(2)) && !dropped.contains(&key(0)) && !dropped.contains(&key(1)));
        assert!(table.count() <= 100);
        assert_eq!(held.key, key(0));
    }

    #[test]
    fn many_old_objects_that_stay_do_not_keep_others_in_the_table() {
        let table = VnodeTable::new(400);
        for n in 0..200 {
            table.get_or_make(key(n)).0.state().residency = Residency::Kept;
        }
        (200..2000).for_each(|n| drop(table.get_or_make(key(n))));
        assert!(table.count() <= 400 + CANDIDATES, "{}", table.count());
        assert!((0..200).all(|n| table.peek(key(n)).is_some()));
    }

    #[test]
    fn objects_are_found_by_their_volume_until_they_are_dropped() {
        let table = VnodeTable::new(100);
        (0..150).for_each(|n| drop(table.get_or_make(key(n))));
        assert_eq!(table.of_volume(CellIndex(0), VolumeId(1)).len(), table.count());
        assert!(table.of_volume(CellIndex(0), VolumeId(2)).is_empty());
        (0..150).for_each(|n| table.remove(key(n)));
        assert!(table.of_volume(CellIndex(0), VolumeId(1)).is_empty());
    }

    #[test]
    fn the_nearest_objects_of_a_volume_are_found_within_bounds() {
        let table = VnodeTable::new(100);
        (0..50).for_each(|n| drop(table.get_or_make(key(n))));
        drop(table.get_or_make(Key::new(CellIndex(0), Fid::new(VolumeId(2), VnodeId(10), Uniquifier(1)))));
        let near = |n, examined| -> Vec<u32> {
            table.near(key(n), examined).iter().map(|vnode| vnode.key.fid.vnode.0).collect()
        };
        assert_eq!(near(10, 2), [11, 12, 9, 8]);
        assert_eq!(near(49, 3), [48, 47, 46]);
        assert_eq!(near(99, 1), [49]);
    }

    #[test]
    fn ends_of_promises_come_in_order_and_once() {
        let table = VnodeTable::new(100);
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        table.set_expiry(key(1), Some(at(10)));
        table.set_expiry(key(2), Some(at(5)));
        table.set_expiry(key(2), Some(at(7)));
        assert!(table.take_expired(at(6), 9).is_empty());
        assert_eq!(table.take_expired(at(20), 1), [key(2)]);
        assert_eq!(table.take_expired(at(20), 9), [key(1)]);
        assert!(table.take_expired(at(99), 9).is_empty());
    }
}
