//! Row readers of the embedded store at two depths: memory alone, and memory or disk.

use std::cell::Cell;

use afs_kv::{KvError, Snapshot};

use crate::embedded::store_error;
use crate::row_cache::{Query, RowCache};
use crate::{LocationError, Row, Rows};

/// Rows as of one commit, without the disk: those written since the last two checkpoints, and those cached
/// from earlier reads. Records whether a query could not be answered.
pub(crate) struct InMemory<'a> {
    snapshot: &'a Snapshot,
    cache: &'a RowCache,
    has_missed: Cell<bool>,
}

impl<'a> InMemory<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, cache: &'a RowCache) -> Self {
        Self { snapshot, cache, has_missed: Cell::new(false) }
    }

    /// Whether a query missed, so that the result found with these rows is void.
    pub(crate) fn has_missed(&self) -> bool {
        self.has_missed.get()
    }

    fn cached(&self, query: &Query) -> Result<Vec<Row>, LocationError> {
        self.cache.get(self.snapshot.sequence(), query).ok_or_else(|| {
            self.has_missed.set(true);
            store_error(KvError::NotInMemory)
        })
    }
}

impl Rows for InMemory<'_> {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        match self.snapshot.get_in_memory(table, key) {
            Err(KvError::NotInMemory) => {}
            found => return Ok(found.map_err(store_error)?.map(|value| value.to_vec())),
        }
        let rows = self.cached(&Query::Get(table, key.to_vec()))?;
        Ok(rows.into_iter().next().map(|(_, value)| value))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        self.cached(&Query::Range(table, from.to_vec(), until.to_vec(), limit))
    }
}

/// Rows as of one commit, from memory or disk, cached for [`InMemory`]. May block on a disk.
pub(crate) struct Kept<'a> {
    snapshot: &'a Snapshot,
    cache: &'a RowCache,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, cache: &'a RowCache) -> Self {
        Self { snapshot, cache }
    }

    fn keep(&self, query: Query, rows: Vec<Row>) {
        self.cache.put(self.snapshot.sequence(), query, rows);
    }
}

impl Rows for Kept<'_> {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        let value = Rows::get(self.snapshot, table, key)?;
        let rows = value.iter().map(|value| (Vec::new(), value.clone())).collect();
        self.keep(Query::Get(table, key.to_vec()), rows);
        Ok(value)
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        let rows = Rows::range(self.snapshot, table, from, until, limit)?;
        self.keep(Query::Range(table, from.to_vec(), until.to_vec(), limit), rows.clone());
        Ok(rows)
    }
}
