//! Journal of a lease: the changes that were decided here and that the server does not have yet, in order, and the numbered
//! list of the first ones that is on its way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use afs_rpc::Instant;
use afs_wire::fs::{CHANGES_MAX, Change, Changes, ListNumber, ListedChange, SetStatus, SmallData};
use afs_wire::ids::{DataVersion, Fid, FileTime};
use afs_wire::xdr::Encode;

use crate::identity::User;
use crate::key::Key;
use crate::leases::decided::Decided;
use crate::leases::waiting::Waiting;
use crate::vnode::Vnode;

/// Most bytes of the changes in a list: a request has at most 64 KiB (docs/protocol/extensions.md "Leases of directories").
const LIST_BYTES_MAX: usize = 60 << 10;
/// Changes and bytes with which the journal is sent before its time, and with which it is full. What a program makes in a moment is sent when
/// the program has made it, and one that goes on is not held up.
const ENTRIES_DUE: usize = 192;
const BYTES_DUE: usize = 1536 << 10;
const ENTRIES_MAX: usize = 512;
pub(super) const BYTES_MAX: usize = 2 << 20;

/// A change that was decided here.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Whose change it is: a list is one of one user.
    pub user: User,
    pub since: Instant,
    /// The lent fid of the object that the change makes; the zero fid if it makes none.
    pub object: Fid,
    /// When it was decided: the time of the directories, and of change of the object.
    pub time: FileTime,
    pub decided: Decided,
    /// The object that is made or changed. It stays in the status cache until the server has the change.
    pub vnode: Arc<Vnode>,
    /// The directories whose names are changed, and their versions after the change.
    pub dirs: Vec<(Arc<Vnode>, DataVersion)>,
    /// The object that loses a name.
    pub unlinked: Option<Key>,
    /// The objects that the change concerns: it is sent before any call about one of them.
    pub concerns: Vec<Key>,
    /// Bytes of the quota that it takes at most.
    pub cost: u64,
}

impl Entry {
    fn bytes(&self) -> usize {
        Fid::WIRE_LEN
            + size_of::<FileTime>()
            + match &self.decided {
                Decided::Change(change) => change.to_bytes().len(),
                Decided::Store(store) => store.data.len(),
            }
    }

    /// Whether the change makes an object.
    pub fn makes_object(&self) -> bool {
        self.decided.change().is_some_and(Change::makes_object)
    }

    /// The object that a rename moves, or that a link names.
    pub fn moved(&self) -> Option<Key> {
        let is_dir = |key: Key| self.dirs.iter().any(|(dir, _)| dir.key == key);
        self.concerns.iter().copied().find(|key| !is_dir(*key) && self.unlinked != Some(*key))
    }

    fn makes_file(&self, file: Key) -> bool {
        matches!(self.decided, Decided::Change(Change::CreateFile(_))) && self.vnode.key == file
    }

    fn stores(&self, file: Key) -> bool {
        let stores = matches!(self.decided, Decided::Store(_) | Decided::Change(Change::Store(_)));
        stores && self.vnode.key == file
    }

    /// By how much the change alters the number of names of an object.
    fn names_of(&self, key: Key) -> i32 {
        let gains = self.makes_object() || matches!(self.decided, Decided::Change(Change::Link(_)));
        i32::from(gains && self.vnode.key == key) - i32::from(self.unlinked == Some(key))
    }
}

/// A list: the same changes each time it is sent.
pub(crate) struct List {
    pub number: ListNumber,
    pub user: User,
    pub entries: Vec<Entry>,
}

impl List {
    /// Whether a change of the list takes a name from an object.
    pub fn unlinks(&self, key: Key) -> bool {
        self.entries.iter().any(|entry| entry.unlinked == Some(key))
    }

    pub fn changes(&self) -> Changes {
        let listed = |entry: &Entry| {
            let change = entry.decided.change()?.clone();
            Some(ListedChange { object: entry.object, time: entry.time, change })
        };
        Changes::first_of(self.entries.iter().filter_map(listed))
    }
}

/// A change that waits in front after the loss of the lease, as it is sent: the same each time.
pub(crate) struct Alone {
    pub number: ListNumber,
    pub change: Change,
}

/// What is sent next.
pub(crate) enum Next {
    List(Arc<List>),
    /// The store of a whole file. It waits in front until it is over.
    Store(Box<Entry>),
}

/// The changes of one lease that the server does not have.
#[derive(Default)]
pub(crate) struct Journal {
    waiting: VecDeque<Entry>,
    /// Bytes of those that wait.
    bytes: Waiting,
    sent: Option<Arc<List>>,
    /// The change that is sent by itself.
    alone: Option<Arc<Alone>>,
    /// Number of the last list of the series.
    last: ListNumber,
    /// How many of the changes concern an object.
    concerned: BTreeMap<Key, usize>,
    /// Bytes of the quota that the changes take at most.
    cost: u64,
    /// Number of changes so far, and of those that are settled.
    pushed: u64,
    over: u64,
}

impl Journal {
    /// An empty one, whose bytes are counted with those of all others.
    pub fn beside(all: &Arc<AtomicUsize>) -> Journal {
        Journal { bytes: Waiting::beside(all), ..Journal::default() }
    }

    pub fn push(&mut self, entry: Entry) {
        for key in &entry.concerns {
            *self.concerned.entry(*key).or_default() += 1;
        }
        self.pushed += 1;
        self.cost += entry.cost;
        self.bytes.add(entry.bytes());
        self.waiting.push_back(entry);
    }

    /// Number of changes so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Whether the first so many changes are settled.
    pub fn is_settled(&self, changes: u64) -> bool {
        self.over >= changes
    }

    /// Number of changes that are not settled.
    pub fn unsettled(&self) -> u64 {
        self.pushed - self.over
    }

    /// Bytes of the quota that these take at most.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_none()
    }

    /// Whether it takes no more changes for now, since too many wait in it, or in all.
    pub fn is_full(&self) -> bool {
        let is_full = self.waiting.len() >= ENTRIES_MAX || self.bytes.bytes() >= BYTES_MAX;
        is_full || !(self.waiting.is_empty() || self.bytes.has_room(0))
    }

    /// Whether there is enough to be sent.
    pub fn is_due(&self) -> bool {
        self.waiting.len() >= ENTRIES_DUE || self.bytes.bytes() >= BYTES_DUE
    }

    /// Since when the oldest change waits.
    pub fn oldest(&self) -> Option<Instant> {
        self.waiting.front().map(|entry| entry.since)
    }

    /// Whether there is room for so many bytes more.
    pub fn has_room(&self, bytes: usize) -> bool {
        !self.is_full() && self.bytes.bytes() + bytes <= BYTES_MAX && self.bytes.has_room(bytes)
    }

    /// Whether exactly one change concerns the object.
    pub fn concerns_once(&self, key: Key) -> bool {
        self.concerned.get(&key) == Some(&1)
    }

    /// Whether a change concerns the object.
    pub fn concerns(&self, key: Key) -> bool {
        self.concerned.contains_key(&key)
    }

    /// Whether no change concerns the object but the first `made` ones of the list that was sent.
    pub fn is_settled_by(&self, list: &List, made: usize, key: Key) -> bool {
        let made = list.entries.iter().take(made).filter(|entry| entry.concerns.contains(&key)).count();
        self.concerned.get(&key).is_none_or(|all| *all == made)
    }

    /// What is to be sent: the list whose outcome is not known, or what waits in front.
    pub fn next(&mut self) -> Option<Next> {
        let first = self.waiting.front().filter(|_| self.sent.is_none());
        match first.filter(|entry| matches!(entry.decided, Decided::Store(_))) {
            Some(store) => Some(Next::Store(Box::new(store.clone()))),
            None => self.list().map(Next::List),
        }
    }

    /// The list to be sent: the one whose outcome is not known, or the next.
    pub fn list(&mut self) -> Option<Arc<List>> {
        if self.sent.is_none() {
            let entries = self.take_first();
            let user = entries.first()?.user;
            self.last.0 += 1;
            self.sent = Some(Arc::new(List { number: self.last, user, entries }));
        }
        self.sent.clone()
    }

    /// The first changes that fit into a list, of one user.
    fn take_first(&mut self) -> Vec<Entry> {
        let (mut entries, mut bytes) = (Vec::<Entry>::new(), 0);
        while let Some(next) = self.waiting.front() {
            let more = next.bytes();
            let is_other = entries.first().is_some_and(|first| first.user != next.user);
            if is_other
                || matches!(next.decided, Decided::Store(_))
                || entries.len() >= CHANGES_MAX
                || (bytes + more > LIST_BYTES_MAX && !entries.is_empty())
            {
                break;
            }
            bytes += more;
            self.bytes.remove(more);
            entries.extend(self.waiting.pop_front());
        }
        entries
    }

    /// The change that is sent by itself, and the outcome of which is not known.
    pub fn alone(&self) -> Option<Arc<Alone>> {
        self.alone.clone()
    }

    /// Begins to send the change that waits in front by itself, as `change`.
    pub fn send_alone(&mut self, change: Change) -> Arc<Alone> {
        self.last.0 += 1;
        let alone = Arc::new(Alone { number: self.last, change });
        self.alone = Some(alone.clone());
        alone
    }

    /// The outcome of the change that was sent by itself is known. Its number is that of the next one unless it was used.
    pub fn alone_is_over(&mut self, is_used: bool) {
        if self.alone.take().is_some() && !is_used {
            self.last.0 -= 1;
        }
    }

    /// What is sent from here on is in a series that has no list yet.
    pub fn begin_series(&mut self) {
        (self.alone, self.last) = (None, ListNumber(0));
    }

    /// How many names the first change that waits, with all others, leaves an object that it makes.
    pub fn names_left(&self, key: Key) -> i32 {
        self.waiting.iter().map(|entry| entry.names_of(key)).sum()
    }

    /// The directories in which names wait to be changed.
    pub fn directories(&self) -> BTreeMap<Key, Arc<Vnode>> {
        let all = self.waiting.iter().flat_map(|entry| &entry.dirs);
        all.map(|(dir, _)| (dir.key, dir.clone())).collect()
    }

    /// The first `made` changes of the list were made, and the others were not: they wait again, in front.
    pub fn list_is_over(&mut self, made: usize) {
        let Some(list) = self.sent.take() else { return };
        let (made, left) = list.entries.split_at(made.min(list.entries.len()));
        made.iter().for_each(|entry| self.forget(entry));
        for entry in left.iter().rev() {
            self.bytes.add(entry.bytes());
            self.waiting.push_front(entry.clone());
        }
    }

    /// Nothing of the list was made, and its number is that of the next one.
    pub fn list_was_not_made(&mut self) {
        if self.sent.is_some() {
            self.last.0 -= 1;
        }
        self.list_is_over(0);
    }

    /// The first change that waits.
    pub fn first(&self) -> Option<Entry> {
        self.waiting.front().cloned()
    }

    /// It was settled in another way than by a list.
    pub fn first_is_over(&mut self) {
        if let Some(entry) = self.waiting.pop_front() {
            self.bytes.remove(entry.bytes());
            self.forget(&entry);
        }
    }

    fn forget(&mut self, entry: &Entry) {
        self.over += 1;
        self.cost -= entry.cost;
        for key in &entry.concerns {
            if let Some(count) = self.concerned.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    self.concerned.remove(key);
                }
            }
        }
    }

    /// Joins new modes and times to the last change, if that is of the same user and makes the object or sets its status. Nothing was
    /// decided between the two, so that the lists still go through states of the directory that programs saw.
    pub fn join_status(&mut self, object: Key, user: User, set: &SetStatus) -> bool {
        let is_its = |entry: &&mut Entry| entry.vnode.key == object && entry.user == user;
        let Some(last) = self.waiting.back_mut().filter(is_its) else { return false };
        let before = last.bytes();
        let status = match &mut last.decided {
            Decided::Change(Change::CreateFile(small)) => &mut small.create.status,
            Decided::Change(Change::MakeDir(call)) => &mut call.status,
            Decided::Change(Change::StoreStatus(call)) => &mut call.status,
            _ => return false,
        };
        status.mode = set.mode.or(status.mode);
        status.mod_time = set.mod_time.or(status.mod_time);
        self.bytes.remove(before);
        self.bytes.add(last.bytes());
        true
    }

    /// Adds the bytes of a new file to its creation, if that waits, has none, is of the same user, and no other bytes come after it.
    pub fn add_data(&mut self, file: &SmallFile<'_>) -> bool {
        let is_of_it = |entry: &&mut Entry| entry.makes_file(file.key) || entry.stores(file.key);
        let Some(entry) = self.waiting.iter_mut().rev().find(is_of_it) else { return false };
        let (before, is_same_user) = (entry.bytes(), entry.user == file.user);
        match &mut entry.decided {
            Decided::Change(Change::CreateFile(small)) if small.data.is_empty() && is_same_user => {
                small.data = file.data.clone();
                small.create.status.mod_time = Some(file.time);
                (entry.cost, self.cost) = (entry.cost + file.cost(), self.cost + file.cost());
                self.bytes.add(entry.bytes() - before);
                true
            }
            _ => false,
        }
    }
}

/// The bytes of a small file.
pub(crate) struct SmallFile<'a> {
    pub key: Key,
    pub user: User,
    pub data: &'a SmallData,
    pub time: FileTime,
}

impl SmallFile<'_> {
    /// Bytes of the quota that they take at most.
    pub fn cost(&self) -> u64 {
        (self.data.len() as u64).next_multiple_of(1024)
    }
}
