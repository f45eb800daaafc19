//! Pins of users: the rule by which all of an object stays, and which objects are to be looked at. Makes no calls.
//!
//! An object is looked at when its pin is made, and again whenever its promise ends or this client changes it. The walk in
//! `crate::venus` fetches what is missing, one object after the other. Bounded by the number of pins, of objects, and of bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_rpc::sync::Notify;
use afs_wire::ids::Fid;
use parking_lot::Mutex;

use crate::api::{ExplainedFid, PinState, Pinned, TokenOwner, Unpinned};
use crate::cache::{PINS_MAX, PinRecord};
use crate::key::Key;
use crate::residency::objects::{Held, Listed, Objects, PinBounds, Tally};
use crate::residency::value::Residency;

/// Pins of one user, root excepted.
const OF_USER_MAX: usize = 16;

/// An object that is to be looked at, for the user who has pinned it.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub number: u64,
    pub key: Key,
    pub pin: Arc<PinRecord>,
    /// What stays of it by this pin.
    pub residency: Residency,
    /// What a directory names belongs to the pin.
    pub is_recursive: bool,
    /// It is what was pinned, and what the path to it leads through is not known.
    pub needs_way: bool,
    root: Key,
}

struct Pin {
    record: Arc<PinRecord>,
    /// What was pinned; `None`: its cell is not known to this mount.
    root: Option<Key>,
    /// The directories and links that its path leads through are known.
    has_way: bool,
    /// Why nothing can be fetched at present.
    waits: Option<String>,
    /// All objects are known: those of earlier mounts that are not among them do not belong to it.
    is_known: bool,
}

impl Pin {
    fn residency(&self) -> Residency {
        if self.record.is_offline { Residency::Offline } else { Residency::Kept }
    }

    fn told(&self, number: u64, tally: Tally) -> Pinned {
        let PinRecord { cell, fid: Fid { volume, vnode, unique }, owner, is_recursive, is_offline, path } =
            &*self.record;
        let state = match (&self.waits, tally.missing_objects) {
            (Some(_), _) => PinState::Waiting,
            _ if tally.is_due => PinState::Fetching,
            (None, 0) => PinState::Complete,
            _ => PinState::Partial,
        };
        Pinned {
            number,
            path: String::from_utf8_lossy(path).into_owned(),
            cell: cell.to_string(),
            fid: ExplainedFid { volume: volume.0, vnode: vnode.0, unique: unique.0 },
            uid: owner.map(TokenOwner::uid),
            is_recursive: *is_recursive,
            is_offline: *is_offline,
            unpromised: None,
            state,
            objects: tally.objects,
            missing_objects: tally.missing_objects,
            bytes: tally.bytes,
            missing_bytes: tally.missing_bytes,
            reason: self.waits.clone().or(tally.reason),
        }
    }
}

/// All pins of a mount.
pub(crate) struct Pins {
    /// Bytes that all pins together may take.
    pub bytes_max: u64,
    inner: Mutex<Inner>,
    /// Number of objects, read without the lock.
    objects: AtomicUsize,
    /// Number of pins for reading while servers are away, read without the lock.
    offline: AtomicUsize,
    /// Notified when there is something to be looked at.
    pub wake: Arc<Notify>,
}

struct Inner {
    pins: BTreeMap<u64, Pin>,
    last: u64,
    objects: Objects,
}

impl Pins {
    pub fn new(bounds: PinBounds) -> Self {
        Pins {
            bytes_max: bounds.bytes,
            inner: Mutex::new(Inner { pins: BTreeMap::new(), last: 0, objects: Objects::new(bounds) }),
            objects: AtomicUsize::new(0),
            offline: AtomicUsize::new(0),
            wake: Arc::default(),
        }
    }

    /// What stays of an object by its pins; `None`: it belongs to none.
    pub fn residency(&self, key: Key) -> Option<Residency> {
        if self.objects.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let inner = self.inner.lock();
        let pins = inner.objects.pins_of(key).filter_map(|number| inner.pins.get(&number));
        pins.map(Pin::residency).max()
    }

    /// True if anything is pinned for reading while its server is away.
    pub fn any_offline(&self) -> bool {
        self.offline.load(Ordering::SeqCst) > 0
    }

    /// Adds a pin; returns its number. `root` is what was pinned, if its cell is known; of a pin of an earlier mount (`is_old`) not all
    /// objects are known.
    ///
    /// # Errors
    /// This user has it already, or too many.
    pub fn add(&self, pin: PinRecord, root: Option<Key>, is_old: bool) -> Result<u64, Unpinned> {
        let mut inner = self.inner.lock();
        let of = |pin: &PinRecord| (pin.cell.clone(), pin.fid, pin.owner);
        let is_same = |other: &Pin| of(&other.record) == of(&pin);
        // One whose cell was not known until now is this one.
        let before = inner.pins.len();
        inner.pins.retain(|_, other| other.root.is_some() || !is_same(other));
        let is_old = is_old || inner.pins.len() < before;
        if inner.pins.values().any(is_same) {
            return Err(Unpinned::Twice);
        }
        let uid = pin.owner.map(TokenOwner::uid);
        let of_user =
            inner.pins.values().filter(|other| other.record.owner.map(TokenOwner::uid) == uid).count();
        if inner.pins.len() >= PINS_MAX {
            return Err(Unpinned::TooMany(PINS_MAX));
        }
        if of_user >= OF_USER_MAX && uid != Some(0) {
            return Err(Unpinned::TooMany(OF_USER_MAX));
        }
        inner.last += 1;
        let number = inner.last;
        let (record, waits) = (Arc::new(pin), None);
        inner.pins.insert(number, Pin { record, root: None, has_way: false, waits, is_known: !is_old });
        if let Some(root) = root {
            inner.set_root(number, root);
        }
        self.changed(&inner);
        Ok(number)
    }

    /// Those whose cell is not known.
    pub fn without_cell(&self) -> Vec<(u64, Arc<PinRecord>)> {
        let inner = self.inner.lock();
        let unknown = inner.pins.iter().filter(|(_, it)| it.root.is_none());
        unknown.map(|(number, it)| (*number, it.record.clone())).collect()
    }

    /// The cell of a pin is known now.
    pub fn set_root(&self, number: u64, root: Key) {
        let mut inner = self.inner.lock();
        inner.set_root(number, root);
        self.changed(&inner);
    }

    /// Removes a pin. Returns its objects.
    pub fn remove(&self, number: u64) -> Vec<Key> {
        let mut inner = self.inner.lock();
        inner.pins.remove(&number);
        let keys = inner.objects.remove(number, |_| false);
        self.changed(&inner);
        keys
    }

    /// All pins, as they are to be listed.
    pub fn records(&self) -> Vec<PinRecord> {
        self.inner.lock().pins.values().map(|it| PinRecord::clone(&it.record)).collect()
    }

    /// The pins that this user may know, for root all, by number: what they are, what was pinned, and how far they are.
    pub fn told(&self, user: TokenOwner) -> Vec<(Arc<PinRecord>, Key, Pinned)> {
        let inner = self.inner.lock();
        let is_own = |it: &Pin| it.record.owner.is_some_and(|owner| owner.uid() == user.uid());
        let known = inner.pins.iter().filter(|(_, it)| user.uid() == 0 || is_own(it));
        let told = |(number, it): (&u64, &Pin)| {
            let told = it.told(*number, inner.objects.tally(*number));
            Some((it.record.clone(), it.root?, told))
        };
        known.filter_map(told).collect()
    }

    /// The directories and links that a pin's path leads through, which belong to it from now on.
    pub fn set_way(&self, number: u64, way: &[Key]) {
        let mut inner = self.inner.lock();
        if let Some(it) = inner.pins.get_mut(&number).filter(|it| !it.has_way) {
            it.has_way = true;
            way.iter().for_each(|key| inner.objects.add_on_way((*key, number)));
            self.changed(&inner);
        }
    }

    /// An object has changed, or its promise has ended: it is looked at again, if it is pinned.
    pub fn doubt(&self, key: Key) {
        if self.residency(key).is_some() {
            self.inner.lock().objects.doubt(key);
            self.wake.notify_waiters();
        }
    }

    /// A user has a token now: what is missing of the user's pins is looked at again.
    pub fn doubt_lacking_of(&self, owner: TokenOwner) {
        let Inner { pins, objects, .. } = &mut *self.inner.lock();
        for (number, it) in pins {
            if it.record.owner.map(TokenOwner::uid) == Some(owner.uid()) {
                objects.doubt_lacking(*number);
                it.waits = None;
            }
        }
        self.wake.notify_waiters();
    }

    /// Pins that waited for a server try it again.
    pub fn retry(&self) {
        let mut inner = self.inner.lock();
        let mut waiting = false;
        inner.pins.values_mut().for_each(|it| waiting |= it.waits.take().is_some());
        if waiting {
            self.wake.notify_waiters();
        }
    }

    /// Begins a pass over what is to be looked at.
    pub fn begin_pass(&self) {
        self.inner.lock().objects.begin_pass();
    }

    /// The next object that is to be looked at in this pass, of a pin that does not wait.
    pub fn next(&self) -> Option<Due> {
        let Inner { pins, objects, .. } = &mut *self.inner.lock();
        let waits = |number| pins.get(&number).is_none_or(|it: &Pin| it.waits.is_some());
        let (key, number) = objects.take_due(waits)?;
        let it = pins.get(&number)?;
        let (pin, residency, root) = (it.record.clone(), it.residency(), it.root?);
        let is_recursive = pin.is_recursive && objects.is_below((key, number));
        let needs_way = key == root && !it.has_way;
        Some(Due { number, key, pin, residency, is_recursive, needs_way, root })
    }

    /// What was found out of an object; or why nothing can be fetched for its pin at present: the pin waits.
    pub fn looked_at(&self, due: &Due, held: Result<Held, String>) {
        let Inner { pins, objects, .. } = &mut *self.inner.lock();
        if let (Err(why), Some(it)) = (&held, pins.get_mut(&due.number)) {
            it.waits = Some(why.clone());
        }
        objects.looked_at((due.key, due.number), held.unwrap_or_default());
    }

    /// Sets the length of a file, or that of the names of a directory, which stay in memory. False: there is no room for it in the bounds,
    /// or it is pinned no more.
    pub fn reserve(&self, due: &Due, bytes: u64) -> bool {
        self.inner.lock().objects.reserve((due.key, due.number), bytes)
    }

    /// The names in a directory. What is dropped does not belong to the pin any more.
    pub fn list(&self, due: &Due, children: &BTreeSet<Key>) -> Listed {
        let mut inner = self.inner.lock();
        let listed = inner.objects.list((due.key, due.number), due.root, children);
        self.changed(&inner);
        listed
    }

    /// Whether all objects of a pin of an earlier mount, for reading while servers are away, are known for the first time.
    pub fn take_known(&self) -> bool {
        let Inner { pins, objects, .. } = &mut *self.inner.lock();
        let is_new =
            |it: &Pin| it.record.is_offline && !it.is_known && it.root.is_some() && it.waits.is_none();
        let mut any = false;
        for (number, it) in pins.iter_mut().filter(|(_, it)| is_new(it)) {
            let Tally { is_due, reason, .. } = objects.tally(*number);
            it.is_known = !is_due && reason.is_none();
            any |= it.is_known;
        }
        any
    }

    /// Whether a user's record of an object, for reading while its server is away, may belong to the pin of that root.
    pub fn needs(&self, owner: TokenOwner, root: Fid, key: Key) -> bool {
        let inner = self.inner.lock();
        inner.pins.iter().any(|(number, it)| {
            let PinRecord { fid, owner: user, is_offline, .. } = &*it.record;
            let is_of_pin = *is_offline && (*user, *fid) == (Some(owner), root);
            is_of_pin && (!it.is_known || inner.objects.has((key, *number)))
        })
    }

    fn changed(&self, inner: &Inner) {
        self.objects.store(inner.objects.count(), Ordering::SeqCst);
        let offline = inner.pins.values().filter(|it| it.record.is_offline).count();
        self.offline.store(offline, Ordering::SeqCst);
        self.wake.notify_waiters();
    }
}

impl Inner {
    fn set_root(&mut self, number: u64, root: Key) {
        if let Some(it) = self.pins.get_mut(&number) {
            it.root = Some(root);
            self.objects.add_below((root, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{CellName, Uniquifier, VnodeId, VolumeId};

    use super::*;
    use crate::key::CellIndex;

    #[test]
    fn what_stays_of_an_object_is_the_most_that_a_pin_says() {
        let pins = Pins::new(PinBounds { objects: 9, bytes: 9, directory_bytes: 9 });
        let fid = Fid::new(VolumeId(1), VnodeId(1), Uniquifier(1));
        let key = Key::new(CellIndex(0), fid);
        let add = |uid, is_offline, root| {
            let (cell, owner) = (CellName::new("example.org").unwrap(), Some(TokenOwner::Uid(uid)));
            let pin = PinRecord { cell, fid, owner, is_recursive: false, is_offline, path: Vec::new() };
            pins.add(pin, root, false)
        };
        assert_eq!(pins.residency(key), None);
        // Its cell is not known until now.
        add(7, false, None).unwrap();
        assert_eq!((pins.residency(key), pins.without_cell().len()), (None, 1));
        let kept = add(7, false, Some(key)).unwrap();
        assert_eq!((pins.residency(key), pins.without_cell().len()), (Some(Residency::Kept), 0));
        assert_eq!(add(7, true, Some(key)), Err(Unpinned::Twice));
        let offline = add(8, true, Some(key)).unwrap();
        assert_eq!((pins.residency(key), pins.any_offline()), (Some(Residency::Offline), true));
        // Of a pin of an earlier mount there may be records of what is not known yet.
        let other = key.sibling(VnodeId(2), Uniquifier(1));
        assert!(pins.needs(TokenOwner::Uid(8), fid, key) && !pins.needs(TokenOwner::Uid(8), fid, other));
        add(9, true, None).unwrap();
        let of_earlier = add(9, true, Some(key)).unwrap();
        assert!(pins.needs(TokenOwner::Uid(9), fid, other) && !pins.take_known());
        pins.remove(of_earlier);
        pins.remove(offline);
        assert_eq!((pins.residency(key), pins.any_offline()), (Some(Residency::Kept), false));
        assert_eq!(pins.remove(kept), [key]);
        assert_eq!(pins.residency(key), None);
    }
}
