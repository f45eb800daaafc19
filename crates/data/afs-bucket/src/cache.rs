//! Least-recently-used cache of chunks that were read.

use std::collections::BTreeMap;

use afs_drive::{ChunkId, ChunkRef};
use bytes::Bytes;

/// Chunks whose bytes agreed with their checksums, the latest used up to a number of bytes.
pub(crate) struct Cache {
    chunks: BTreeMap<ChunkId, Cached>,
    by_age: BTreeMap<u64, ChunkId>,
    clock: u64,
    bytes: usize,
    bytes_max: usize,
}

struct Cached {
    chunk: ChunkRef,
    data: Bytes,
    used: u64,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { chunks: BTreeMap::new(), by_age: BTreeMap::new(), clock: 0, bytes: 0, bytes_max }
    }

    /// The bytes of the chunk with exactly this reference.
    pub(crate) fn get(&mut self, chunk: ChunkRef) -> Option<Bytes> {
        let cached = self.chunks.get_mut(&chunk.id).filter(|cached| cached.chunk == chunk)?;
        self.clock += 1;
        self.by_age.remove(&cached.used);
        cached.used = self.clock;
        self.by_age.insert(self.clock, chunk.id);
        Some(cached.data.clone())
    }

    /// Adds a chunk that was verified, and removes the least recently used ones for it.
    pub(crate) fn insert(&mut self, chunk: ChunkRef, data: Bytes) {
        if data.len() > self.bytes_max {
            return;
        }
        self.remove(chunk.id);
        self.clock += 1;
        self.bytes += data.len();
        self.by_age.insert(self.clock, chunk.id);
        self.chunks.insert(chunk.id, Cached { chunk, data, used: self.clock });
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.by_age.first_key_value()
        {
            self.remove(*oldest);
        }
    }

    pub(crate) fn remove(&mut self, chunk: ChunkId) {
        if let Some(cached) = self.chunks.remove(&chunk) {
            self.by_age.remove(&cached.used);
            self.bytes -= cached.data.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_chunks_leave() {
        let chunk = |n: u64| ChunkRef { id: ChunkId::from_parts(1, n), len: 40, crc: n as u32 };
        let mut cache = Cache::new(100);
        for n in [1, 2] {
            cache.insert(chunk(n), Bytes::from(vec![n as u8; 40]));
        }
        assert!(cache.get(chunk(1)).is_some());
        cache.insert(chunk(3), Bytes::from(vec![3; 40]));
        assert!(cache.get(chunk(2)).is_none(), "the oldest");
        assert_eq!(cache.get(chunk(1)).unwrap(), vec![1; 40]);
        assert!(cache.get(ChunkRef { crc: 9, ..chunk(1) }).is_none(), "another reference");
        cache.insert(chunk(3), Bytes::from(vec![3; 10]));
        assert_eq!((cache.bytes, cache.chunks.len(), cache.by_age.len()), (50, 2, 2));
        cache.insert(chunk(4), Bytes::from(vec![4; 101]));
        assert!(cache.get(chunk(4)).is_none(), "larger than the cache");
    }
}
