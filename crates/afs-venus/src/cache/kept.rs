//! Kept files of a store, ordered by age.

use std::collections::BTreeMap;

use afs_wire::ids::{CellName, DataVersion, Fid};

use crate::cache::{CacheKey, Kept};

/// Record of the kept file of a fid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub version: DataVersion,
    /// Number of the file in the store.
    pub file: u64,
    pub kept: Kept,
    age: u64,
}

/// The kept files of a store, least recently used first. At most one version of each fid.
#[derive(Default)]
pub(super) struct KeptFiles {
    records: BTreeMap<(CellName, Fid), Record>,
    by_age: BTreeMap<u64, (CellName, Fid)>,
    next_age: u64,
    /// Wide enough for any lengths that an index on disk may claim.
    bytes: u128,
}

impl KeptFiles {
    /// Adds a file as the youngest. Returns the record that it replaces.
    pub fn keep(&mut self, key: &CacheKey, file: u64, kept: Kept) -> Option<Record> {
        let old = self.forget(&key.cell, key.fid);
        self.next_age += 1;
        self.bytes += u128::from(kept.room());
        let name = (key.cell.clone(), key.fid);
        self.by_age.insert(self.next_age, name.clone());
        self.records.insert(name, Record { version: key.version, file, kept, age: self.next_age });
        old
    }

    /// The record of a version of a fid; its age is unchanged.
    pub fn get(&self, key: &CacheKey) -> Option<&Record> {
        let record = self.records.get(&(key.cell.clone(), key.fid))?;
        (record.version == key.version).then_some(record)
    }

    /// True if any version of the fid is kept.
    pub fn has(&self, cell: &CellName, fid: Fid) -> bool {
        self.records.contains_key(&(cell.clone(), fid))
    }

    /// The record of a version of a fid, made the youngest.
    pub fn touch(&mut self, key: &CacheKey) -> Option<&Record> {
        self.next_age += 1;
        let name = (key.cell.clone(), key.fid);
        let record = self.records.get_mut(&name).filter(|record| record.version == key.version)?;
        self.by_age.remove(&record.age);
        record.age = self.next_age;
        self.by_age.insert(record.age, name);
        Some(record)
    }

    /// Removes the record of a fid.
    pub fn forget(&mut self, cell: &CellName, fid: Fid) -> Option<Record> {
        let record = self.records.remove(&(cell.clone(), fid))?;
        self.by_age.remove(&record.age);
        self.bytes -= u128::from(record.kept.room());
        Some(record)
    }

    /// All names and records, oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = (&(CellName, Fid), &Record)> {
        self.by_age.values().filter_map(|name| self.records.get(name).map(|record| (name, record)))
    }

    /// Numbers of the files in the store, in no order of theirs.
    pub fn file_numbers(&self) -> impl Iterator<Item = u64> {
        self.records.values().map(|record| record.file)
    }

    /// Bytes of all kept files.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    /// Number of kept files.
    pub fn count(&self) -> usize {
        self.records.len()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{VnodeId, VolumeId};

    use super::*;
    use crate::cache::Ranges;

    #[test]
    fn an_index_that_claims_more_bytes_than_there_can_be_is_counted() {
        let key = |vnode| CacheKey {
            cell: CellName::new("example.org").unwrap(),
            fid: Fid { vnode: VnodeId(vnode), volume: VolumeId(1), ..Fid::default() },
            version: DataVersion(1),
        };
        let mut kept = KeptFiles::default();
        for vnode in 1..4 {
            kept.keep(
                &key(vnode),
                1,
                Kept { length: u64::MAX, present: Ranges::whole(u64::MAX), holes: Ranges::new() },
            );
        }
        assert_eq!((kept.count(), kept.bytes()), (3, u64::MAX));
        for vnode in 1..4 {
            kept.forget(&key(vnode).cell, key(vnode).fid);
        }
        assert_eq!((kept.count(), kept.bytes()), (0, 0));
    }
}
