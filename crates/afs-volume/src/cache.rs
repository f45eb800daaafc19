//! Vnode records that readers asked for lately.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afs_wire::ids::{VnodeId, VolumeId};

use crate::record::VnodeRecord;

/// A bounded cache of committed records, in shards that share nothing.
///
/// It never shows an older state than the index does. A commit tells it what changed when the change is durable
/// and not yet visible in the index: the record goes, and the shard remembers the commit. From then on only a
/// record read at that commit or later may come in, which a reader whose snapshot is older does not have.
pub(crate) struct VnodeCache {
    shards: Vec<Mutex<Shard>>,
    shard_capacity: usize,
}

type Key = (VolumeId, VnodeId);

#[derive(Default)]
struct Shard {
    places: BTreeMap<Key, usize>,
    entries: Vec<Entry>,
    /// Where the search for a record to replace goes on.
    hand: usize,
    /// The last commit that changed a record of this shard.
    changed: u64,
}

struct Entry {
    key: Key,
    record: Arc<VnodeRecord>,
    used: bool,
}

impl VnodeCache {
    /// Room for about `capacity` records.
    pub(crate) fn new(capacity: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, shard_capacity: capacity.div_ceil(SHARDS).max(1) }
    }

    pub(crate) fn get(&self, volume: VolumeId, vnode: VnodeId) -> Option<Arc<VnodeRecord>> {
        let mut shard = self.shard(volume, vnode);
        let place = *shard.places.get(&(volume, vnode))?;
        let entry = &mut shard.entries[place];
        entry.used = true;
        Some(entry.record.clone())
    }

    /// Keeps a record read at commit `sequence`, unless something of its shard changed since.
    pub(crate) fn insert(&self, volume: VolumeId, record: Arc<VnodeRecord>, sequence: u64) {
        let key = (volume, record.vnode);
        let mut shard = self.shard(volume, record.vnode);
        if sequence < shard.changed {
            return;
        }
        let entry = Entry { key, record, used: false };
        match shard.places.get(&key).copied() {
            Some(place) => shard.entries[place] = entry,
            None if shard.entries.len() < self.shard_capacity => shard.append(entry),
            None => shard.replace(entry),
        }
    }

    /// Drops a record that commit `sequence` changes.
    pub(crate) fn invalidate(&self, volume: VolumeId, vnode: VnodeId, sequence: u64) {
        let mut shard = self.shard(volume, vnode);
        shard.changed = shard.changed.max(sequence);
        if let Some(place) = shard.places.remove(&(volume, vnode)) {
            shard.entries.swap_remove(place);
            if let Some(moved) = shard.entries.get(place) {
                let key = moved.key;
                shard.places.insert(key, place);
            }
        }
    }

    /// Drops every record of a volume whose number commit `sequence` gives to a new one.
    pub(crate) fn invalidate_volume(&self, volume: VolumeId, sequence: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.changed = shard.changed.max(sequence);
            shard.entries.retain(|entry| entry.key.0 != volume);
            shard.places = shard.entries.iter().enumerate().map(|(at, entry)| (entry.key, at)).collect();
            shard.hand = 0;
        }
    }

    fn shard(&self, volume: VolumeId, vnode: VnodeId) -> MutexGuard<'_, Shard> {
        // Neighbouring vnode numbers go to different shards; the low bit only tells the class.
        let hash = (u64::from(volume.0) << 32 | u64::from(vnode.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        self.shards[hash as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn append(&mut self, entry: Entry) {
        self.places.insert(entry.key, self.entries.len());
        self.entries.push(entry);
    }

    /// Replaces the next record that was not used since the hand last passed it.
    fn replace(&mut self, entry: Entry) {
        loop {
            self.hand = (self.hand + 1) % self.entries.len();
            let candidate = &mut self.entries[self.hand];
            if !std::mem::take(&mut candidate.used) {
                self.places.remove(&candidate.key);
                self.places.insert(entry.key, self.hand);
                *candidate = entry;
                return;
            }
        }
    }
}

const SHARDS: usize = 64;
