//! Counters of changes that may end a stream in progress, by hash of fid: a fixed table, in which objects may
//! share a counter.
//!
//! Mode, owner, parent and existence of a file are no part of a capability for its directory. They are looked at
//! when a stream begins; after that a stream compares its file's counter before each piece, and looks again
//! when it has moved.

use std::sync::atomic::{AtomicU64, Ordering};

use afs_wire::ids::Fid;

/// Number of counters. Two files with the same one cost each other's streams a look-up for each change.
const STAMPS: usize = 4096;

/// Counters of changes.
pub(crate) struct Stamps(Box<[AtomicU64]>);

/// Value of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u64);

impl Default for Stamps {
    fn default() -> Self {
        Stamps((0..STAMPS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Stamps {
    /// The counter of an object. Must be read before the object is looked at.
    pub(crate) fn of(&self, fid: Fid) -> Stamp {
        Stamp(self.counter(fid).map_or(0, |counter| counter.load(Ordering::Acquire)))
    }

    /// Counts a change of an object.
    pub(crate) fn count(&self, fid: Fid) {
        if let Some(counter) = self.counter(fid) {
            counter.fetch_add(1, Ordering::Release);
        }
    }

    /// Counts a change of all objects.
    pub(crate) fn count_all(&self) {
        self.0.iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Release));
    }

    fn counter(&self, fid: Fid) -> Option<&AtomicU64> {
        // Vnode numbers of files are even, and dense within a volume.
        let mixed =
            (u64::from(fid.volume.0) << 32 | u64::from(fid.vnode.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0.get((mixed >> 52) as usize % STAMPS)
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    #[test]
    fn a_change_moves_the_counter_of_its_object_and_hardly_another() {
        let stamps = Stamps::default();
        let fid = |vnode| Fid { volume: VolumeId(7), vnode: VnodeId(vnode), unique: Uniquifier(1) };
        let files: Vec<Fid> = (1..100).map(|n| fid(2 * n)).collect();
        let before: Vec<Stamp> = files.iter().map(|fid| stamps.of(*fid)).collect();
        stamps.count(files[5]);
        let moved = files.iter().zip(&before).filter(|(fid, before)| stamps.of(**fid) != **before).count();
        assert!(stamps.of(files[5]) != before[5] && moved < 4, "{moved}");
        stamps.count_all();
        assert!(files.iter().zip(&before).all(|(fid, before)| stamps.of(*fid) != *before));
    }
}
