//! State of a cache file: its version, and which bytes are cached, dirty, in holes or in transfer.
//!
//! Moves no bytes itself, so that every case can be tested.

use std::ops::Range;

use afs_wire::ids::{DataVersion, FileTime};

use crate::api::Seek;
use crate::cache::{Kept, Ranges};
use crate::data::UseCounts;

/// State of the data of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// Version at the server that the data is, or was made from.
    pub version: DataVersion,
    /// Length of the file at the server.
    pub base_length: u64,
    /// Length as seen on this machine.
    pub length: u64,
    /// Bytes that are cached.
    pub present: Ranges,
    /// Cached bytes that are zeros and take no space in the cache file.
    pub holes: Ranges,
    /// Bytes that the server does not have.
    pub dirty: Ranges,
    /// The bytes that are being stored.
    pub storing: Ranges,
    /// The bytes that are being fetched.
    pub fetching: Ranges,
    /// Bytes that readers wait for or read: they are not evicted.
    pub pinned: Vec<Range<u64>>,
    /// Length of the part of the server's file that is still part of this one: the shortest length since the last
    /// store.
    pub cut: u64,
    /// A program set the length, even if to the same value: that changes the modification time and must be stored.
    pub resized: bool,
    /// Changed since the last close or fsync: the dirty data may be an incomplete change of a program.
    pub changing: bool,
    /// Time of the last local change; sent with the next store.
    pub changed_at: Option<FileTime>,
    /// References to the data.
    pub uses: UseCounts,
    /// Failed stores in a row.
    pub failures: u32,
}

impl Content {
    /// State of a version of which nothing is cached yet.
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

    /// State of a kept file.
    pub fn of_kept(version: DataVersion, kept: Kept) -> Self {
        Content { present: kept.present, holes: kept.holes, ..Content::new(version, kept.length) }
    }

    /// Contents to keep; `None` if there is dirty data.
    pub fn to_kept(&self) -> Option<Kept> {
        let kept = || Kept { length: self.length, present: self.present.clone(), holes: self.holes.clone() };
        (!self.is_dirty()).then(kept)
    }

    /// True if the server lacks something.
    pub fn is_dirty(&self) -> bool {
        self.resized
            || !self.dirty.is_empty()
            || !self.storing.is_empty()
            || self.cut != self.base_length
            || self.length != self.base_length
    }

    /// True if a program has it open for writing, or has changed it.
    pub fn is_changing(&self) -> bool {
        self.uses.writers() > 0 || self.is_dirty()
    }

    /// True if all bytes are cached.
    pub fn is_complete(&self) -> bool {
        self.present.contains(&(0..self.length))
    }

    /// Number of bytes that only this machine has.
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

    /// The whole file without its holes.
    pub fn data(&self) -> Ranges {
        let mut data = Ranges::whole(self.length);
        self.holes.iter().for_each(|hole| data.remove(hole));
        data
    }

    /// Cached bytes outside of holes.
    pub fn cached_data(&self) -> Ranges {
        let mut data = self.present.clone();
        self.holes.iter().for_each(|hole| data.remove(hole));
        data
    }
}
