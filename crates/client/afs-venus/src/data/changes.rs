//! Changes of cached data: by writes of programs, by passthrough writes of the kernel, and by fetches.

use std::ops::Range;

use afs_wire::ids::FileTime;

use crate::cache::Ranges;
use crate::data::Content;

/// Holes tracked per file; further holes count as data.
const HOLES_MAX: usize = 1 << 16;

impl Content {
    /// Records a write of a program.
    pub fn wrote(&mut self, range: Range<u64>, at: FileTime) {
        if range.is_empty() {
            return;
        }
        self.grow(range.start);
        self.length = self.length.max(range.end);
        self.present.insert(range.clone());
        self.holes.remove(range.clone());
        self.dirty.insert(range);
        self.changing = true;
        self.changed_at = Some(at);
    }

    /// Records a truncation or extension by a program.
    pub fn set_length(&mut self, length: u64, at: FileTime) {
        self.resized = true;
        self.changing = true;
        self.grow(length);
        self.length = length;
        self.cut = self.cut.min(length);
        for ranges in [&mut self.present, &mut self.holes, &mut self.dirty] {
            ranges.remove(length..u64::MAX);
        }
        self.changed_at = Some(at);
    }

    /// Extends the file with zeros, here and (after the store) at the server.
    fn grow(&mut self, to: u64) {
        if to > self.length {
            self.present.insert(self.length..to);
            self.add_hole(self.length..to);
            self.length = to;
        }
    }

    /// A hole beyond the bound counts as data, which costs only time and space.
    fn add_hole(&mut self, range: Range<u64>) {
        if self.holes.count() < HOLES_MAX {
            self.holes.insert(range);
        }
    }

    /// Records passthrough writes of the kernel: the file is complete and of this length, with data in these ranges
    /// only.
    pub fn wrote_data(&mut self, length: u64, data: &Ranges, at: FileTime) {
        self.set_length(length, at);
        self.present = Ranges::whole(length);
        self.holes = Ranges::new();
        data.gaps(0..length).into_iter().for_each(|hole| self.add_hole(hole));
        data.parts(0..length).into_iter().for_each(|range| self.dirty.insert(range));
    }

    /// Records that a program made a range zeros without space, up to the end of the file.
    pub fn zeroed(&mut self, range: Range<u64>, at: FileTime) {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return;
        }
        let kept = range.start..range.end.min(self.cut).min(self.base_length);
        // The server already has zeros in holes that were never dirty, and beyond the part of its file that is kept,
        // unless a store in progress is sending data there.
        let nonzero = self.holes.gaps(kept.start..kept.end.max(kept.start));
        let being_stored = self.storing.parts(range.clone());
        nonzero.into_iter().chain(being_stored).for_each(|part| self.dirty.insert(part));
        self.present.insert(range.clone());
        self.add_hole(range);
        self.resized = true;
        self.changing = true;
        self.changed_at = Some(at);
    }

    /// Records that a range is not a hole after all.
    pub fn remove_hole(&mut self, range: Range<u64>) {
        self.holes.remove(range);
    }

    /// Records fetched bytes of this version. Those in `holes` were zeros and take no space.
    pub fn fetched(&mut self, range: Range<u64>, holes: &Ranges) {
        let end = range.end.min(self.length).min(self.cut);
        if range.start >= end {
            return;
        }
        self.present.insert(range.start..end);
        self.holes.remove(range.start..end);
        holes.parts(range.start..end).into_iter().for_each(|hole| self.add_hole(hole));
    }
}
