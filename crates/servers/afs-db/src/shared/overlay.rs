//! Uncommitted changes over a replica of the rows.

use std::collections::BTreeMap;

use super::replica::{Replica, shared_key};
use super::store::Written;
use crate::{LocationError, Row, Rows, RowsMut};

/// A replica, with changes to some of its rows.
pub(super) struct Overlay<'a> {
    below: &'a Replica,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Overlay<'a> {
    pub(super) fn on(below: &'a Replica) -> Self {
        Overlay { below, writes: BTreeMap::new() }
    }

    /// The writes of the transaction. Rows that end up unchanged are left out.
    pub(super) fn into_writes(self) -> Vec<Written> {
        let below = self.below;
        self.writes.into_iter().filter(|(key, value)| below.value(key) != value.as_deref()).collect()
    }

    /// The rows of a range, changes included.
    fn merged(&self, from: &[u8], until: &[u8], limit: usize) -> Vec<(&[u8], &[u8])> {
        if from >= until {
            return Vec::new();
        }
        let mut below = self.below.rows(from, until).peekable();
        let mut above = self.writes.range(from.to_vec()..until.to_vec()).peekable();
        let mut rows = Vec::new();
        while rows.len() < limit {
            let (lower, upper) = (below.peek().map(|row| row.0), above.peek().map(|row| row.0.as_slice()));
            let from_above = match (lower, upper) {
                (None, None) => break,
                (lower, Some(upper)) => lower.is_none_or(|lower| upper <= lower),
                (Some(_), None) => false,
            };
            if !from_above {
                rows.extend(below.next());
                continue;
            }
            if lower == upper {
                below.next();
            }
            let written = above.next().and_then(|(key, value)| Some((key.as_slice(), value.as_deref()?)));
            rows.extend(written);
        }
        rows
    }
}

impl Rows for Overlay<'_> {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        let key = shared_key(table, key);
        Ok(match self.writes.get(&key) {
            Some(written) => written.clone(),
            None => self.below.value(&key).map(<[u8]>::to_vec),
        })
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        let skip = table.len() + 1;
        let rows = self.merged(&shared_key(table, from), &shared_key(table, until), limit);
        let row =
            |(key, value): (&[u8], &[u8])| (key.get(skip..).unwrap_or_default().to_vec(), value.to_vec());
        Ok(rows.into_iter().map(row).collect())
    }
}

impl RowsMut for Overlay<'_> {
    fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) -> Result<(), LocationError> {
        self.writes.insert(shared_key(table, key), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: &'static str, key: &[u8]) -> Result<(), LocationError> {
        self.writes.insert(shared_key(table, key), None);
        Ok(())
    }
}
