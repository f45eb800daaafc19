//! Objects of one pin: what is below its root, and what of it is in the cache.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::Key;

/// What is known of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// It is to be looked at.
    Unknown,
    /// All of it is in the cache.
    Whole,
    /// Not all of it is, for this reason.
    Missing(String),
}

#[derive(Debug)]
struct Object {
    /// Directories of the tree in which it has a name; one more for the root.
    listings: usize,
    held: Held,
    /// Length of a file; 0 if it is none, or not known.
    bytes: u64,
    /// What it may take in the cache.
    room: u64,
    /// What the names of a directory may take in memory, in bytes.
    memory: u64,
    /// Of a directory, what has a name in it.
    children: BTreeSet<Key>,
}

/// Sums over the objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    pub objects: u64,
    pub missing_objects: u64,
    pub bytes: u64,
    pub missing_bytes: u64,
    /// Bytes that the files may take in the cache.
    pub room: u64,
    /// Bytes that the names of the directories may take in memory.
    pub memory: u64,
}

/// What a listing has changed.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub added: Vec<Key>,
    pub dropped: Vec<Key>,
    /// Names for which there was no room.
    pub left_out: usize,
}

/// The objects, reached from the root by the directories' names.
#[derive(Debug)]
pub(crate) struct Tree {
    objects: BTreeMap<Key, Object>,
    /// Those that are to be looked at in this pass.
    due: BTreeSet<Key>,
    /// Those that are to be looked at in the next one.
    later: BTreeSet<Key>,
    /// Those of which something is missing for a reason.
    lacking: BTreeSet<Key>,
    sums: Sums,
}

impl Tree {
    /// A tree of these objects, each with one name.
    pub fn of(roots: &[Key]) -> Self {
        let mut tree = Tree {
            objects: BTreeMap::new(),
            due: BTreeSet::new(),
            later: BTreeSet::new(),
            lacking: BTreeSet::new(),
            sums: Sums::default(),
        };
        roots.iter().for_each(|root| tree.add(*root));
        tree
    }

    pub fn sums(&self) -> Sums {
        self.sums
    }

    pub fn keys(&self) -> Vec<Key> {
        self.objects.keys().copied().collect()
    }

    /// True if something is to be looked at.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty() || !self.later.is_empty()
    }

    /// Begins a pass. What changes during it is looked at in the next one.
    pub fn begin_pass(&mut self) {
        self.due.append(&mut self.later);
    }

    /// Takes an object that is to be looked at.
    pub fn take_due(&mut self) -> Option<Key> {
        self.due.pop_first()
    }

    /// An object has changed, or may have: it is to be looked at.
    pub fn doubt(&mut self, key: Key) {
        if self.objects.contains_key(&key) {
            self.later.insert(key);
            self.set(key, Held::Unknown);
        }
    }

    /// The same of all of which something is missing.
    pub fn doubt_lacking(&mut self) {
        std::mem::take(&mut self.lacking).into_iter().for_each(|key| self.doubt(key));
    }

    /// The reason why something is missing of the first object of which something is.
    pub fn reason(&self) -> Option<&str> {
        let object = self.objects.get(self.lacking.first()?)?;
        if let Held::Missing(why) = &object.held { Some(why) } else { None }
    }

    /// Sets the length of a file, which takes that in the cache if there is room. False: there is none, or it is not in the
    /// tree any more.
    pub fn set_bytes(&mut self, key: Key, bytes: u64, room: u64) -> bool {
        let set = |object: &mut Object| {
            let has_room = bytes <= room.saturating_add(object.room);
            (object.bytes, object.room) = (bytes, if has_room { bytes } else { 0 });
            has_room
        };
        self.change(key, set).unwrap_or(false)
    }

    /// Sets the length of a directory, which takes that in memory if there is room; else as [`Tree::set_bytes`].
    pub fn set_memory(&mut self, key: Key, bytes: u64, room: u64) -> bool {
        let set = |object: &mut Object| {
            let has_room = bytes <= room.saturating_add(object.memory);
            object.memory = if has_room { bytes } else { 0 };
            has_room
        };
        self.change(key, set).unwrap_or(false)
    }

    /// Records what is held of an object, unless it is to be looked at again.
    pub fn looked_at(&mut self, key: Key, held: Held) {
        if !self.later.contains(&key) {
            self.set(key, held);
        }
    }

    fn set(&mut self, key: Key, held: Held) {
        let is_lacking = matches!(held, Held::Missing(_));
        if self.change(key, |object| object.held = held).is_none() {
            return;
        }
        match is_lacking {
            true => self.lacking.insert(key),
            false => self.lacking.remove(&key),
        };
    }

    /// The present names of a directory. At most `room` objects are added.
    pub fn list(&mut self, dir: Key, now: &BTreeSet<Key>, room: usize) -> Listed {
        let mut listed = Listed::default();
        let Some(before) = self.objects.get_mut(&dir).map(|object| std::mem::take(&mut object.children))
        else {
            return listed;
        };
        let mut children = BTreeSet::new();
        for key in now {
            if before.contains(key) {
                // Its rights may follow from the directory.
                if self.lacking.contains(key) {
                    self.doubt(*key);
                }
            } else if let Some(object) = self.objects.get_mut(key) {
                object.listings += 1;
            } else if listed.added.len() < room {
                self.add(*key);
                listed.added.push(*key);
            } else {
                listed.left_out += 1;
                continue;
            }
            children.insert(*key);
        }
        if let Some(object) = self.objects.get_mut(&dir) {
            object.children = children;
        }
        self.unlist(before.difference(now).copied().collect(), &mut listed.dropped);
        listed
    }

    /// Takes one name from each of some objects; what has none left is dropped, with what is below it.
    fn unlist(&mut self, mut gone: Vec<Key>, dropped: &mut Vec<Key>) {
        while let Some(key) = gone.pop() {
            let Some(object) = self.objects.get_mut(&key) else { continue };
            object.listings -= 1;
            if object.listings == 0 {
                gone.extend(std::mem::take(&mut object.children));
                self.drop_object(key);
                dropped.push(key);
            }
        }
    }

    fn add(&mut self, key: Key) {
        if self.objects.contains_key(&key) {
            return;
        }
        self.objects.insert(
            key,
            Object {
                listings: 1,
                held: Held::Unknown,
                bytes: 0,
                room: 0,
                memory: 0,
                children: BTreeSet::new(),
            },
        );
        self.sums.objects += 1;
        self.sums.missing_objects += 1;
        self.due.insert(key);
    }

    fn drop_object(&mut self, key: Key) {
        self.due.remove(&key);
        self.later.remove(&key);
        self.lacking.remove(&key);
        if let Some(object) = self.objects.remove(&key) {
            self.sums.objects -= 1;
            self.sums.bytes -= object.bytes;
            self.sums.room -= object.room;
            self.sums.memory -= object.memory;
            if object.held != Held::Whole {
                self.sums.missing_objects -= 1;
                self.sums.missing_bytes -= object.bytes;
            }
        }
    }

    fn change<T>(&mut self, key: Key, change: impl FnOnce(&mut Object) -> T) -> Option<T> {
        let object = self.objects.get_mut(&key)?;
        let missing = |object: &Object| if object.held == Held::Whole { (0, 0) } else { (1, object.bytes) };
        let (bytes, room, memory) = (object.bytes, object.room, object.memory);
        let before = missing(object);
        let done = change(object);
        let after = missing(object);
        self.sums.bytes = self.sums.bytes - bytes + object.bytes;
        self.sums.room = self.sums.room - room + object.room;
        self.sums.memory = self.sums.memory - memory + object.memory;
        self.sums.missing_objects = self.sums.missing_objects - before.0 + after.0;
        self.sums.missing_bytes = self.sums.missing_bytes - before.1 + after.1;
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::key::CellIndex;

    fn key(n: u32) -> Key {
        Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
    }

    fn keys(all: &[u32]) -> BTreeSet<Key> {
        all.iter().map(|n| key(*n)).collect()
    }

    /// Looks at all that is due.
    fn look(tree: &mut Tree) {
        tree.begin_pass();
        while let Some(key) = tree.take_due() {
            tree.looked_at(key, Held::Whole);
        }
    }

    #[test]
    fn what_has_no_name_left_is_dropped_with_what_is_below_it() {
        let mut tree = Tree::of(&[key(1)]);
        assert_eq!(tree.list(key(1), &keys(&[2, 3]), 9).added, [key(2), key(3)]);
        // A file with a name in each of two directories.
        tree.list(key(3), &keys(&[5, 7]), 9);
        assert!(tree.list(key(1), &keys(&[2, 3, 5]), 9).added.is_empty());
        assert!(tree.set_bytes(key(5), 10, 10) && tree.set_bytes(key(7), 100, 100));
        look(&mut tree);
        assert_eq!(tree.sums(), Sums { objects: 5, bytes: 110, room: 110, ..Sums::default() });
        assert_eq!(tree.list(key(1), &keys(&[2, 5]), 9).dropped, [key(3), key(7)]);
        assert_eq!(tree.sums(), Sums { objects: 3, bytes: 10, room: 10, ..Sums::default() });
        assert_eq!(tree.list(key(1), &keys(&[]), 9).dropped.len(), 2);
        assert_eq!(tree.sums(), Sums { objects: 1, ..Sums::default() });
        assert!(tree.list(key(3), &keys(&[9]), 9).added.is_empty(), "it is not in the tree any more");
    }

    #[test]
    fn directories_that_name_one_another_end() {
        let mut tree = Tree::of(&[key(1)]);
        tree.list(key(1), &keys(&[3]), 9);
        tree.list(key(3), &keys(&[1, 3, 5]), 9);
        assert_eq!(tree.sums().objects, 3);
        // What a server says of itself costs at most what it said.
        tree.list(key(1), &keys(&[]), 9);
        assert!(tree.sums().objects <= 3);
    }

    #[test]
    fn names_beyond_the_bound_are_counted_and_taken_when_there_is_room() {
        let mut tree = Tree::of(&[key(1)]);
        let many = keys(&[2, 4, 6]);
        assert_eq!(tree.list(key(1), &many, 2).left_out, 1);
        assert_eq!(tree.sums().objects, 3);
        assert_eq!(tree.list(key(1), &many, 2).added.len(), 1);
    }

    #[test]
    fn a_change_while_it_is_looked_at_is_not_forgotten() {
        let mut tree = Tree::of(&[key(1)]);
        let due = tree.take_due().unwrap();
        tree.doubt(due);
        tree.looked_at(due, Held::Whole);
        assert!(tree.is_due() && tree.sums().missing_objects == 1);
        assert_eq!(tree.take_due(), None, "a file that changes all the time is not fetched all the time");
        look(&mut tree);
        assert_eq!(tree.sums().missing_objects, 0);
        tree.doubt(key(9));
        assert!(!tree.is_due());
    }

    #[test]
    fn what_is_missing_is_told_and_looked_at_again_when_its_directory_changes() {
        let mut tree = Tree::of(&[key(1)]);
        tree.list(key(1), &keys(&[2]), 9);
        look(&mut tree);
        assert!(!tree.set_bytes(key(2), 7, 6));
        tree.looked_at(key(2), Held::Missing("no right".into()));
        assert_eq!(tree.reason(), Some("no right"));
        assert_eq!(
            tree.sums(),
            Sums { objects: 2, missing_objects: 1, bytes: 7, missing_bytes: 7, ..Sums::default() }
        );
        tree.list(key(1), &keys(&[2]), 9);
        assert!(tree.is_due() && tree.reason().is_none());
        look(&mut tree);
        tree.looked_at(key(2), Held::Missing("no room".into()));
        tree.doubt_lacking();
        tree.begin_pass();
        assert_eq!((tree.take_due(), tree.reason()), (Some(key(2)), None));
    }
}
