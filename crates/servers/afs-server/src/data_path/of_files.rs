//! Bounded list of the files for which capabilities of their own were given out, with their directories.
//!
//! Such a capability rests on the owner, the mode, and the access list of the directory; a change of any of
//! them has to revoke it, and nothing else tells for which files there is one.

use std::collections::BTreeMap;

use afs_wire::ids::Fid;
use parking_lot::Mutex;

/// Most files in the list.
const FILES_MAX: usize = 4096;

/// The files.
#[derive(Default)]
pub(crate) struct CapabilitiesOfFiles(Mutex<BTreeMap<Fid, Entry>>);

struct Entry {
    directory: Fid,
    /// When the last capability expires, in seconds of the wall clock.
    expires: u64,
}

impl CapabilitiesOfFiles {
    /// Adds a file. Returns whether all capabilities must be revoked instead, because the list is full.
    #[must_use]
    pub(crate) fn add(&self, file: Fid, directory: Fid, now: u64, expires: u64) -> bool {
        let mut files = self.0.lock();
        if files.len() >= FILES_MAX && !files.contains_key(&file) {
            files.retain(|_, entry| entry.expires > now);
        }
        let is_full = files.len() >= FILES_MAX && !files.contains_key(&file);
        if is_full {
            files.clear();
        }
        let entry = files.entry(file).or_insert(Entry { directory, expires });
        *entry = Entry { directory, expires: entry.expires.max(expires) };
        is_full
    }

    /// Takes a file out. Returns whether it was there.
    pub(crate) fn take(&self, file: Fid) -> bool {
        self.0.lock().remove(&file).is_some()
    }

    /// Takes out the files of a directory.
    pub(crate) fn take_of_directory(&self, directory: Fid) -> Vec<Fid> {
        let mut files = self.0.lock();
        files.extract_if(.., |_, entry| entry.directory == directory).map(|(file, _)| file).collect()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn fid(vnode: u32) -> Fid {
        Fid { volume: VolumeId(7), vnode: VnodeId(vnode), unique: Uniquifier(1) }
    }

    #[test]
    fn files_are_found_by_themselves_and_by_their_directory() {
        let files = CapabilitiesOfFiles::default();
        for (file, directory) in [(2, 1), (4, 1), (6, 3)] {
            assert!(!files.add(fid(file), fid(directory), 0, 100));
        }
        assert!(files.take(fid(4)) && !files.take(fid(4)));
        assert_eq!(files.take_of_directory(fid(1)), [fid(2)]);
        assert_eq!(files.take_of_directory(fid(1)), []);
        assert!(files.take(fid(6)));
    }

    #[test]
    fn a_full_list_makes_room_for_what_has_expired_and_else_says_so() {
        let files = CapabilitiesOfFiles::default();
        for number in 0..FILES_MAX as u32 {
            assert!(!files.add(fid(number), fid(1), 0, if number < 10 { 50 } else { 100 }));
        }
        assert!(!files.add(fid(5), fid(1), 60, 200), "it is there already");
        assert!(!files.add(fid(9000), fid(1), 60, 200), "nine have expired");
        for number in 0..8 {
            assert!(!files.add(fid(9001 + number), fid(1), 60, 200));
        }
        assert!(files.add(fid(9100), fid(1), 60, 200));
        assert_eq!(files.0.lock().len(), 1);
    }

    #[test]
    fn a_file_stays_for_the_longest_of_its_capabilities() {
        let files = CapabilitiesOfFiles::default();
        assert!(!files.add(fid(0), fid(1), 0, 100));
        assert!(!files.add(fid(0), fid(1), 0, 50), "that of a token that expires sooner");
        for number in 1..FILES_MAX as u32 {
            assert!(!files.add(fid(number), fid(1), 0, 50));
        }
        assert!(!files.add(fid(9000), fid(1), 60, 200), "most have expired");
        assert!(files.take(fid(0)));
    }
}
