//! Which files a store keeps, by age.

use std::collections::BTreeMap;

use afs_wire::ids::{CellName, DataVersion, Fid};

use crate::cache::{CacheKey, Kept};

/// What is kept of one fid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub version: DataVersion,
    /// The store's own number of the file.
    pub file: u64,
    pub kept: Kept,
    age: u64,
}

/// The kept files of a store, least recently used first. One version of a fid at most.
#[derive(Default)]
pub(super) struct KeptFiles {
    records: BTreeMap<(CellName, Fid), Record>,
    by_age: BTreeMap<u64, (CellName, Fid)>,
    next_age: u64,
    bytes: u64,
}

impl KeptFiles {
    /// Keeps a file as the youngest. Gives the record it replaces.
    pub fn keep(&mut self, key: &CacheKey, file: u64, kept: Kept) -> Option<Record> {
        let old = self.forget(&key.cell, key.fid);
        self.next_age += 1;
        self.bytes += kept.present.bytes();
        let name = (key.cell.clone(), key.fid);
        self.by_age.insert(self.next_age, name.clone());
        self.records.insert(name, Record { version: key.version, file, kept, age: self.next_age });
        old
    }

    /// The record of a version of a fid; its age stays.
    pub fn get(&self, key: &CacheKey) -> Option<&Record> {
        let record = self.records.get(&(key.cell.clone(), key.fid))?;
        (record.version == key.version).then_some(record)
    }

    /// The record of a fid, made the youngest.
    pub fn touch(&mut self, key: &CacheKey) -> Option<&Record> {
        self.next_age += 1;
        let name = (key.cell.clone(), key.fid);
        let record = self.records.get_mut(&name).filter(|record| record.version == key.version)?;
        self.by_age.remove(&record.age);
        record.age = self.next_age;
        self.by_age.insert(record.age, name);
        Some(record)
    }

    /// Takes the record of a fid out.
    pub fn forget(&mut self, cell: &CellName, fid: Fid) -> Option<Record> {
        let record = self.records.remove(&(cell.clone(), fid))?;
        self.by_age.remove(&record.age);
        self.bytes -= record.kept.present.bytes();
        Some(record)
    }

    /// The names of all, oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = (&(CellName, Fid), &Record)> {
        self.by_age.values().filter_map(|name| self.records.get(name).map(|record| (name, record)))
    }

    /// Bytes present in all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.records.len()
    }
}
