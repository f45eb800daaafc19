//! Bounded table of files whose statuses came together: when layouts of some of them were wanted, those of the others come with the next.

use std::collections::BTreeMap;

use afs_wire::fs::LAYOUT_FILES_MAX;
use afs_wire::ids::{DataVersion, Fid};

use super::layouts::Key;
use crate::identity::TokenId;

/// Most directories whose files are known.
const DIRECTORIES_MAX: usize = 16;
/// Most files that are known of one.
const FILES_MAX: usize = 512;
/// How many files of a directory are asked for one by one.
const ALONE: u32 = 2;

/// The files, by the directory in which they are.
#[derive(Default)]
pub(super) struct Companions {
    directories: BTreeMap<(TokenId, Fid), Directory>,
    uses: u64,
}

#[derive(Default)]
struct Directory {
    files: BTreeMap<Fid, DataVersion>,
    /// How often a layout was asked for and given.
    given: u32,
    used: u64,
}

impl Directory {
    fn has(&self, (_, fid, version): Key) -> bool {
        self.files.get(&fid) == Some(&version)
    }

    /// How many others are asked for with the next: twice as many each time, so that those that are never read are not many more
    /// than those that were.
    fn others(&self) -> usize {
        match self.given.checked_sub(ALONE) {
            Some(times) => (2_usize << times.min(8)).min(LAYOUT_FILES_MAX - 1),
            None => 0,
        }
    }
}

impl Companions {
    /// Statuses of files of a directory have come.
    pub fn came(&mut self, directory: (TokenId, Fid), files: impl IntoIterator<Item = (Fid, DataVersion)>) {
        self.uses += 1;
        if !self.directories.contains_key(&directory) && self.directories.len() >= DIRECTORIES_MAX {
            let oldest = self.directories.iter().min_by_key(|(_, known)| known.used);
            let oldest = oldest.map(|(directory, _)| *directory);
            oldest.map(|oldest| self.directories.remove(&oldest));
        }
        let known = self.directories.entry(directory).or_default();
        known.used = self.uses;
        for (fid, version) in files {
            if known.files.len() < FILES_MAX || known.files.contains_key(&fid) {
                known.files.insert(fid, version);
            }
        }
    }

    /// The files that are to be asked for with one; they count as asked for. The next ones of the directory come first.
    pub fn take(&mut self, key: Key) -> Vec<Key> {
        let Some(known) = self.of(key) else { return Vec::new() };
        let count = known.others();
        let (before, after) = (known.files.range(..key.1), known.files.range(key.1..).skip(1));
        let others: Vec<Key> =
            after.chain(before).take(count).map(|(fid, version)| (key.0, *fid, *version)).collect();
        others.iter().for_each(|(_, fid, _)| _ = known.files.remove(fid));
        others
    }

    /// The layout of a file was asked for, and given.
    pub fn given(&mut self, key: Key) {
        if let Some(known) = self.of(key) {
            known.files.remove(&key.1);
            known.given = known.given.saturating_add(1);
        }
    }

    fn of(&mut self, key: Key) -> Option<&mut Directory> {
        self.uses += 1;
        let uses = self.uses;
        let mut known = self.directories.iter_mut().filter(|((token, _), _)| *token == key.0);
        let (_, known) = known.find(|(_, known)| known.has(key))?;
        known.used = uses;
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    const VERSION: DataVersion = DataVersion(1);

    fn fid(number: u32) -> Fid {
        Fid::new(VolumeId(1), VnodeId(number), Uniquifier(1))
    }

    fn key(number: u32) -> Key {
        (TokenId::NONE, fid(number), VERSION)
    }

    fn take(known: &mut Companions, number: u32) -> Vec<u32> {
        let taken = known.take(key(number));
        known.given(key(number));
        taken.into_iter().map(|(_, fid, _)| fid.vnode.0).collect()
    }

    #[test]
    fn others_come_with_the_third_and_each_once() {
        let mut known = Companions::default();
        known.came((TokenId::NONE, fid(1)), (0..10).map(|n| (fid(2 * n), VERSION)));
        assert_eq!(take(&mut known, 0), [0; 0]);
        assert_eq!(take(&mut known, 2), [0; 0]);
        assert_eq!(take(&mut known, 14), [16, 18]);
        assert_eq!(take(&mut known, 12), [4, 6, 8, 10]);
        assert_eq!(take(&mut known, 12), [0; 0], "no more is known");
        let other = (TokenId::NONE, fid(4), DataVersion(2));
        known.came((TokenId::NONE, fid(1)), [(fid(4), VERSION), (fid(6), VERSION)]);
        assert!(known.take(other).is_empty(), "of another version");
        assert_eq!(take(&mut known, 4), [6]);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut known = Companions::default();
        for directory in 0..100 {
            let files = (0..1000).map(|n| (fid(1000 * directory + 2 * n), VERSION));
            known.came((TokenId::NONE, fid(2 * directory + 1)), files);
        }
        assert_eq!(known.directories.len(), DIRECTORIES_MAX);
        assert!(known.directories.values().all(|known| known.files.len() == FILES_MAX));
        assert!(known.directories.contains_key(&(TokenId::NONE, fid(199))));
    }
}
