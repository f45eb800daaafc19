//! What is in a cache file: which version, which bytes are here, which are unsaved.
//!
//! Pure bookkeeping: no bytes are moved here, so that every case can be tested.

use std::ops::Range;

use afs_wire::ids::{DataVersion, UnixSeconds};

use crate::api::Seek;
use crate::cache::{Kept, Ranges};
use crate::data::UseCounts;

/// State of the data of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// The version at the server that the data is, or was made from.
    pub version: DataVersion,
    /// The length of the file at the server.
    pub base_length: u64,
    /// The length as seen on this machine.
    pub length: u64,
    /// The bytes that are here.
    pub present: Ranges,
    /// Those of them that are zeros and take no room in the cache file.
    pub holes: Ranges,
    /// The bytes that the server does not have.
    pub dirty: Ranges,
    /// The bytes that are being stored.
    pub storing: Ranges,
    /// The bytes that are being fetched.
    pub fetching: Ranges,
    /// The bytes that readers are waiting for, or reading: these are not dropped to make room.
    pub pinned: Vec<Range<u64>>,
    /// How much of the server's file is still part of ours: the shortest length since the last store.
    pub cut: u64,
    /// Somebody here set a length, even if it is the one the file had: that changes its time, and must be stored.
    pub resized: bool,
    /// Something was changed here since the last close or fsync: what is unsaved may be a part of what somebody is at.
    pub changing: bool,
    /// When it was last changed here; goes with the next store.
    pub changed_at: Option<UnixSeconds>,
    /// Who uses it.
    pub uses: UseCounts,
    /// Stores by ourselves that failed since the last success.
    pub failures: u32,
}

impl Content {
    /// Nothing is here yet of a version of this length.
    pub fn new(version: DataVersion, length: u64) -> Self {
        Content {
            version,
            base_length: length,
            length,
            present: Ranges::new(),
            holes: Ranges::new(),
            dirty: Ranges::new(),
            storing: Ranges::new(),
            fetching: Ranges::new(),
            pinned: Vec::new(),
            cut: length,
            resized: false,
            changing: false,
            changed_at: None,
            uses: UseCounts::default(),
            failures: 0,
        }
    }

    /// What a store kept of a version.
    pub fn of_kept(version: DataVersion, kept: Kept) -> Self {
        Content { present: kept.present, holes: kept.holes, ..Content::new(version, kept.length) }
    }

    /// What to keep, when nothing is unsaved.
    pub fn to_kept(&self) -> Option<Kept> {
        let kept = || Kept { length: self.length, present: self.present.clone(), holes: self.holes.clone() };
        (!self.is_dirty()).then(kept)
    }

    /// Whether the server lacks something.
    pub fn is_dirty(&self) -> bool {
        self.resized
            || !self.dirty.is_empty()
            || !self.storing.is_empty()
            || self.cut != self.base_length
            || self.length != self.base_length
    }

    /// Whether all bytes are here.
    pub fn is_complete(&self) -> bool {
        self.present.contains(&(0..self.length))
    }

    /// Bytes that only we have.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.bytes() + self.storing.bytes()
    }

    /// The next position of a kind; `None` if there is none before the end.
    pub fn seek(&self, from: u64, wanted: Seek) -> Option<u64> {
        let hole = self.holes.around(from);
        let found = match (wanted, hole) {
            (Seek::Data, Some(hole)) => hole.end,
            (Seek::Hole, None) => self.holes.next_start(from).unwrap_or(self.length).min(self.length),
            (Seek::Data, None) | (Seek::Hole, Some(_)) => from,
        };
        let is_there = from < self.length && (found < self.length || wanted == Seek::Hole);
        is_there.then_some(found)
    }

    /// All of the file but its holes.
    pub fn data(&self) -> Ranges {
        let mut data = Ranges::whole(self.length);
        self.holes.iter().for_each(|hole| data.remove(hole));
        data
    }
}
