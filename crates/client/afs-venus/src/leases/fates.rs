//! What became of objects while a lost lease is made good, change by change: which ones took the place of those with lent fids, and which did
//! not get what was decided.

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::fs::Name;
use afs_wire::ids::Fid;

use crate::key::Key;

/// The fates of the objects of one lease. There are at most as many as changes waited in its journal.
#[derive(Default)]
pub(crate) struct Fates {
    replaced: BTreeMap<Fid, Fid>,
    not_linked: BTreeSet<Key>,
    unstored: BTreeSet<Key>,
    kept: BTreeMap<Key, (Fid, Name)>,
    unmade: BTreeSet<Key>,
}

impl Fates {
    /// The object that was made in the place of the one with this lent fid, or that object itself.
    pub fn in_place_of(&self, fid: Fid) -> Fid {
        self.replaced.get(&fid).copied().unwrap_or(fid)
    }

    /// An object was made anew in the place of one with a lent fid.
    pub fn replace(&mut self, lent: Fid, by: Fid) {
        self.replaced.insert(lent, by);
    }

    /// An object did not get another name. The name that was to be removed after that may be its last one.
    pub fn note_not_linked(&mut self, object: Key) {
        self.not_linked.insert(object);
    }

    /// Whether an object did not get a name by which it was to be kept.
    pub fn was_not_linked(&self, object: Key) -> bool {
        self.not_linked.contains(&object)
    }

    /// The data of a file was not taken. Another name that it was to get may be that of a file with data.
    pub fn note_unstored(&mut self, file: Key) {
        self.unstored.insert(file);
    }

    /// Whether the data of a file was not taken.
    pub fn is_unstored(&self, file: Key) -> bool {
        self.unstored.contains(&file)
    }

    /// An object without a name after all that was decided was not made.
    pub fn note_unmade(&mut self, object: Key) {
        self.unmade.insert(object);
    }

    /// Whether an object was not made, so that nothing is left to do of what was decided of it.
    pub fn was_not_made(&self, object: Key) -> bool {
        self.unmade.contains(&object)
    }

    /// An object keeps a name in a directory of the server: it could not be renamed.
    pub fn keeps(&mut self, object: Key, named: (Fid, Name)) {
        self.kept.insert(object, named);
    }

    /// An object was renamed.
    pub fn was_renamed(&mut self, object: Key) {
        self.kept.remove(&object);
    }

    /// The name that an object has kept.
    pub fn kept(&self, object: Key) -> Option<(Fid, Name)> {
        self.kept.get(&object).cloned()
    }
}
