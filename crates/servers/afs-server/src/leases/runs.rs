//! Fixed table of the directories in which one client made the last changes: whose run of changes it is, and its length.
//! Directories that share a place displace each other, which costs a lease at most.

use std::hash::BuildHasher;

use afs_wire::ids::Fid;
use parking_lot::Mutex;

use crate::hosts::{HostId, Seeded};

/// Changes of names that a client must have made in a row.
pub(super) const RUN_MIN: u32 = 3;
/// Directories remembered.
const PLACES: usize = 4096;

pub(super) struct Runs {
    places: Box<[Mutex<Option<Run>>]>,
    hasher: Seeded,
}

#[derive(Clone, Copy)]
struct Run {
    dir: Fid,
    host: HostId,
    length: u32,
}

impl Runs {
    pub(super) fn new(hasher: Seeded) -> Self {
        let places = std::iter::repeat_with(Mutex::default).take(PLACES).collect();
        Runs { places, hasher }
    }

    /// A client changes names in a directory.
    pub(super) fn changes(&self, dir: Fid, host: HostId) {
        let mut place = self.place(dir).lock();
        let length = place.filter(|run| run.dir == dir && run.host == host).map_or(0, |run| run.length);
        *place = Some(Run { dir, host, length: length.saturating_add(1) });
    }

    /// A client has made a directory, in which nobody else has changed anything.
    pub(super) fn makes(&self, dir: Fid, host: HostId) {
        *self.place(dir).lock() = Some(Run { dir, host, length: RUN_MIN });
    }

    /// A client names an object: if it is a directory with a run of another client, that ends.
    pub(super) fn names(&self, fid: Fid, host: Option<HostId>) {
        let mut place = self.place(fid).lock();
        place.take_if(|run| run.dir == fid && Some(run.host) != host);
    }

    /// Whether the object is a directory with a run of another client.
    pub(super) fn are_of_others(&self, fid: Fid, host: Option<HostId>) -> bool {
        self.place(fid).lock().is_some_and(|run| run.dir == fid && Some(run.host) != host)
    }

    /// Whether a client made enough changes in a row.
    pub(super) fn are_of(&self, dir: Fid, host: HostId) -> bool {
        let run = *self.place(dir).lock();
        run.is_some_and(|run| run.dir == dir && run.host == host && run.length >= RUN_MIN)
    }

    fn place(&self, dir: Fid) -> &Mutex<Option<Run>> {
        &self.places[self.hasher.hash_one(dir) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: Fid = Fid::root(afs_wire::ids::VolumeId(7));

    #[test]
    fn a_run_is_of_one_client_and_ends_with_the_call_of_another() {
        let (runs, [a, b]) = (Runs::new(Seeded(1)), [HostId(1), HostId(2)]);
        for _ in 0..RUN_MIN {
            assert!(!runs.are_of(DIR, a));
            runs.changes(DIR, a);
        }
        assert!(runs.are_of(DIR, a) && !runs.are_of(DIR, b));
        runs.names(DIR, Some(a));
        assert!(runs.are_of(DIR, a), "its own calls end nothing");
        runs.names(DIR, Some(b));
        assert!(!runs.are_of(DIR, a));
        (0..RUN_MIN).for_each(|_| runs.changes(DIR, a));
        runs.changes(DIR, b);
        assert!(!runs.are_of(DIR, a) && !runs.are_of(DIR, b));
        runs.makes(DIR, a);
        assert!(runs.are_of(DIR, a));
        runs.names(DIR, Some(b));
        assert!(!runs.are_of(DIR, a));
    }
}
