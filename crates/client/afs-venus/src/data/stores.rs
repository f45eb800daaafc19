//! Effects of a store on the state of the data, and recognition of a store whose reply was lost.

use afs_wire::fs::Status;
use afs_wire::ids::DataVersion;

use crate::cache::Ranges;
use crate::data::{Content, Piece};

impl Content {
    /// Records that a piece was stored, and the resulting version and length at the server.
    pub fn stored(&mut self, piece: &Piece, version: DataVersion, length: u64) {
        self.storing.remove(piece.range.clone());
        self.version = version;
        self.base_length = length;
    }

    /// Records that a piece was stored into a version that another client has made since: what is cached of the earlier one is
    /// not what the server has. The length here changes with that of the server, unless a program has changed it.
    pub fn stored_into_another(&mut self, piece: &Piece, version: DataVersion, length: u64) {
        self.storing.remove(piece.range.clone());
        self.lay_on(version, length);
    }

    /// Records that all pieces were stored.
    pub fn store_done(&mut self) {
        self.storing = Ranges::new();
        self.cut = self.cut.min(self.base_length);
        if !self.is_dirty() {
            self.changing = false;
            self.changed_at = None;
        }
        self.failures = 0;
    }

    /// Records a failed store: what was not stored is dirty again. `cut` is the value of [`Content::cut`] before the
    /// store.
    pub fn store_failed(&mut self, cut: u64, any_stored: bool) {
        self.store_stopped(cut, any_stored);
        self.failures = self.failures.saturating_add(1);
    }

    /// The same for a store that was stopped, to be repeated or to be left to another one.
    pub fn store_stopped(&mut self, cut: u64, any_stored: bool) {
        let unsaved: Vec<_> = self.storing.parts(0..self.length);
        unsaved.into_iter().for_each(|range| self.dirty.insert(range));
        self.storing = Ranges::new();
        self.resized = true;
        self.cut = if any_stored { self.cut.min(self.base_length) } else { self.cut.min(cut) };
    }

    /// True if the server's file may be the result of a local store whose reply was lost. Another machine's store may
    /// have the same status, so the bytes must be compared. `into` is the version that the store was based on.
    pub fn may_be_stored(&self, status: &Status, into: DataVersion) -> bool {
        status.data_version == into.next()
            && status.length == self.length
            && self.changed_at.is_some_and(|at| status.client_mod_time.may_be(at))
    }

    /// Ranges to compare with the server's file to recognise a store: the dirty bytes, and all data of the file if it
    /// is cached.
    pub fn ranges_to_compare(&self) -> Ranges {
        let mut marks = match self.is_complete() {
            true => self.data(),
            false => Ranges::new(),
        };
        self.dirty.iter().chain(self.storing.iter()).for_each(|range| marks.insert(range));
        marks
    }

    /// Marks the whole file as dirty: another machine's store came in between, and the server's file is a mixture of
    /// both.
    pub fn mark_all_dirty(&mut self) {
        self.dirty = self.data();
        self.cut = 0;
        self.resized = true;
    }

    /// Records that the server has the data as this version.
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
