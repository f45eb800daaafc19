//! Second-chance cache of recently read vnode records and small contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_wire::ids::{VnodeId, VolumeId};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::record::VnodeRecord;

/// A bounded cache of committed records and their contents, in independent shards.
///
/// It never shows an older state than the index does. A commit reports its changes when they are durable and
/// not yet visible in the index: the record is dropped, and the shard remembers the commit. From then on only
/// a record read at that commit or later may be inserted, which a reader with an older snapshot does not
/// have.
pub(crate) struct VnodeCache {
    shards: Vec<Mutex<Shard>>,
    shard_capacity: usize,
    shard_bytes: usize,
}

type Key = (VolumeId, VnodeId);

#[derive(Default)]
struct Shard {
    locations: BTreeMap<Key, usize>,
    entries: Vec<Entry>,
    /// Where the search for a record to replace, or a content to drop, continues.
    hand: usize,
    /// Total bytes of the contents.
    bytes: usize,
    /// The last commit that changed a record of this shard.
    changed: u64,
}

struct Entry {
    key: Key,
    record: Arc<VnodeRecord>,
    /// The complete data of the object.
    content: Option<Bytes>,
    used: bool,
}

impl VnodeCache {
    /// A cache for about `capacity` records and `bytes` bytes of contents.
    pub(crate) fn new(capacity: usize, bytes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let shard_capacity = capacity.div_ceil(SHARDS).max(1);
        Self { shards, shard_capacity, shard_bytes: bytes / SHARDS }
    }

    pub(crate) fn get(&self, volume: VolumeId, vnode: VnodeId) -> Option<Arc<VnodeRecord>> {
        self.shard(volume, vnode).entry((volume, vnode)).map(|entry| entry.record.clone())
    }

    /// A record with the complete data of the object.
    pub(crate) fn get_content(&self, volume: VolumeId, vnode: VnodeId) -> Option<(Arc<VnodeRecord>, Bytes)> {
        let mut shard = self.shard(volume, vnode);
        let entry = shard.entry((volume, vnode))?;
        Some((entry.record.clone(), entry.content.clone()?))
    }

    /// Inserts a record read at commit `sequence`, unless a record of its shard changed since.
    pub(crate) fn insert(&self, volume: VolumeId, record: Arc<VnodeRecord>, sequence: u64) {
        let mut shard = self.shard(volume, record.vnode);
        if sequence >= shard.changed {
            shard.put((volume, record.vnode), record, self.shard_capacity);
        }
    }

    /// As [`VnodeCache::insert`], with the data read at the same commit.
    pub(crate) fn insert_content(
        &self,
        volume: VolumeId,
        record: Arc<VnodeRecord>,
        content: Bytes,
        sequence: u64,
    ) {
        let mut shard = self.shard(volume, record.vnode);
        if sequence < shard.changed || content.len() > self.shard_bytes {
            return;
        }
        shard.make_room(self.shard_bytes - content.len());
        let location = shard.put((volume, record.vnode), record, self.shard_capacity);
        shard.bytes += content.len();
        shard.entries[location].content = Some(content);
    }

    /// Drops a record that commit `sequence` changes.
    pub(crate) fn invalidate(&self, volume: VolumeId, vnode: VnodeId, sequence: u64) {
        let mut shard = self.shard(volume, vnode);
        shard.changed = shard.changed.max(sequence);
        if let Some(location) = shard.locations.remove(&(volume, vnode)) {
            shard.drop_content(location);
            shard.entries.swap_remove(location);
            if let Some(moved) = shard.entries.get(location) {
                let key = moved.key;
                shard.locations.insert(key, location);
            }
        }
    }

    /// Drops every record of a volume whose id commit `sequence` gives to a new volume.
    pub(crate) fn invalidate_volume(&self, volume: VolumeId, sequence: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.changed = shard.changed.max(sequence);
            shard.entries.retain(|entry| entry.key.0 != volume);
            shard.locations = shard.entries.iter().enumerate().map(|(at, entry)| (entry.key, at)).collect();
            shard.bytes = shard.entries.iter().map(Entry::content_len).sum();
            shard.hand = 0;
        }
    }

    fn shard(&self, volume: VolumeId, vnode: VnodeId) -> MutexGuard<'_, Shard> {
        // Neighbouring vnode numbers go to different shards; the low bit only distinguishes the class.
        let hash = (u64::from(volume.0) << 32 | u64::from(vnode.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        self.shards[hash as usize % SHARDS].lock()
    }
}

impl Shard {
    /// An entry, marked as used.
    fn entry(&mut self, key: Key) -> Option<&Entry> {
        let location = *self.locations.get(&key)?;
        let entry = &mut self.entries[location];
        entry.used = true;
        Some(entry)
    }

    /// Inserts a record without content, and returns its index.
    fn put(&mut self, key: Key, record: Arc<VnodeRecord>, capacity: usize) -> usize {
        let location = match self.locations.get(&key).copied() {
            Some(location) => location,
            None if self.entries.len() < capacity => self.entries.len(),
            None => self.victim(),
        };
        let entry = Entry { key, record, content: None, used: false };
        if location == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.drop_content(location);
            self.locations.remove(&self.entries[location].key);
            self.entries[location] = entry;
        }
        self.locations.insert(key, location);
        location
    }

    /// The next record that was not used since the hand last passed it.
    fn victim(&mut self) -> usize {
        loop {
            self.hand = (self.hand + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[self.hand].used) {
                return self.hand;
            }
        }
    }

    /// Drops contents, first those not used since the hand last passed them, until at most `bytes` are left.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let location = self.victim();
            self.drop_content(location);
        }
    }

    fn drop_content(&mut self, location: usize) {
        self.bytes -= self.entries[location].content_len();
        self.entries[location].content = None;
    }
}

impl Entry {
    fn content_len(&self) -> usize {
        self.content.as_ref().map_or(0, Bytes::len)
    }
}

const SHARDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    const VOLUME: VolumeId = VolumeId(7);

    fn record(vnode: u32) -> Arc<VnodeRecord> {
        Arc::new(example(VnodeId(vnode)))
    }

    fn total(cache: &VnodeCache) -> usize {
        cache.shards.iter().map(|shard| shard.lock().bytes).sum()
    }

    #[test]
    fn contents_stay_within_their_bytes_and_those_in_use_stay() {
        let cache = VnodeCache::new(SHARDS * 100, SHARDS * 1000);
        for vnode in 0..10_000 {
            cache.insert_content(VOLUME, record(vnode), vec![1; 100].into(), 1);
            assert!(cache.get_content(VOLUME, VnodeId(0)).is_some(), "{vnode}");
        }
        assert!(total(&cache) <= SHARDS * 1000, "{}", total(&cache));
        cache.invalidate_volume(VOLUME, 2);
        assert_eq!(total(&cache), 0);
    }

    #[test]
    fn a_content_goes_with_its_record_and_none_older_comes_in() {
        let cache = VnodeCache::new(SHARDS * 10, SHARDS * 1000);
        let content = || Bytes::from_static(b"content");
        cache.insert_content(VOLUME, record(4), content(), 1);
        cache.insert(VOLUME, record(4), 1);
        assert_eq!((cache.get_content(VOLUME, VnodeId(4)).is_some(), total(&cache)), (false, 0));
        cache.insert_content(VOLUME, record(4), content(), 1);
        assert_eq!(cache.get_content(VOLUME, VnodeId(4)).unwrap().1, content());
        cache.invalidate(VOLUME, VnodeId(4), 2);
        cache.insert_content(VOLUME, record(4), content(), 1);
        assert!(cache.get_content(VOLUME, VnodeId(4)).is_none());
        assert_eq!(total(&cache), 0);
    }

    #[test]
    fn a_content_larger_than_the_room_is_not_kept() {
        let cache = VnodeCache::new(SHARDS * 10, SHARDS * 10);
        cache.insert_content(VOLUME, record(4), vec![0; 11].into(), 1);
        assert!(cache.get_content(VOLUME, VnodeId(4)).is_none());
    }
}
