//! Memory table: multi-version map of the rows committed since a checkpoint.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::cursor::{Entry, Layer, Span};
use crate::error::KvError;

/// Rows by key, under one short lock: held for a lookup, for a few dozen steps of a scan, or for a few dozen
/// insertions, and never over I/O.
///
/// Invariant: the versions of a key are in order of their sequence numbers, and the newest version at or before any
/// sequence number that a reader may hold is kept.
#[derive(Default)]
pub(crate) struct Memtable {
    rows: RwLock<BTreeMap<Bytes, Versions>>,
}

struct Versions {
    newest: Version,
    /// Oldest first.
    older: Vec<Version>,
}

struct Version {
    sequence: u64,
    /// `None`: deleted.
    value: Option<Bytes>,
}

impl Versions {
    fn at(&self, sequence: u64) -> Option<&Option<Bytes>> {
        if self.newest.sequence <= sequence {
            return Some(&self.newest.value);
        }
        self.older.iter().rev().find(|version| version.sequence <= sequence).map(|version| &version.value)
    }

    fn push(&mut self, version: Version, floor: u64) {
        let replaced = std::mem::replace(&mut self.newest, version);
        if replaced.sequence == self.newest.sequence {
            return;
        }
        self.older.push(replaced);
        let needed = self.older.iter().rposition(|version| version.sequence <= floor).unwrap_or(0);
        self.older.drain(..needed);
    }
}

impl Memtable {
    /// Adds the rows of one batch. `floor` is the oldest sequence number that a reader holds or may still take.
    pub(crate) fn insert(
        &self,
        rows: impl IntoIterator<Item = (Bytes, Option<Bytes>)>,
        sequence: u64,
        floor: u64,
    ) {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut table = self.rows.write();
            for (key, value) in rows.by_ref().take(INSERTIONS_PER_LOCK) {
                let version = Version { sequence, value };
                match table.get_mut(&key) {
                    Some(versions) => versions.push(version, floor),
                    None => {
                        table.insert(key, Versions { newest: version, older: Vec::new() });
                    }
                }
            }
        }
    }

    /// The row as of `sequence`; the outer `None` means that the table does not contain the key.
    pub(crate) fn get(&self, key: &[u8], sequence: u64) -> Option<Option<Bytes>> {
        let table = self.rows.read();
        table.get(key)?.at(sequence).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.read().is_empty()
    }

    /// Up to `count` newest rows with keys after `after`, in order.
    pub(crate) fn newest_after(&self, after: Option<&Bytes>, count: usize) -> Vec<Entry> {
        let table = self.rows.read();
        let lower = after.map_or(Bound::Unbounded, |key| Bound::Excluded(&key[..]));
        table
            .range::<[u8], _>((lower, Bound::Unbounded))
            .take(count)
            .map(|(key, versions)| (key.clone(), versions.newest.value.clone()))
            .collect()
    }
}

/// A memory table as of one sequence number.
pub(crate) struct MemtableAt<'a> {
    pub(crate) table: &'a Memtable,
    pub(crate) sequence: u64,
}

impl Layer for MemtableAt<'_> {
    fn fill(&self, span: &Span, limit: usize, out: &mut VecDeque<Entry>) -> Result<Option<Bytes>, KvError> {
        let Some(bounds) = span.bounds() else { return Ok(None) };
        let table = self.table.rows.read();
        let range = table.range::<[u8], _>(bounds);
        let mut steps = 0;
        let mut last = None;
        // A key written after this sequence number is skipped, and counts as a step so that the lock is held briefly.
        let mut step = |(key, versions): (&Bytes, &Versions)| {
            steps += 1;
            last = Some(key.clone());
            if let Some(value) = versions.at(self.sequence) {
                out.push_back((key.clone(), value.clone()));
            }
        };
        if span.reverse {
            range.rev().take(limit).for_each(&mut step);
        } else {
            range.take(limit).for_each(&mut step);
        }
        Ok(if steps < limit { None } else { last })
    }
}

const INSERTIONS_PER_LOCK: usize = 32;
