//! Files that only grow: since which version each store has added to the end and changed nothing before it.
//!
//! Kept in memory alone: after a start, and of files for which there is no room, nothing is known until the next store that adds.

use std::collections::HashMap;

use afs_wire::ids::{DataVersion, Fid, VolumeId};
use parking_lot::Mutex;

/// Most files, about 50 bytes each. When there is one more, all are forgotten.
const FILES_MAX: usize = 1 << 14;

/// All files of a partition that are known to have grown.
#[derive(Default)]
pub(crate) struct Growths(Mutex<HashMap<Fid, Grown>>);

/// The version with which a file begins, and the newest one for which that was recorded.
struct Grown {
    since: DataVersion,
    last: DataVersion,
}

impl Growths {
    /// A store makes one version of a file from another; `adds`: it changes nothing of the other. What is recorded of a transaction
    /// that fails is void, since its version is another store's then, which replaces the record.
    pub fn note(&self, fid: Fid, (old, new): (DataVersion, DataVersion), adds: bool) {
        let mut files = self.0.lock();
        if !adds {
            files.remove(&fid);
            return;
        }
        if files.len() >= FILES_MAX && !files.contains_key(&fid) {
            files.clear();
        }
        let grown = files.entry(fid).or_insert(Grown { since: old, last: old });
        let since = if grown.last == old { grown.since } else { old };
        *grown = Grown { since, last: new };
    }

    /// The oldest version all of whose bytes this version of a file is known to begin with.
    pub fn since(&self, fid: Fid, version: DataVersion) -> DataVersion {
        let files = self.0.lock();
        files.get(&fid).filter(|grown| grown.last == version).map_or(version, |grown| grown.since)
    }

    /// The volume is another one now, whose versions may have the numbers of the former.
    pub fn forget(&self, volume: VolumeId) {
        self.0.lock().retain(|fid, _| fid.volume != volume);
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId};

    use super::*;

    fn fid(vnode: u32) -> Fid {
        Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1))
    }

    fn step(growths: &Growths, old: u64, adds: bool) -> u64 {
        growths.note(fid(2), (DataVersion(old), DataVersion(old + 1)), adds);
        growths.since(fid(2), DataVersion(old + 1)).0
    }

    #[test]
    fn a_file_has_grown_since_the_last_store_that_changed_more() {
        let growths = Growths::default();
        assert_eq!(growths.since(fid(2), DataVersion(4)).0, 4);
        assert_eq!([4, 5, 6].map(|old| step(&growths, old, true)), [4, 4, 4]);
        assert_eq!(step(&growths, 7, false), 8);
        assert_eq!(step(&growths, 8, true), 8);
    }

    #[test]
    fn what_was_recorded_of_another_version_is_void() {
        let growths = Growths::default();
        step(&growths, 4, true);
        // The transaction failed: the version is still 4, and the next store makes 5.
        assert_eq!(growths.since(fid(2), DataVersion(4)).0, 4);
        assert_eq!(step(&growths, 4, false), 5);
        step(&growths, 5, true);
        assert_eq!(step(&growths, 5, true), 5);
        assert_eq!(step(&growths, 9, true), 9, "there were stores in between that were not recorded");
        growths.forget(VolumeId(7));
        assert_eq!(growths.since(fid(2), DataVersion(10)).0, 10);
    }

    #[test]
    fn a_full_table_forgets_and_goes_on() {
        let growths = Growths::default();
        for vnode in 0..2 * FILES_MAX as u32 {
            growths.note(fid(vnode), (DataVersion(1), DataVersion(2)), true);
        }
        assert!(growths.0.lock().len() <= FILES_MAX);
        assert_eq!(growths.since(fid(2 * FILES_MAX as u32 - 1), DataVersion(2)).0, 1);
    }
}
