//! Changes of what is in a cache file: by people here, by a kernel, and by bytes that arrive.

use std::ops::Range;

use afs_wire::ids::UnixSeconds;

use crate::cache::Ranges;
use crate::data::Content;

/// Holes of one file that are known. What is a hole beyond that counts as data.
const HOLES_MAX: usize = 1 << 16;

impl Content {
    /// Somebody here wrote these bytes.
    pub fn wrote(&mut self, range: Range<u64>, at: UnixSeconds) {
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

    /// Somebody here cut or grew the file.
    pub fn set_length(&mut self, length: u64, at: UnixSeconds) {
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

    /// Bytes between the end and a place behind it are zeros, here and (after the store) at the server.
    fn grow(&mut self, to: u64) {
        if to > self.length {
            self.present.insert(self.length..to);
            self.add_hole(self.length..to);
            self.length = to;
        }
    }

    /// Beyond the bound a hole counts as data, which costs time and room and nothing else.
    fn add_hole(&mut self, range: Range<u64>) {
        if self.holes.count() < HOLES_MAX {
            self.holes.insert(range);
        }
    }

    /// The kernel wrote behind our back; the file is complete and of this length, and has data in these ranges only.
    pub fn wrote_data(&mut self, length: u64, data: &Ranges, at: UnixSeconds) {
        self.set_length(length, at);
        self.present = Ranges::whole(length);
        self.holes = Ranges::new();
        data.gaps(0..length).into_iter().for_each(|hole| self.add_hole(hole));
        data.parts(0..length).into_iter().for_each(|range| self.dirty.insert(range));
    }

    /// Somebody here made a range zeros that take no room, as far as the file reaches.
    pub fn zeroed(&mut self, range: Range<u64>, at: UnixSeconds) {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return;
        }
        let kept = range.start..range.end.min(self.cut).min(self.base_length);
        // The server has zeros already in holes that it was not told anything about, and beyond what it keeps; unless a store
        // is just bringing something there.
        let told = self.holes.gaps(kept.start..kept.end.max(kept.start));
        let being_told = self.storing.parts(range.clone());
        told.into_iter().chain(being_told).for_each(|part| self.dirty.insert(part));
        self.present.insert(range.clone());
        self.add_hole(range);
        self.resized = true;
        self.changing = true;
        self.changed_at = Some(at);
    }

    /// A range that was taken for a hole is none after all.
    pub fn unzero(&mut self, range: Range<u64>) {
        self.holes.remove(range);
    }

    /// Bytes of our version have arrived. Those in `holes` were zeros, and take no room here.
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
