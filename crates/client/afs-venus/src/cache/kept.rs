//! Kept files of a store, ordered by age; pinned ones have none, and are not found when room is made. Beside them the records of
//! pinned objects.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use afs_wire::ids::{CellName, DataVersion, Fid};

use crate::cache::{CacheKey, Kept, OfflineRecord, WrittenFile};

/// Modification time of a file of the local disk, in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Modified(pub u64);

/// Record of the kept file of a fid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub version: DataVersion,
    /// Number of the file in the store.
    pub file: u64,
    pub kept: Kept,
    /// When the file was modified last before it was kept.
    pub modified: Modified,
    /// `None`: the file is pinned.
    age: Option<u64>,
}

/// A file that the kernel may write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BeingWritten {
    pub of: WrittenFile,
    /// Marked writes of the kernel are known that no server has. Later ones are seen in the time of the file.
    pub is_changed: bool,
}

/// The kept files of a store, least recently used first. At most one version of each fid.
#[derive(Default)]
pub(super) struct KeptFiles {
    records: BTreeMap<(CellName, Fid), Record>,
    by_age: BTreeMap<u64, (CellName, Fid)>,
    /// Kept or not.
    pinned: BTreeSet<(CellName, Fid)>,
    /// Records of pinned objects, for reading without a server.
    offline: BTreeMap<(CellName, Fid), OfflineRecord>,
    /// By number, none of them kept.
    being_written: BTreeMap<u64, BeingWritten>,
    next_age: u64,
    /// Wide enough for any lengths that an index on disk may claim.
    bytes: u128,
}

impl KeptFiles {
    /// Adds a file, by its number and time, as the youngest. Returns the record that it replaces.
    pub fn keep(&mut self, key: &CacheKey, file: (u64, Modified), kept: Kept) -> Option<Record> {
        let old = self.forget(&key.cell, key.fid);
        self.bytes += u128::from(kept.room());
        let name = (key.cell.clone(), key.fid);
        let age = (!self.pinned.contains(&name)).then(|| self.youngest(&name));
        let (file, modified) = file;
        self.being_written.remove(&file);
        self.records.insert(name, Record { version: key.version, file, kept, modified, age });
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

    /// Fids of the same volume whose files were kept or used about when that of `fid` was: at most `examined` that came
    /// after it, in their order, then as many that came before it, the nearest first. Of a pinned fid, those of pinned ones
    /// with near numbers. None if no version of `fid` is kept.
    pub fn near(&self, cell: &CellName, fid: Fid, examined: usize) -> Vec<Fid> {
        let name = (cell.clone(), fid);
        let near: Vec<&(CellName, Fid)> = match self.records.get(&name).map(|record| record.age) {
            None => return Vec::new(),
            Some(Some(age)) => {
                let before = self.by_age.range(..age).rev().take(examined);
                self.by_age.range(age + 1..).take(examined).chain(before).map(|(_, name)| name).collect()
            }
            Some(None) => {
                let after = self.pinned.range((Bound::Excluded(&name), Bound::Unbounded)).take(examined);
                after.chain(self.pinned.range(..&name).rev().take(examined)).collect()
            }
        };
        let same_volume = near.into_iter().filter(|(of, other)| other.volume == fid.volume && of == cell);
        same_volume.map(|(_, other)| *other).collect()
    }

    /// The record of a version of a fid, made the youngest.
    pub fn touch(&mut self, key: &CacheKey) -> Option<&Record> {
        let name = (key.cell.clone(), key.fid);
        let record = self.records.get(&name).filter(|record| record.version == key.version)?;
        if let Some(age) = record.age {
            self.by_age.remove(&age);
            let age = self.youngest(&name);
            self.records.get_mut(&name)?.age = Some(age);
        }
        self.records.get(&name)
    }

    fn youngest(&mut self, name: &(CellName, Fid)) -> u64 {
        self.next_age += 1;
        self.by_age.insert(self.next_age, name.clone());
        self.next_age
    }

    /// Takes the fid out of the order by age, or puts it there as the youngest.
    pub fn set_pinned(&mut self, cell: &CellName, fid: Fid, is_pinned: bool) {
        let name = (cell.clone(), fid);
        let has_changed = match is_pinned {
            true => self.pinned.insert(name.clone()),
            false => self.pinned.remove(&name),
        };
        let Some(old) = self.records.get(&name).map(|record| record.age).filter(|_| has_changed) else {
            return;
        };
        old.map(|age| self.by_age.remove(&age));
        let age = (!is_pinned).then(|| self.youngest(&name));
        self.records.entry(name).and_modify(|record| record.age = age);
    }

    /// Adds the record of a pinned object in place of an older one. False: it is the same.
    pub fn keep_offline(&mut self, name: (CellName, Fid), record: OfflineRecord) -> bool {
        let is_new = self.offline.get(&name) != Some(&record);
        if is_new {
            self.offline.insert(name, record);
        }
        is_new
    }

    /// Removes the record of a pinned object. False: there is none.
    pub fn forget_offline(&mut self, cell: &CellName, fid: Fid) -> bool {
        self.offline.remove(&(cell.clone(), fid)).is_some()
    }

    /// The record of a pinned object.
    pub fn offline(&self, cell: &CellName, fid: Fid) -> Option<&OfflineRecord> {
        self.offline.get(&(cell.clone(), fid))
    }

    /// The kernel may write to a file that is not kept. Returns true if that is new.
    pub fn begin_writing(&mut self, file: u64, written: &BeingWritten) -> bool {
        let is_new = !self.being_written.contains_key(&file);
        self.being_written.entry(file).or_insert_with(|| written.clone());
        is_new
    }

    /// Records whether such a file has marked writes that no server has. Returns the file if that is new.
    pub fn set_changed(&mut self, file: u64, is_changed: bool) -> Option<&BeingWritten> {
        let written = self.being_written.get_mut(&file).filter(|written| written.is_changed != is_changed)?;
        written.is_changed = is_changed;
        Some(written)
    }

    /// The files that the kernel may write, by number.
    pub fn being_written(&self) -> impl Iterator<Item = (u64, &BeingWritten)> {
        self.being_written.iter().map(|(file, written)| (*file, written))
    }

    /// Leaves out those that are gone.
    pub fn retain_being_written(&mut self, is_there: impl Fn(u64) -> bool) {
        self.being_written.retain(|file, _| is_there(*file));
    }

    /// Takes them out.
    pub fn take_being_written(&mut self) -> BTreeMap<u64, BeingWritten> {
        std::mem::take(&mut self.being_written)
    }

    /// Names and records of all pinned objects that have one.
    pub fn all_offline(&self) -> impl Iterator<Item = (&(CellName, Fid), &OfflineRecord)> {
        self.offline.iter()
    }

    /// Removes the record of a fid.
    pub fn forget(&mut self, cell: &CellName, fid: Fid) -> Option<Record> {
        let record = self.records.remove(&(cell.clone(), fid))?;
        record.age.map(|age| self.by_age.remove(&age));
        self.bytes -= u128::from(record.kept.room());
        Some(record)
    }

    /// All names and records: the pinned ones, then the others, oldest first.
    pub fn all(&self) -> impl Iterator<Item = (&(CellName, Fid), &Record)> {
        let pinned =
            self.pinned.iter().filter_map(|name| self.records.get(name).map(|record| (name, record)));
        pinned.chain(self.oldest_first())
    }

    /// Names and records that are not pinned, oldest first.
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
    pub fn files(&self) -> usize {
        self.records.len()
    }

    /// Number of kept files, of records of pinned objects, and of files that the kernel may write.
    pub fn count(&self) -> usize {
        self.records.len() + self.offline.len() + self.being_written.len()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{VnodeId, VolumeId};

    use super::*;
    use crate::cache::Ranges;

    const FILE: (u64, Modified) = (1, Modified(0));

    #[test]
    fn pinned_files_have_no_age_and_are_kept_in_the_index() {
        let key = |vnode, version| CacheKey {
            cell: CellName::new("example.org").unwrap(),
            fid: Fid { vnode: VnodeId(vnode), volume: VolumeId(1), ..Fid::default() },
            version: DataVersion(version),
        };
        let (mut kept, whole) =
            (KeptFiles::default(), || Kept { length: 1, present: Ranges::whole(1), holes: Ranges::new() });
        let cell = key(0, 0).cell;
        (1..4).for_each(|vnode| drop(kept.keep(&key(vnode, 1), FILE, whole())));
        kept.set_pinned(&cell, key(2, 1).fid, true);
        kept.set_pinned(&cell, key(9, 1).fid, true);
        let old = |kept: &KeptFiles| kept.oldest_first().map(|(name, _)| name.1.vnode.0).collect::<Vec<_>>();
        assert_eq!(old(&kept), [1, 3]);
        // Neither use, nor another version, nor being kept later gives it an age.
        assert!(kept.touch(&key(2, 1)).is_some());
        kept.keep(&key(2, 2), FILE, whole());
        kept.keep(&key(9, 1), FILE, whole());
        assert_eq!(old(&kept), [1, 3]);
        assert_eq!((kept.all().count(), kept.bytes()), (4, 4));
        kept.set_pinned(&cell, key(2, 1).fid, false);
        assert_eq!(old(&kept), [1, 3, 2]);
        kept.forget(&cell, key(9, 1).fid);
        assert!(kept.pinned.contains(&(cell, key(9, 1).fid)) && kept.all().count() == 3);
    }

    #[test]
    fn what_was_used_with_a_file_is_found_within_its_volume_and_within_bounds() {
        let key = |volume, vnode| CacheKey {
            cell: CellName::new("example.org").unwrap(),
            fid: Fid { vnode: VnodeId(vnode), volume: VolumeId(volume), ..Fid::default() },
            version: DataVersion(1),
        };
        let mut kept = KeptFiles::default();
        let whole = || Kept { length: 1, present: Ranges::whole(1), holes: Ranges::new() };
        let cell = key(1, 1).cell;
        for vnode in [7, 3, 5, 1, 9] {
            kept.keep(&key(1, vnode), FILE, whole());
            kept.keep(&key(2, vnode), FILE, whole());
        }
        let near = |kept: &KeptFiles, vnode, examined| -> Vec<u32> {
            kept.near(&cell, key(1, vnode).fid, examined).iter().map(|fid| fid.vnode.0).collect()
        };
        assert_eq!(near(&kept, 5, 100), [1, 9, 3, 7]);
        assert_eq!(near(&kept, 5, 2), [1, 3]);
        assert_eq!(near(&kept, 2, 100), [0; 0]);
        [5, 9, 1].iter().for_each(|vnode| kept.set_pinned(&cell, key(1, *vnode).fid, true));
        assert_eq!(near(&kept, 5, 100), [9, 1]);
        assert_eq!(near(&kept, 3, 100), [7]);
    }

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
                FILE,
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
