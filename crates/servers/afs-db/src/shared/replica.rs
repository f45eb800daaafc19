//! Replica of the shared rows in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::store::{Batch, Revision, Versioned};
use crate::{LocationError, Row, Rows};

/// All rows as of one revision.
#[derive(Default)]
pub(super) struct Replica {
    rows: BTreeMap<Vec<u8>, Versioned>,
    revision: Revision,
}

/// The key of a row in the shared store: its table, a slash, its key in the table.
pub(super) fn shared_key(table: &str, key: &[u8]) -> Vec<u8> {
    [table.as_bytes(), b"/", key].concat()
}

impl Replica {
    pub(super) fn of(rows: BTreeMap<Vec<u8>, Versioned>, revision: Revision) -> Self {
        Replica { rows, revision }
    }

    /// The revision up to which this replica is complete.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// The revision at which a row was written; 0 if it does not exist.
    pub(super) fn revision_of(&self, key: &[u8]) -> Revision {
        self.rows.get(key).map_or(Revision(0), |row| row.revision)
    }

    pub(super) fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.rows.get(key).map(|row| row.value.as_slice())
    }

    /// Rows with `from <= key < until`.
    pub(super) fn rows(&self, from: &[u8], until: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (from, until) = (from, until.max(from));
        self.rows
            .range::<[u8], _>((Bound::Included(from), Bound::Excluded(until)))
            .map(|(key, row)| (key.as_slice(), row.value.as_slice()))
    }

    /// Applies changes. Changes that this replica has already, which a restarted watch may repeat, are
    /// skipped.
    pub(super) fn apply(&mut self, batch: Batch) {
        let before = self.revision;
        for change in batch.into_iter().filter(|change| change.revision > before) {
            self.revision = self.revision.max(change.revision);
            match change.value {
                Some(value) => {
                    self.rows.insert(change.key, Versioned { value, revision: change.revision });
                }
                None => {
                    self.rows.remove(&change.key);
                }
            }
        }
    }
}

impl Rows for Replica {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.value(&shared_key(table, key)).map(<[u8]>::to_vec))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        let skip = table.len() + 1;
        let (from, until) = (shared_key(table, from), shared_key(table, until));
        let row =
            |(key, value): (&[u8], &[u8])| (key.get(skip..).unwrap_or_default().to_vec(), value.to_vec());
        Ok(self.rows(&from, &until).take(limit).map(row).collect())
    }
}
