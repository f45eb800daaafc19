//! Removal of cached data: after the server has another version, or to free space.

use std::ops::Range;

use afs_wire::ids::DataVersion;

use crate::cache::Ranges;
use crate::data::Content;

impl Content {
    /// Keeps only these ranges as cached.
    pub fn keep_only(&mut self, ranges: Ranges) {
        self.present = ranges;
        self.keep_holes_present();
    }

    fn keep_holes_present(&mut self) {
        let end = self.length.max(self.holes.end());
        self.present.gaps(0..end).into_iter().for_each(|gap| self.holes.remove(gap));
    }

    /// Changes the base version of data with dirty ranges: all other cached bytes are discarded.
    pub fn rebase(&mut self, version: DataVersion, base_length: u64) {
        if version != self.version {
            self.lay_on(version, base_length);
        }
    }

    /// As [`Content::rebase`], of whatever version the server says.
    pub(super) fn lay_on(&mut self, version: DataVersion, base_length: u64) {
        let unsaved: Vec<_> = self.dirty.iter().chain(self.storing.iter()).collect();
        let cut_here = self.cut < self.base_length;
        let grown = self.length > self.base_length;
        // What a program has added is cached, zeros too; what only a server has claimed may be not.
        let added = if grown { self.present.parts(self.base_length..self.length) } else { Vec::new() };
        self.present = Ranges::new();
        unsaved.into_iter().chain(added).for_each(|range| self.present.insert(range));
        self.version = version;
        self.base_length = base_length;
        self.keep_holes_present();
        if !cut_here && !grown && self.dirty.end().max(self.storing.end()) < self.length {
            self.length = base_length.max(self.dirty.end()).max(self.storing.end());
        }
        self.cut = if cut_here { self.cut.min(base_length) } else { base_length };
    }

    /// The same without dirty data: everything must be fetched again; references and pins are kept.
    pub fn replace_version(&mut self, version: DataVersion, length: u64) {
        let new = Content::new(version, length);
        let pinned = std::mem::take(&mut self.pinned);
        let fetching = std::mem::replace(&mut self.fetching, Ranges::new());
        *self = Content { pinned, fetching, uses: self.uses, ..new };
    }

    /// Changes the version to one that begins with all of this one; what it adds is cached.
    pub fn grow_to(&mut self, version: DataVersion, length: u64) {
        self.present.insert(self.length..length);
        self.version = version;
        (self.base_length, self.length, self.cut) = (length, length, length);
    }

    /// Removes up to `bytes` clean bytes outside of `wanted` from the cached ranges, from the beginning of the file,
    /// and returns the ranges.
    pub fn evict(&mut self, bytes: u64, wanted: &Range<u64>) -> Vec<Range<u64>> {
        let mut clean = self.present.clone();
        let needed = self.pinned.iter().cloned().chain([wanted.clone()]);
        for keep in self.dirty.iter().chain(self.storing.iter()).chain(needed) {
            clean.remove(keep);
        }
        // Evicting holes frees no space, and zeros beyond the end of the server's file cannot be fetched again.
        self.holes.iter().for_each(|hole| clean.remove(hole));
        clean.remove(self.cut.min(self.base_length)..u64::MAX);
        let mut evicted = Vec::new();
        let mut freed = 0;
        for range in clean.iter() {
            if freed >= bytes {
                break;
            }
            let range = range.start..range.end.min(range.start + (bytes - freed));
            freed += range.end - range.start;
            evicted.push(range);
        }
        evicted.iter().for_each(|range| self.present.remove(range.clone()));
        evicted
    }
}
