//! Parts of a cache file that are of no use any more: another version is at the server, or there is no room.

use std::ops::Range;

use afs_wire::ids::DataVersion;

use crate::cache::Ranges;
use crate::data::Content;

impl Content {
    /// Only these bytes are known to be those of the server's version.
    pub fn keep_only(&mut self, ranges: Ranges) {
        self.present = ranges;
        self.keep_holes_present();
    }

    fn keep_holes_present(&mut self) {
        let end = self.length.max(self.holes.end());
        self.present.gaps(0..end).into_iter().for_each(|gap| self.holes.remove(gap));
    }

    /// The server's file is of another version now, and something here is unsaved: what is not unsaved is worthless.
    pub fn rebase(&mut self, version: DataVersion, base_length: u64) {
        if version == self.version {
            return;
        }
        let unsaved: Vec<_> = self.dirty.iter().chain(self.storing.iter()).collect();
        let cut_here = self.cut < self.base_length;
        let grown = self.length > self.base_length;
        let tail = self.base_length..self.length;
        self.present = Ranges::new();
        unsaved.into_iter().for_each(|range| self.present.insert(range));
        if grown {
            self.present.insert(tail);
        }
        self.version = version;
        self.base_length = base_length;
        self.keep_holes_present();
        if !cut_here && !grown && self.dirty.end().max(self.storing.end()) < self.length {
            self.length = base_length.max(self.dirty.end()).max(self.storing.end());
        }
        self.cut = if cut_here { self.cut.min(base_length) } else { base_length };
    }

    /// The same when nothing is unsaved: all of it is to be fetched, and only who uses it stays.
    pub fn replace_version(&mut self, version: DataVersion, length: u64) {
        let new = Content::new(version, length);
        let pinned = std::mem::take(&mut self.pinned);
        let fetching = std::mem::replace(&mut self.fetching, Ranges::new());
        *self = Content { pinned, fetching, uses: self.uses, ..new };
    }

    /// Clean bytes outside `wanted` that can be dropped to free up to `bytes`, from the beginning on; they are taken
    /// out of what is present.
    pub fn evict(&mut self, bytes: u64, wanted: &Range<u64>) -> Vec<Range<u64>> {
        let mut clean = self.present.clone();
        let needed = self.pinned.iter().cloned().chain([wanted.clone()]);
        for keep in self.dirty.iter().chain(self.storing.iter()).chain(needed) {
            clean.remove(keep);
        }
        // No room would be won by dropping holes, and zeros beyond the server's file cannot be fetched again.
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
