//! Fids that are lent with a lease: those to be used, in order, and the objects that were made with the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use afs_wire::fs::LENT_MAX;
use afs_wire::ids::Fid;

/// What a change makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum New {
    Nothing,
    /// A file or a link.
    File,
    Directory,
}

/// Objects that were made last, and are not given back: programs change them again at once.
const LAST: usize = 64;
/// Directories that were made under a lease, above which those are given back that were used longest ago.
const DIRECTORIES_MAX: usize = 384;

/// The fids of one lease. A server lends at most 1,024 with it.
#[derive(Default)]
pub(super) struct Lent {
    files: VecDeque<Fid>,
    directories: VecDeque<Fid>,
    /// How many were used so far, and since more was asked for.
    used: usize,
    recent_files: usize,
    recent_directories: usize,
    /// Number that is lent.
    count: usize,
    /// The objects that were made and are lent still: of directories with the number of the last change there, 0 if removed.
    made: BTreeSet<Fid>,
    made_files: VecDeque<Fid>,
    made_directories: BTreeMap<Fid, u64>,
    changes: u64,
}

impl Lent {
    /// Number of fids that the server has lent.
    pub fn count(&self) -> usize {
        self.count
    }

    /// More was lent. Fids that are lent already are left out.
    pub fn add(&mut self, fids: &[Fid]) {
        let mut lent: BTreeSet<Fid> = self.files.iter().chain(&self.directories).copied().collect();
        lent.extend(&self.made);
        for fid in fids.iter().filter(|fid| lent.insert(**fid)) {
            let kind = if fid.is_directory() { New::Directory } else { New::File };
            self.of(kind).into_iter().for_each(|lent| lent.push_back(*fid));
            self.count += 1;
        }
    }

    /// Whether there is what a change needs.
    pub fn has(&mut self, kind: New) -> bool {
        self.of(kind).is_none_or(|fids| !fids.is_empty())
    }

    /// The fid of a new object; the zero fid for a change that makes none.
    pub fn take(&mut self, kind: New) -> Fid {
        match kind {
            New::Nothing => {}
            New::File => self.recent_files += 1,
            New::Directory => self.recent_directories += 1,
        }
        self.used += usize::from(kind != New::Nothing);
        self.of(kind).and_then(VecDeque::pop_front).unwrap_or_default()
    }

    /// How many files and directories are asked for, so that about as many are there as were used so far, at least `fewest`, split as those
    /// were that were used last. At least one.
    pub fn more(&mut self, fewest: usize) -> [usize; 2] {
        let all = self.used.next_power_of_two().clamp(fewest, LENT_MAX);
        let recent = (self.recent_directories + self.recent_files).max(1);
        let least = all / 16;
        let directories = (all * self.recent_directories / recent).clamp(least, all - least);
        (self.recent_files, self.recent_directories) = (0, 0);
        let more = (all - directories).saturating_sub(self.files.len());
        let more_directories = directories.saturating_sub(self.directories.len());
        [more.max(usize::from(more_directories == 0)), more_directories]
    }

    /// An object was made.
    pub fn made(&mut self, fid: Fid) {
        self.made.insert(fid);
        match fid.is_directory() {
            true => drop(self.made_directories.insert(fid, self.changes)),
            false => self.made_files.push_back(fid),
        }
    }

    /// Names of a directory were changed.
    pub fn changed(&mut self, dir: Fid) {
        self.changes += 1;
        if let Some(last) = self.made_directories.get_mut(&dir) {
            *last = self.changes;
        }
    }

    /// A directory was removed.
    pub fn removed(&mut self, dir: Fid) {
        self.made_directories.entry(dir).and_modify(|last| *last = 0);
    }

    /// Whether an object was made with a fid that is lent.
    pub fn has_made(&self, fid: Fid) -> bool {
        self.made.contains(&fid)
    }

    /// Removes objects that are not needed here any more: directories that were removed, of many those that were used longest ago, and the
    /// first files, if nothing waits of them. Returns at most [`LENT_MAX`].
    pub fn give_back(&mut self, waits: impl Fn(Fid) -> bool) -> Vec<Fid> {
        let excess = self.made_directories.len().saturating_sub(DIRECTORIES_MAX);
        let mut by_use: Vec<_> = self.made_directories.iter().map(|(fid, used)| (*used, *fid)).collect();
        by_use.sort_unstable();
        let by_use = by_use.into_iter().enumerate();
        let directories =
            by_use.take_while(|(at, (used, _))| *at < excess || *used == 0).map(|(_, (_, fid))| fid);
        let files = self.made_files.iter().take(self.made_files.len().saturating_sub(LAST)).copied();
        let mut given: Vec<Fid> = directories.chain(files).filter(|fid| !waits(*fid)).collect();
        given.truncate(LENT_MAX);
        let gone: BTreeSet<Fid> = given.iter().copied().collect();
        self.made_files.retain(|fid| !gone.contains(fid));
        self.made_directories.retain(|fid, _| !gone.contains(fid));
        self.made.retain(|fid| !gone.contains(fid));
        self.count -= gone.len();
        given
    }

    fn of(&mut self, kind: New) -> Option<&mut VecDeque<Fid>> {
        match kind {
            New::Nothing => None,
            New::File => Some(&mut self.files),
            New::Directory => Some(&mut self.directories),
        }
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn fid(vnode: u32) -> Fid {
        Fid { volume: VolumeId(7), vnode: VnodeId(vnode), unique: Uniquifier(vnode) }
    }

    /// Makes an object of each of the kind that is lent.
    fn make_all(lent: &mut Lent, kind: New) -> usize {
        let mut made = 0;
        while lent.has(kind) {
            let fid = lent.take(kind);
            lent.made(fid);
            made += 1;
        }
        made
    }

    #[test]
    fn files_that_were_made_first_are_given_back_if_nothing_waits_of_them() {
        let mut lent = Lent::default();
        let fids: Vec<Fid> = (1..=200).map(|n| fid(2 * n)).collect();
        lent.add(&fids);
        lent.add(&fids);
        assert_eq!((lent.count(), make_all(&mut lent, New::File)), (200, 200));
        let given = lent.give_back(|fid| fid == fids[3]);
        assert_eq!((given.len(), lent.count(), given[3]), (200 - LAST - 1, LAST + 1, fids[4]));
        assert!(!lent.has_made(fids[0]) && lent.has_made(fids[3]) && lent.has_made(fids[199]));
        assert_eq!(lent.give_back(|_| false), [fids[3]]);
        assert_eq!(lent.give_back(|_| false), []);
    }

    #[test]
    fn of_many_directories_those_used_longest_ago_are_given_back() {
        let mut lent = Lent::default();
        let fids: Vec<Fid> = (1..=DIRECTORIES_MAX as u32 + 3).map(|n| fid(2 * n + 1)).collect();
        lent.add(&fids);
        make_all(&mut lent, New::Directory);
        fids.iter().rev().for_each(|fid| lent.changed(*fid));
        let last = fids.len() - 1;
        assert_eq!(lent.give_back(|fid| fid == fids[last - 1]), [fids[last], fids[last - 2]]);
        assert_eq!((lent.count(), lent.has_made(fids[last])), (DIRECTORIES_MAX + 1, false));
        lent.removed(fids[0]);
        assert_eq!(lent.give_back(|_| false), [fids[0]], "it is of no use");
    }

    #[test]
    fn more_is_asked_for_in_proportion_to_what_was_used_and_is_not_there() {
        let mut lent = Lent::default();
        assert_eq!(lent.more(16), [15, 1]);
        lent.add(&(1..=96).map(fid).collect::<Vec<_>>());
        let made = [make_all(&mut lent, New::File), make_all(&mut lent, New::Directory)];
        assert_eq!((made, lent.more(16)), ([48, 48], [64, 64]));
        lent.add(&(200..=263).map(fid).collect::<Vec<_>>());
        assert_eq!(make_all(&mut lent, New::Directory), 32);
        assert_eq!(lent.more(16), [0, 120], "32 files are left");
    }
}
