//! What a store makes of the accounts of a cache file, and how one is known whose answer was lost.

use afs_wire::fs::Status;
use afs_wire::ids::DataVersion;

use crate::cache::Ranges;
use crate::data::{Content, Piece};

impl Content {
    /// A piece is at the server, whose file has this version and length.
    pub fn stored(&mut self, piece: &Piece, version: DataVersion, length: u64) {
        self.storing.remove(piece.range.clone());
        self.version = version;
        self.base_length = length;
    }

    /// All pieces are.
    pub fn store_done(&mut self) {
        self.storing = Ranges::new();
        self.cut = self.cut.min(self.base_length);
        if !self.is_dirty() {
            self.changing = false;
            self.changed_at = None;
        }
        self.failures = 0;
    }

    /// The store failed; what was not stored is still unsaved. `cut` is what [`Content::cut`] was before.
    pub fn store_failed(&mut self, cut: u64, any_stored: bool) {
        self.store_stopped(cut, any_stored);
        self.failures = self.failures.saturating_add(1);
    }

    /// The store was stopped, to begin anew or to be left to another one; likewise.
    pub fn store_stopped(&mut self, cut: u64, any_stored: bool) {
        let unsaved: Vec<_> = self.storing.parts(0..self.length);
        unsaved.into_iter().for_each(|range| self.dirty.insert(range));
        self.storing = Ranges::new();
        self.resized = true;
        self.cut = if any_stored { self.cut.min(self.base_length) } else { self.cut.min(cut) };
    }

    /// Whether the server's file may be what a store of ours, whose answer never came, made of it. Another machine's store
    /// may look alike: the bytes have to be compared. `into` is the version that it was made into.
    pub fn may_be_stored(&self, status: &Status, into: DataVersion) -> bool {
        status.data_version == into.next()
            && status.length == self.length
            && Some(status.client_mod_time) == self.changed_at
    }

    /// The bytes by which a store of ours is known at the server: what is unsaved, and all data of the file if it is here.
    pub fn ranges_to_compare(&self) -> Ranges {
        let mut marks = match self.is_complete() {
            true => self.data(),
            false => Ranges::new(),
        };
        self.dirty.iter().chain(self.storing.iter()).for_each(|range| marks.insert(range));
        marks
    }

    /// Another store came between ours and the server's copy has something of both: all of the file is unsaved again.
    pub fn mark_all_dirty(&mut self) {
        self.dirty = self.data();
        self.cut = 0;
        self.resized = true;
    }

    /// The server has everything, as this version.
    pub fn was_stored(&mut self, version: DataVersion) {
        self.version = version;
        self.base_length = self.length;
        self.cut = self.length;
        self.dirty = Ranges::new();
        self.storing = Ranges::new();
        self.resized = false;
        self.changing = false;
        self.changed_at = None;
        self.failures = 0;
    }
}
