//! Pins: which objects are to be complete in the cache, and which of them are to be looked at. Makes no calls.
//!
//! An object is looked at when its pin is made, and again whenever its promise ends or this client changes it. The operations
//! in `crate::venus` fetch what is missing, one object after the other. Bounded by the number of pins, of objects, and of bytes.

mod tree;

pub(crate) use tree::{Held, Listed, Sums};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_rpc::sync::Notify;
use parking_lot::Mutex;

use crate::api::{TokenOwner, Unpinned};
use crate::cache::{PINS_MAX, PinRecord};
use crate::identity::User;
use crate::key::Key;
use tree::Tree;

/// Pins of one user, root excepted.
const OF_USER_MAX: usize = 16;

/// Bounds of all pins together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinBounds {
    pub objects: usize,
    /// Of files in the cache.
    pub bytes: u64,
    /// Of the names of directories in memory.
    pub directory_bytes: u64,
}

/// An object that is to be looked at, for the user who has pinned it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub number: u64,
    pub key: Key,
    pub owner: User,
    /// What was pinned.
    pub root: Key,
    /// It is kept so that it can be read while its server is away.
    pub is_offline: bool,
    /// What a directory names belongs to the pin.
    pub is_recursive: bool,
    /// It is on the way to what is pinned.
    pub is_on_way: bool,
}

/// What a pin is.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub root: Key,
    pub owner: User,
    pub is_recursive: bool,
    pub is_offline: bool,
    pub path: Vec<u8>,
}

struct PinnedTree {
    pin: Pin,
    tree: Tree,
    /// Directories and links that its path leads through, without what they name; `None`: not known.
    way: Option<Tree>,
    /// Why nothing can be fetched at present.
    waits: Option<String>,
    /// Records of objects that do not belong to it any more were removed since the start.
    is_swept: bool,
}

impl PinnedTree {
    fn tree_of(&mut self, due: &Due) -> Option<&mut Tree> {
        if due.is_on_way { self.way.as_mut() } else { Some(&mut self.tree) }
    }

    fn trees(&mut self) -> impl Iterator<Item = &mut Tree> {
        [&mut self.tree].into_iter().chain(self.way.as_mut())
    }

    fn is_due(&self) -> bool {
        self.tree.is_due() || self.way.as_ref().is_none_or(Tree::is_due)
    }

    fn told(&self, number: u64) -> Told {
        let way = self.way.as_ref();
        Told {
            number,
            pin: self.pin.clone(),
            sums: self.tree.sums(),
            is_due: self.is_due(),
            waits: self.waits.clone(),
            reason: self.tree.reason().or_else(|| way?.reason()).map(str::to_owned),
        }
    }
}

/// A pin with its state.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub number: u64,
    pub pin: Pin,
    pub sums: Sums,
    pub is_due: bool,
    pub waits: Option<String>,
    pub reason: Option<String>,
}

/// All pins of a mount.
pub(crate) struct Pins {
    bounds: PinBounds,
    inner: Mutex<Inner>,
    /// Number of objects, read without the lock.
    objects: AtomicUsize,
    /// Number of pins for reading while servers are away, read without the lock.
    offline: AtomicUsize,
    /// Notified when there is something to be looked at.
    pub wake: Arc<Notify>,
}

#[derive(Default)]
struct Inner {
    pins: BTreeMap<u64, PinnedTree>,
    last: u64,
    /// All objects, with the number of pins that each belongs to.
    held: BTreeMap<Key, usize>,
    /// Of other cells than this mount knows: kept for a mount that does.
    foreign: Vec<PinRecord>,
}

impl Pins {
    pub fn new(bounds: PinBounds) -> Self {
        Pins {
            bounds,
            inner: Mutex::default(),
            objects: AtomicUsize::new(0),
            offline: AtomicUsize::new(0),
            wake: Arc::default(),
        }
    }

    /// Bytes that all pins together may take.
    pub fn bytes_max(&self) -> u64 {
        self.bounds.bytes
    }

    /// True if the object belongs to a pin.
    pub fn has(&self, key: Key) -> bool {
        self.objects.load(Ordering::SeqCst) > 0 && self.inner.lock().held.contains_key(&key)
    }

    /// True if anything is pinned for reading while its server is away.
    pub fn any_offline(&self) -> bool {
        self.offline.load(Ordering::SeqCst) > 0
    }

    /// A pin for reading while servers are away that is complete, for the first time since the start, and its objects.
    pub fn take_unswept(&self) -> Option<(Pin, BTreeSet<Key>)> {
        let mut inner = self.inner.lock();
        let is_complete = |it: &mut PinnedTree| {
            it.waits.is_none() && !it.is_due() && it.trees().all(|tree| tree.sums().missing_objects == 0)
        };
        let mut unswept = inner.pins.values_mut().filter(|it| it.pin.is_offline && !it.is_swept);
        let it = unswept.find_map(|it| is_complete(it).then_some(it))?;
        it.is_swept = true;
        Some((it.pin.clone(), it.trees().flat_map(|tree| tree.keys()).collect()))
    }

    /// Adds a pin; returns its number.
    ///
    /// # Errors
    /// This user has it already, or too many.
    pub fn add(&self, pin: Pin) -> Result<u64, Unpinned> {
        self.add_to(&mut self.inner.lock(), pin)
    }

    fn add_to(&self, inner: &mut Inner, pin: Pin) -> Result<u64, Unpinned> {
        let is_same = |other: &PinnedTree| (other.pin.root, other.pin.owner) == (pin.root, pin.owner);
        if inner.pins.values().any(is_same) {
            return Err(Unpinned::Twice);
        }
        let uid = pin.owner.map(TokenOwner::uid);
        let of_user = inner.pins.values().filter(|other| other.pin.owner.map(TokenOwner::uid) == uid).count();
        if inner.pins.len() + inner.foreign.len() >= PINS_MAX {
            return Err(Unpinned::TooMany(PINS_MAX));
        }
        if of_user >= OF_USER_MAX && uid != Some(0) {
            return Err(Unpinned::TooMany(OF_USER_MAX));
        }
        inner.last += 1;
        let number = inner.last;
        inner.hold(pin.root);
        let (tree, is_swept) = (Tree::of(&[pin.root]), false);
        inner.pins.insert(number, PinnedTree { tree, pin, way: None, waits: None, is_swept });
        self.changed(inner);
        Ok(number)
    }

    /// Makes a pin of one whose cell was not known until now.
    ///
    /// # Errors
    /// As [`Pins::add`]; it is not in the list then any more.
    pub fn adopt(&self, record: &PinRecord, pin: Pin) -> Result<u64, Unpinned> {
        let mut inner = self.inner.lock();
        inner.foreign.retain(|other| other != record);
        self.add_to(&mut inner, pin)
    }

    /// Keeps a pin of another cell in the list.
    pub fn add_foreign(&self, record: PinRecord) {
        self.inner.lock().foreign.push(record);
    }

    /// True if there are any of other cells.
    pub fn any_foreign(&self) -> bool {
        !self.inner.lock().foreign.is_empty()
    }

    /// The pins of other cells.
    pub fn foreign(&self) -> Vec<PinRecord> {
        self.inner.lock().foreign.clone()
    }

    /// Removes a pin. Returns the objects that belong to none any more.
    pub fn remove(&self, number: u64) -> Vec<Key> {
        let mut inner = self.inner.lock();
        let Some(removed) = inner.pins.remove(&number) else { return Vec::new() };
        let mut freed = removed.tree.keys();
        freed.extend(removed.way.iter().flat_map(Tree::keys));
        freed.retain(|key| inner.let_go(*key));
        self.changed(&inner);
        freed
    }

    /// All pins, by number.
    pub fn all(&self) -> Vec<Told> {
        self.inner.lock().pins.iter().map(|(number, it)| it.told(*number)).collect()
    }

    /// A pin whose way is not known, and that does not wait.
    pub fn without_way(&self) -> Option<(u64, Pin)> {
        let inner = self.inner.lock();
        let mut found = inner.pins.iter().filter(|(_, it)| it.way.is_none() && it.waits.is_none());
        found.next().map(|(number, it)| (*number, it.pin.clone()))
    }

    /// The directories and links that a pin's path leads through. Those that are pinned from now on.
    pub fn set_way(&self, number: u64, mut way: Vec<Key>) -> Vec<Key> {
        let mut inner = self.inner.lock();
        way.sort_unstable();
        way.dedup();
        let Some(it) = inner.pins.get_mut(&number).filter(|it| it.way.is_none()) else { return Vec::new() };
        it.way = Some(Tree::of(&way));
        way.iter().for_each(|key| inner.hold(*key));
        self.changed(&inner);
        way
    }

    /// The way cannot be found at present: the pin waits.
    pub fn wait_for_way(&self, number: u64, why: String) {
        if let Some(it) = self.inner.lock().pins.get_mut(&number) {
            it.waits = Some(why);
        }
    }

    /// An object has changed, or its promise has ended: it is looked at again, if it is pinned.
    pub fn doubt(&self, key: Key) {
        if self.objects.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut inner = self.inner.lock();
        if inner.held.contains_key(&key) {
            inner.pins.values_mut().flat_map(PinnedTree::trees).for_each(|tree| tree.doubt(key));
            self.wake.notify_waiters();
        }
    }

    /// A user has a token now: what is missing of the user's pins is looked at again.
    pub fn doubt_lacking_of(&self, owner: TokenOwner) {
        let mut inner = self.inner.lock();
        let own = |it: &&mut PinnedTree| it.pin.owner.map(TokenOwner::uid) == Some(owner.uid());
        for it in inner.pins.values_mut().filter(own) {
            it.trees().for_each(Tree::doubt_lacking);
            it.waits = None;
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
        self.inner.lock().pins.values_mut().flat_map(PinnedTree::trees).for_each(Tree::begin_pass);
    }

    /// The next object that is to be looked at in this pass, of a pin that does not wait.
    pub fn next(&self) -> Option<Due> {
        let mut inner = self.inner.lock();
        let ready = inner.pins.iter_mut().filter(|(_, it)| it.waits.is_none());
        let mut due = ready.filter_map(|(number, it)| {
            let of_way = it.way.as_mut().and_then(Tree::take_due);
            let is_on_way = of_way.is_some();
            let key = of_way.or_else(|| it.tree.take_due())?;
            let is_recursive = it.pin.is_recursive && !is_on_way;
            let Pin { owner, root, is_offline, .. } = it.pin;
            Some(Due { number: *number, key, owner, root, is_offline, is_recursive, is_on_way })
        });
        due.next()
    }

    /// An object could not be looked at, since a server is away or busy: the pin waits.
    pub fn wait(&self, due: &Due, why: String) {
        self.with(due, |it| {
            if let Some(tree) = it.tree_of(due) {
                tree.doubt(due.key);
            }
            it.waits = Some(why);
        });
    }

    /// What was found out of an object.
    pub fn looked_at(&self, due: &Due, held: Held) {
        self.with(due, |it| it.tree_of(due).map(|tree| tree.looked_at(due.key, held)));
    }

    /// Sets the length of a file. False: there is no room for it in the bounds, or it is pinned no more.
    pub fn reserve(&self, due: &Due, bytes: u64) -> bool {
        let mut inner = self.inner.lock();
        let room = self.bounds.bytes.saturating_sub(inner.taken(|sums| sums.room));
        let tree = inner.pins.get_mut(&due.number).and_then(|it| it.tree_of(due));
        tree.is_some_and(|tree| tree.set_bytes(due.key, bytes, room))
    }

    /// The same of the names of a directory, which stay in memory.
    pub fn reserve_memory(&self, due: &Due, bytes: u64) -> bool {
        let mut inner = self.inner.lock();
        let room = self.bounds.directory_bytes.saturating_sub(inner.taken(|sums| sums.memory));
        let tree = inner.pins.get_mut(&due.number).and_then(|it| it.tree_of(due));
        tree.is_some_and(|tree| tree.set_memory(due.key, bytes, room))
    }

    /// The names in a directory.
    pub fn list(&self, due: &Due, children: &BTreeSet<Key>) -> Listed {
        let mut inner = self.inner.lock();
        let objects = inner.taken(|sums| sums.objects);
        let room = self.bounds.objects.saturating_sub(objects as usize);
        let Some(it) = inner.pins.get_mut(&due.number) else { return Listed::default() };
        let mut listed = it.tree.list(due.key, children, room);
        listed.added.iter().for_each(|key| inner.hold(*key));
        listed.dropped.retain(|key| inner.let_go(*key));
        self.changed(&inner);
        listed
    }

    fn with<T>(&self, due: &Due, change: impl FnOnce(&mut PinnedTree) -> T) {
        if let Some(it) = self.inner.lock().pins.get_mut(&due.number) {
            change(it);
        }
    }

    fn changed(&self, inner: &Inner) {
        self.objects.store(inner.held.len(), Ordering::SeqCst);
        let offline = inner.pins.values().filter(|it| it.pin.is_offline).count();
        self.offline.store(offline, Ordering::SeqCst);
        self.wake.notify_waiters();
    }
}

impl Inner {
    /// Sum over all trees.
    fn taken(&mut self, of: fn(Sums) -> u64) -> u64 {
        self.pins.values_mut().flat_map(PinnedTree::trees).map(|tree| of(tree.sums())).sum()
    }

    fn hold(&mut self, key: Key) {
        *self.held.entry(key).or_default() += 1;
    }

    /// True if no pin has the object any more.
    fn let_go(&mut self, key: Key) -> bool {
        let left = self.held.get_mut(&key).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            self.held.remove(&key);
        }
        left == Some(0)
    }
}
