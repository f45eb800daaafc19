//! Cache of rows read from the disk, bounded, and emptied by every commit of the store.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::Row;

/// Bytes of keys and values in one generation, and so in half the cache.
const BYTES_MAX: usize = 2 << 20;
/// Estimated overhead of a cached result, in bytes.
const RESULT_OVERHEAD: usize = 128;

/// A query on the rows of a table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Query {
    /// The row of a key.
    Get(&'static str, Vec<u8>),
    /// At most so many rows between two keys.
    Range(&'static str, Vec<u8>, Vec<u8>, usize),
}

/// Results as of one commit. Bounded: a result not used since half the cache was refilled is evicted.
#[derive(Default)]
pub(crate) struct RowCache(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    sequence: u64,
    young: BTreeMap<Query, Vec<Row>>,
    old: BTreeMap<Query, Vec<Row>>,
    /// Bytes of the young generation.
    bytes: usize,
}

impl RowCache {
    /// The result found in exactly this commit.
    pub(crate) fn get(&self, sequence: u64, query: &Query) -> Option<Vec<Row>> {
        let mut cache = self.0.lock();
        if cache.sequence != sequence {
            return None;
        }
        if let Some(rows) = cache.young.get(query) {
            return Some(rows.clone());
        }
        let rows = cache.old.remove(query)?;
        cache.put(query.clone(), rows.clone());
        Some(rows)
    }

    /// Stores a result found in a commit. A slow read does not bring back what a later commit has changed.
    pub(crate) fn put(&self, sequence: u64, query: Query, rows: Vec<Row>) {
        let mut cache = self.0.lock();
        if cache.sequence > sequence {
            return;
        }
        if cache.sequence < sequence {
            *cache = Generations { sequence, ..Generations::default() };
        }
        cache.put(query, rows);
    }
}

impl Generations {
    fn put(&mut self, query: Query, rows: Vec<Row>) {
        let bytes = RESULT_OVERHEAD + query.bytes() + rows.iter().map(row_bytes).sum::<usize>();
        if self.bytes + bytes > BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        if bytes <= BYTES_MAX {
            self.bytes += bytes;
            self.young.insert(query, rows);
        }
    }
}

impl Query {
    fn bytes(&self) -> usize {
        match self {
            Query::Get(_, key) => key.len(),
            Query::Range(_, from, until, _) => from.len() + until.len(),
        }
    }
}

fn row_bytes((key, value): &Row) -> usize {
    RESULT_OVERHEAD + key.len() + value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Query {
        Query::Get("table", number.to_be_bytes().to_vec())
    }

    fn rows(value: u8) -> Vec<Row> {
        vec![(Vec::new(), vec![value; 1000])]
    }

    #[test]
    fn an_answer_is_good_for_its_commit_alone() {
        let cache = RowCache::default();
        cache.put(5, key(1), rows(1));
        assert_eq!(cache.get(5, &key(1)), Some(rows(1)));
        assert_eq!(cache.get(6, &key(1)), None);
        cache.put(6, key(1), rows(2));
        cache.put(5, key(1), rows(1));
        assert_eq!(cache.get(6, &key(1)), Some(rows(2)), "the late one is not kept");
        assert_eq!(cache.get(5, &key(1)), None);
    }

    #[test]
    fn a_walk_through_all_rows_leaves_the_cache_within_its_bound() {
        let cache = RowCache::default();
        for number in 0..20_000 {
            cache.put(1, key(number), rows(3));
            assert!(cache.get(1, &key(0)).is_some(), "what is asked for stays");
        }
        cache.put(1, key(1), vec![(Vec::new(), vec![0; BYTES_MAX])]);
        assert_eq!(cache.get(1, &key(1)), None, "too large");
        let cache = cache.0.lock();
        let held = cache.young.iter().chain(&cache.old).map(|(key, rows)| key.bytes() + rows[0].1.len());
        assert!(held.sum::<usize>() <= 2 * BYTES_MAX);
    }
}
