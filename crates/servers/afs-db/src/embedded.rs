//! Rows in the transactional store of one process.

use std::ops::Bound;

use afs_kv::{Snapshot, Txn};

use crate::{LocationError, Refusal, Row, Rows, RowsMut};

impl Rows for Snapshot {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.get(table, key).map_err(store_error)?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        take(Snapshot::range(self, table, (Bound::Included(from), Bound::Excluded(until)), false), limit)
    }
}

impl Rows for Txn<'_> {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.get(table, key).map_err(store_error)?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        take(Txn::range(self, table, (Bound::Included(from), Bound::Excluded(until)), false), limit)
    }
}

impl RowsMut for Txn<'_> {
    fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) -> Result<(), LocationError> {
        Txn::put(self, table, key, value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: &'static str, key: &[u8]) -> Result<(), LocationError> {
        Txn::delete(self, table, key);
        Ok(())
    }
}

fn take(
    rows: impl Iterator<Item = Result<afs_kv::Row, afs_kv::KvError>>,
    limit: usize,
) -> Result<Vec<Row>, LocationError> {
    rows.take(limit)
        .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(store_error))
        .collect()
}

pub(crate) fn store_error(error: afs_kv::KvError) -> LocationError {
    match error {
        afs_kv::KvError::Corrupt(_) => Refusal::Damaged.into(),
        other => LocationError::Store(other.to_string()),
    }
}
