//! Table of the objects that pins keep, by object and pin: what is known of each, and which are to be looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::Key;

/// What is known of an object.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum Held {
    /// It is to be looked at.
    #[default]
    Unknown,
    /// All of it is in the cache.
    Whole,
    /// Not all of it is, for this reason.
    Missing(String),
}

/// Bounds of all pins together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinBounds {
    pub objects: usize,
    /// Of files in the cache.
    pub bytes: u64,
    /// Of the names of directories in memory.
    pub directory_bytes: u64,
}

/// An object of a pin.
pub(super) type ObjectOfPin = (Key, u64);

#[derive(Default)]
struct Object {
    held: Held,
    /// Length of a file, or of the names of a directory; 0 if it is not known.
    bytes: u64,
    /// What it may take of the cache, or of memory.
    taken: u64,
    /// Of a directory, what has a name in it.
    children: BTreeSet<Key>,
    /// It is what was pinned, or below that.
    is_below: bool,
    /// The path to what was pinned leads through it.
    is_on_way: bool,
}

/// What is known of a pin.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Tally {
    pub objects: u64,
    pub missing_objects: u64,
    /// Of the files.
    pub bytes: u64,
    pub missing_bytes: u64,
    /// Something is to be looked at.
    pub is_due: bool,
    /// Why something is missing, of the first object of which something is.
    pub reason: Option<String>,
}

/// What a listing has changed.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub added: Vec<Key>,
    pub dropped: Vec<Key>,
    /// Names for which there was no room.
    pub left_out: usize,
}

/// The objects of all pins.
pub(super) struct Objects {
    bounds: PinBounds,
    all: BTreeMap<ObjectOfPin, Object>,
    /// Those that are to be looked at in this pass.
    due: BTreeSet<ObjectOfPin>,
    /// Those that are to be looked at in the next one.
    later: BTreeSet<ObjectOfPin>,
    /// Bytes that the files may take in the cache.
    bytes: u64,
    /// Bytes that the names of the directories may take in memory.
    directory_bytes: u64,
}

impl Objects {
    pub fn new(bounds: PinBounds) -> Self {
        let (due, later) = (BTreeSet::new(), BTreeSet::new());
        Objects { bounds, all: BTreeMap::new(), due, later, bytes: 0, directory_bytes: 0 }
    }

    /// Number of objects of all pins.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn has(&self, object: ObjectOfPin) -> bool {
        self.all.contains_key(&object)
    }

    /// The pins to which an object belongs.
    pub fn pins_of(&self, key: Key) -> impl Iterator<Item = u64> {
        self.all.range((key, 0)..=(key, u64::MAX)).map(|((_, pin), _)| *pin)
    }

    /// Adds what was pinned, or what has a name below it.
    pub fn add_below(&mut self, object: ObjectOfPin) {
        self.add(object).is_below = true;
    }

    /// Adds what the path to it leads through, without what that names.
    pub fn add_on_way(&mut self, object: ObjectOfPin) {
        self.add(object).is_on_way = true;
    }

    fn add(&mut self, object: ObjectOfPin) -> &mut Object {
        self.all.entry(object).or_insert_with(|| {
            self.due.insert(object);
            Object::default()
        })
    }

    /// Removes the objects of a pin, and returns them, but for those that are in use.
    pub fn remove(&mut self, pin: u64, is_in_use: impl Fn(Key) -> bool) -> Vec<Key> {
        let of_pin = self.all.keys().filter(|(key, of)| *of == pin && !is_in_use(*key));
        let gone: Vec<Key> = of_pin.map(|(key, _)| *key).collect();
        for key in &gone {
            let object = (*key, pin);
            self.set_taken(object, 0, 0);
            self.all.remove(&object);
            self.due.remove(&object);
            self.later.remove(&object);
        }
        gone
    }

    /// An object has changed, or may have: it is to be looked at in the next pass.
    pub fn doubt(&mut self, key: Key) {
        let pins: Vec<u64> = self.pins_of(key).collect();
        pins.into_iter().for_each(|pin| self.looked_at((key, pin), Held::Unknown));
    }

    /// The same of all of a pin of which something is missing.
    pub fn doubt_lacking(&mut self, pin: u64) {
        let lacking = |(of, object): (&ObjectOfPin, &Object)| {
            (of.1 == pin && matches!(object.held, Held::Missing(_))).then_some(*of)
        };
        let all: Vec<ObjectOfPin> = self.all.iter().filter_map(lacking).collect();
        all.into_iter().for_each(|object| self.looked_at(object, Held::Unknown));
    }

    /// Begins a pass. What changes during it is looked at in the next one.
    pub fn begin_pass(&mut self) {
        self.due.append(&mut self.later);
    }

    /// Takes an object that is to be looked at, of a pin that does not wait.
    pub fn take_due(&mut self, waits: impl Fn(u64) -> bool) -> Option<ObjectOfPin> {
        while let Some(object) = self.due.pop_first() {
            if !waits(object.1) {
                return Some(object);
            }
            self.later.insert(object);
        }
        None
    }

    /// Whether what a directory names belongs to a pin of all that is below something.
    pub fn is_below(&self, object: ObjectOfPin) -> bool {
        self.all.get(&object).is_some_and(|object| object.is_below)
    }

    /// Records what is held of an object, unless it is to be looked at again.
    pub fn looked_at(&mut self, object: ObjectOfPin, held: Held) {
        let Some(known) = self.all.get_mut(&object) else { return };
        if held == Held::Unknown {
            self.later.insert(object);
        }
        known.held = if self.later.contains(&object) { Held::Unknown } else { held };
    }

    /// Sets the length of a file, or of the names of a directory. False: there is no room for it in the bounds, or the object does not
    /// belong to the pin any more.
    pub fn reserve(&mut self, object: ObjectOfPin, bytes: u64) -> bool {
        let (bound, taken) = match object.0.fid.is_directory() {
            true => (self.bounds.directory_bytes, self.directory_bytes),
            false => (self.bounds.bytes, self.bytes),
        };
        let own = self.all.get(&object).map_or(0, |object| object.taken);
        let has_room = bytes.saturating_add(taken - own) <= bound;
        self.set_taken(object, bytes, if has_room { bytes } else { 0 }) && has_room
    }

    fn set_taken(&mut self, object: ObjectOfPin, bytes: u64, taken: u64) -> bool {
        let sum = if object.0.fid.is_directory() { &mut self.directory_bytes } else { &mut self.bytes };
        let Some(known) = self.all.get_mut(&object) else { return false };
        *sum = *sum - known.taken + taken;
        (known.bytes, known.taken) = (bytes, taken);
        true
    }

    /// The present names of a directory. What cannot be reached from the root of the pin any more is dropped.
    pub fn list(&mut self, dir: ObjectOfPin, root: Key, now: &BTreeSet<Key>) -> Listed {
        let mut listed = Listed::default();
        if !self.has(dir) {
            return listed;
        }
        let (pin, most) = (dir.1, self.bounds.objects);
        let mut children = BTreeSet::new();
        for key in now {
            let (child, has_room) = ((*key, pin), self.count() < most);
            match self.all.get_mut(&child) {
                Some(object) => {
                    object.is_below = true;
                    // Its rights may follow from the directory.
                    if matches!(object.held, Held::Missing(_)) {
                        self.looked_at(child, Held::Unknown);
                    }
                }
                None if has_room => {
                    self.add_below(child);
                    listed.added.push(*key);
                }
                None => {
                    listed.left_out += 1;
                    continue;
                }
            }
            children.insert(*key);
        }
        let before = self.all.get_mut(&dir).map(|object| std::mem::replace(&mut object.children, children));
        if before.is_some_and(|before| !before.is_subset(now)) {
            listed.dropped = self.drop_unreachable(pin, root);
        }
        listed
    }

    fn drop_unreachable(&mut self, pin: u64, root: Key) -> Vec<Key> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![root]);
        while let Some(key) = next.pop() {
            if reached.insert(key) {
                next.extend(self.all.get(&(key, pin)).into_iter().flat_map(|object| &object.children));
            }
        }
        let of_pin = self.all.iter_mut().filter(|((_, of), _)| *of == pin);
        of_pin.for_each(|((key, _), object)| object.is_below = reached.contains(key));
        let on_way = self.all.iter().filter(|(of, object)| of.1 == pin && object.is_on_way);
        reached.extend(on_way.map(|((key, _), _)| *key));
        self.remove(pin, |key| reached.contains(&key))
    }

    /// What is known of a pin.
    pub fn tally(&self, pin: u64) -> Tally {
        let mut tally = Tally::default();
        for ((key, _), object) in self.all.iter().filter(|((_, of), _)| *of == pin) {
            let missing = u64::from(object.held != Held::Whole);
            if object.is_below {
                let bytes = if key.fid.is_directory() { 0 } else { object.bytes };
                tally.objects += 1;
                tally.missing_objects += missing;
                tally.bytes += bytes;
                tally.missing_bytes += missing * bytes;
            }
            match &object.held {
                Held::Missing(why) => tally.reason = tally.reason.or_else(|| Some(why.clone())),
                held => tally.is_due |= *held == Held::Unknown,
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::key::CellIndex;

    const PIN: u64 = 1;

    fn key(n: u32) -> Key {
        Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(n), Uniquifier(1)))
    }

    /// A pin of a directory, with room for so many objects, and for so many bytes of files.
    fn objects(count: usize, bytes: u64) -> Objects {
        let mut all = Objects::new(PinBounds { objects: count, bytes, directory_bytes: 0 });
        all.add_below((key(1), PIN));
        all
    }

    fn list(all: &mut Objects, dir: u32, names: &[u32]) -> Listed {
        all.list((key(dir), PIN), key(1), &names.iter().map(|n| key(*n)).collect())
    }

    /// Looks at all that is due.
    fn look(all: &mut Objects) {
        all.begin_pass();
        while let Some(object) = all.take_due(|_| false) {
            all.looked_at(object, Held::Whole);
        }
    }

    #[test]
    fn what_has_no_name_left_is_dropped_with_what_is_below_it() {
        let mut all = objects(10, 110);
        assert_eq!(list(&mut all, 1, &[2, 3]).added, [key(2), key(3)]);
        // A file with a name in each of two directories.
        list(&mut all, 3, &[4, 6]);
        assert!(list(&mut all, 1, &[2, 3, 4]).added.is_empty());
        assert!(all.reserve((key(4), PIN), 10) && all.reserve((key(6), PIN), 100));
        look(&mut all);
        assert_eq!(all.tally(PIN), Tally { objects: 5, bytes: 110, ..Tally::default() });
        assert!(!all.reserve((key(2), PIN), 1) && all.reserve((key(2), PIN), 0));
        assert_eq!(list(&mut all, 1, &[2, 4]).dropped, [key(3), key(6)]);
        assert_eq!(all.tally(PIN), Tally { objects: 3, bytes: 10, ..Tally::default() });
        assert!(all.reserve((key(2), PIN), 100), "what is dropped takes no room");
        assert_eq!(list(&mut all, 1, &[]).dropped.len(), 2);
        assert_eq!(all.tally(PIN), Tally { objects: 1, ..Tally::default() });
        assert!(list(&mut all, 3, &[9]).added.is_empty(), "it is not of the pin any more");
        assert_eq!(all.bytes, 0);
    }

    #[test]
    fn what_leads_to_a_pin_stays_with_it_and_is_not_counted() {
        let mut all = objects(10, 10);
        all.add_on_way((key(5), PIN));
        all.add_on_way((key(7), PIN));
        list(&mut all, 1, &[2, 7]);
        look(&mut all);
        assert_eq!(all.tally(PIN), Tally { objects: 3, ..Tally::default() });
        assert!(all.is_below((key(7), PIN)) && !all.is_below((key(5), PIN)));
        assert_eq!(list(&mut all, 1, &[]).dropped, [key(2)]);
        assert!(!all.is_below((key(7), PIN)));
        all.looked_at((key(5), PIN), Held::Missing("no right".into()));
        let Tally { objects, missing_objects, reason, .. } = all.tally(PIN);
        assert_eq!((objects, missing_objects, reason.as_deref()), (1, 0, Some("no right")));
        assert_eq!(all.remove(PIN, |_| false).len(), 3);
    }

    #[test]
    fn directories_that_name_one_another_end() {
        let mut all = objects(10, 10);
        list(&mut all, 1, &[3]);
        list(&mut all, 3, &[1, 3, 5]);
        assert_eq!(all.tally(PIN).objects, 3);
        // What a server says of itself costs nothing.
        list(&mut all, 1, &[]);
        assert_eq!(all.tally(PIN).objects, 1);
    }

    #[test]
    fn names_beyond_the_bound_are_counted_and_taken_when_there_is_room() {
        let mut all = objects(3, 10);
        assert_eq!(list(&mut all, 1, &[2, 4, 6]).left_out, 1);
        assert_eq!(all.tally(PIN).objects, 3);
        all.bounds.objects += 1;
        assert_eq!(list(&mut all, 1, &[2, 4, 6]).added, [key(6)]);
    }

    #[test]
    fn a_change_while_it_is_looked_at_is_not_forgotten() {
        let mut all = objects(10, 10);
        let due = all.take_due(|_| false).unwrap();
        all.doubt(due.0);
        all.looked_at(due, Held::Whole);
        assert!(all.tally(PIN).is_due && all.tally(PIN).missing_objects == 1);
        assert_eq!(
            all.take_due(|_| false),
            None,
            "a file that changes all the time is not fetched all the time"
        );
        look(&mut all);
        assert_eq!(all.tally(PIN).missing_objects, 0);
        all.doubt(key(9));
        assert!(!all.tally(PIN).is_due);
    }

    #[test]
    fn what_is_of_a_pin_that_waits_is_looked_at_later() {
        let mut all = objects(10, 10);
        all.add_below((key(1), PIN + 1));
        assert_eq!(all.take_due(|pin| pin == PIN), Some((key(1), PIN + 1)));
        assert_eq!(all.take_due(|_| false), None);
        all.begin_pass();
        assert_eq!(all.take_due(|_| false), Some((key(1), PIN)));
    }

    #[test]
    fn what_is_missing_is_told_and_looked_at_again_when_its_directory_changes() {
        let mut all = objects(10, 6);
        list(&mut all, 1, &[2]);
        look(&mut all);
        assert!(!all.reserve((key(2), PIN), 7));
        all.looked_at((key(2), PIN), Held::Missing("no right".into()));
        let reason = Some("no right".to_owned());
        let told =
            Tally { objects: 2, missing_objects: 1, bytes: 7, missing_bytes: 7, is_due: false, reason };
        assert_eq!(all.tally(PIN), told);
        list(&mut all, 1, &[2]);
        assert!(all.tally(PIN).is_due && all.tally(PIN).reason.is_none());
        look(&mut all);
        all.looked_at((key(2), PIN), Held::Missing("no room".into()));
        all.doubt_lacking(PIN);
        all.begin_pass();
        assert_eq!((all.take_due(|_| false), all.tally(PIN).reason), (Some((key(2), PIN)), None));
    }
}
