//! A lease that this client holds: what is lent with it, and the journal of what was decided under it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_rpc::Instant;
use afs_rpc::sync::{self, Notify};
use afs_wire::fs::{CallBack, Change, LeaseId, SeriesId, SetStatus, TakeLeaseReply, VolSync};
use afs_wire::ids::Fid;
use parking_lot::Mutex;

use crate::calls::CallReply;
use crate::identity::User;
use crate::key::Key;
use crate::leases::fates::Fates;
use crate::leases::journal::{Entry, Journal, List, SmallFile};
use crate::leases::lent::{Lent, New};
use crate::leases::models::Models;
use crate::location::{Server, Volume};
use crate::promise::Promise;
use crate::vnode::Vnode;

/// A lease of a directory.
pub(crate) struct Lease {
    pub id: LeaseId,
    pub dir: Key,
    /// The promise on the directory that came with it. A server that breaks it, or has forgotten it, has ended the lease.
    promise: Promise,
    vnode: Arc<Vnode>,
    pub volume: Arc<Volume>,
    /// The server that lends it.
    pub server: Arc<Server>,
    pub sync: VolSync,
    /// The promise that came with it: that of each object that is made under it.
    pub callback: CallBack,
    /// Held by the task that sends lists, or settles what no list can.
    pub sending: sync::Mutex<()>,
    /// Held by the task that asks for more fids.
    pub borrowing: sync::Mutex<()>,
    /// Notified when there is enough for a list.
    pub enough: Notify,
    /// A task sends the journal when its oldest change is old enough.
    is_timed: AtomicBool,
    /// It is returned when all is settled.
    is_to_be_returned: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Whether something may be decided under it.
    holds: bool,
    /// Whether the server takes no more lists of it.
    lost: bool,
    series: SeriesId,
    journal: Journal,
    lent: Lent,
    /// Bytes of quota that are reserved and not used.
    space: u64,
    /// Changes that were decided, in all and of the names of each directory.
    decided: u64,
    by_directory: BTreeMap<Key, u32>,
    /// When the last one was decided, or the lease began.
    used: Instant,
    models: Models,
    /// What became of objects after a loss.
    fates: Fates,
    /// Files of which a lock is kept at the server, and the users who held it last.
    kept_locks: BTreeMap<Key, (Arc<Vnode>, User)>,
}

/// Most locks that are kept under one lease.
const KEPT_LOCKS_MAX: usize = 64;

impl Lease {
    /// The lease of a reply, with the lent fids that can be used, and an empty journal.
    pub fn new(
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        taken: &CallReply<TakeLeaseReply>,
        promise: Promise,
        fids: Vec<Fid>,
        models: Models,
        journal: Journal,
    ) -> Self {
        let reply = &taken.value;
        let mut lent = Lent::default();
        lent.add(&fids);
        let state = State {
            holds: true,
            lost: false,
            series: reply.lease.into(),
            journal,
            lent,
            space: reply.space,
            decided: 0,
            by_directory: BTreeMap::new(),
            used: taken.started,
            models,
            fates: Fates::default(),
            kept_locks: BTreeMap::new(),
        };
        Lease {
            id: reply.lease,
            dir: dir.key,
            promise,
            vnode: dir.clone(),
            volume: volume.clone(),
            server: taken.server.clone(),
            sync: reply.sync,
            callback: reply.callback,
            sending: sync::Mutex::new(()),
            borrowing: sync::Mutex::new(()),
            enough: Notify::new(),
            is_timed: AtomicBool::new(false),
            is_to_be_returned: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Whether something may be decided under it.
    pub fn holds(&self, now: Instant) -> bool {
        self.state.lock().holds && self.is_promised(now)
    }

    /// Whether the promise that came with it still holds.
    pub fn is_promised(&self, now: Instant) -> bool {
        let broken = self.vnode.state().broken.max(self.volume.broken.load(Ordering::SeqCst));
        self.promise.is_valid(now, broken)
    }

    /// Nothing more is decided under it. What was decided is still sent.
    pub fn stop(&self) {
        self.state.lock().holds = false;
    }

    /// A lock on a file is kept at the server until the lease ends. Returns false if it has ended, or too many are kept under it.
    pub fn keep_lock(&self, file: &Arc<Vnode>, user: User) -> bool {
        let mut state = self.state.lock();
        if state.kept_locks.len() >= KEPT_LOCKS_MAX {
            state.kept_locks.retain(|_, (file, _)| file.state().locks.at_server.is_some());
        }
        let is_kept = state.holds && state.kept_locks.len() < KEPT_LOCKS_MAX;
        if is_kept {
            state.kept_locks.insert(file.key, (file.clone(), user));
        }
        is_kept
    }

    /// Takes the files of which locks were kept, to be released.
    pub fn take_kept_locks(&self) -> Vec<(Arc<Vnode>, User)> {
        std::mem::take(&mut self.state.lock().kept_locks).into_values().collect()
    }

    /// The server takes no more lists under it: what it does not have is settled by lists of single changes. The first `made` changes of the last
    /// list were made; `None` if it was refused as a whole.
    pub fn lose(&self, made: Option<usize>) {
        let mut state = self.state.lock();
        (state.holds, state.lost) = (false, true);
        match made {
            Some(made) => state.journal.list_is_over(made),
            None => state.journal.list_was_not_made(),
        }
    }

    /// The series of its lists.
    pub fn series(&self) -> SeriesId {
        self.state.lock().series
    }

    /// What is left is sent in another series: the server does not know that of before.
    pub fn begin_series(&self, series: SeriesId) {
        let mut state = self.state.lock();
        state.series = series;
        state.journal.begin_series();
    }

    pub fn is_lost(&self) -> bool {
        self.state.lock().lost
    }

    /// It is to be returned when all is settled.
    pub fn return_later(&self) {
        self.is_to_be_returned.store(true, Ordering::SeqCst);
    }

    pub fn is_to_be_returned(&self) -> bool {
        self.is_to_be_returned.load(Ordering::SeqCst)
    }

    /// Runs work on the journal.
    pub fn journal<T>(&self, work: impl FnOnce(&mut Journal) -> T) -> T {
        work(&mut self.state.lock().journal)
    }

    /// What is known of new objects.
    pub fn models<T>(&self, work: impl FnOnce(&mut Models) -> T) -> T {
        work(&mut self.state.lock().models)
    }

    /// Number of changes that were decided.
    pub fn decided(&self) -> u64 {
        self.state.lock().decided
    }

    /// How many changes of names were decided in each directory.
    pub fn decided_in(&self) -> BTreeMap<Key, u32> {
        self.state.lock().by_directory.clone()
    }

    /// When something was decided for the last time.
    pub fn used(&self) -> Instant {
        self.state.lock().used
    }

    /// Takes what a change needs: so many bytes of the quota, and the fid of a new object (the zero fid if it makes none).
    pub fn take(&self, cost: u64, kind: New) -> Taken {
        let mut state = self.state.lock();
        if !state.holds {
            return Taken::Nothing;
        }
        if state.space < cost || !state.lent.has(kind) {
            return Taken::UsedUp;
        }
        state.space -= cost;
        Taken::Fid(state.lent.take(kind))
    }

    /// Whether it has what a change needs, or nothing is decided under it any more.
    pub fn has(&self, cost: u64, kind: New) -> bool {
        let mut state = self.state.lock();
        !state.holds || (state.space >= cost && state.lent.has(kind))
    }

    /// Bytes of quota that are reserved for what may be decided, and for what was decided and is not settled.
    pub fn space(&self) -> [u64; 2] {
        let state = self.state.lock();
        [state.space, state.journal.cost()]
    }

    /// Number of fids that are lent with it.
    pub fn lent(&self) -> usize {
        self.state.lock().lent.count()
    }

    /// How many files and directories more should be lent, at least `fewest`.
    pub fn more(&self, fewest: usize) -> [usize; 2] {
        self.state.lock().lent.more(fewest)
    }

    /// More was lent with it.
    pub fn add(&self, fids: &[Fid], space: u64) {
        let mut state = self.state.lock();
        state.lent.add(fids);
        state.space = state.space.saturating_add(space);
    }

    /// Gives back objects of which nothing waits: from here on nothing is decided of them. Also in which of them, being directories, names
    /// were changed, and how often.
    pub fn give_back(&self) -> (Vec<Fid>, Vec<(Key, u32)>) {
        let mut state = self.state.lock();
        let State { lent, journal, by_directory, .. } = &mut *state;
        let key = |fid: Fid| Key::new(self.dir.cell, fid);
        let given = lent.give_back(|fid| journal.concerns(key(fid)));
        let changes = given.iter().filter_map(|fid| by_directory.remove_entry(&key(*fid))).collect();
        (given, changes)
    }

    /// Adds a change that was decided. Returns false if nothing is decided under the lease any more, or of one of the objects.
    pub fn push(&self, entry: Entry) -> bool {
        let mut state = self.state.lock();
        if !state.holds || !state.covers(self.dir.fid, &entry) {
            return false;
        }
        state.push(entry);
        if state.journal.is_due() {
            self.enough.notify_waiters();
        }
        true
    }

    /// Adds a change of modes and times: to the last change if it belongs there, else as a change of its own. Returns false if nothing is
    /// decided any more.
    pub fn push_status(
        &self,
        object: Key,
        user: User,
        set: &SetStatus,
        alone: impl FnOnce() -> Entry,
    ) -> bool {
        let joined = {
            let mut state = self.state.lock();
            state.holds && state.journal.join_status(object, user, set)
        };
        joined || self.push(alone())
    }

    /// Adds the bytes of a small file that was made under the lease: to its creation if that waits and has none, else as a change
    /// of their own. Returns false if nothing is decided any more, or not of the file, or there is no room for so many bytes.
    pub fn push_data(&self, small: &SmallFile<'_>, alone: impl FnOnce() -> Entry) -> bool {
        let mut state = self.state.lock();
        let cost = small.cost();
        if !state.holds || state.space < cost || !state.lent.has_made(small.key.fid) {
            return false;
        }
        state.space -= cost;
        if !state.journal.add_data(small) {
            state.push(alone());
        }
        if state.journal.is_due() {
            self.enough.notify_waiters();
        }
        true
    }

    /// Adds the store of a whole file that was made under the lease. Returns false if nothing is decided any more, or not of the file, or
    /// there is no room for so many bytes.
    pub fn push_store(&self, file: Key, bytes: usize, entry: impl FnOnce() -> Entry) -> bool {
        let mut state = self.state.lock();
        let cost = (bytes as u64).next_multiple_of(1024);
        let is_its = state.holds && state.lent.has_made(file.fid);
        if !is_its || state.space < cost || !state.journal.has_room(bytes) {
            return false;
        }
        state.space -= cost;
        state.push(entry());
        if state.journal.is_due() {
            self.enough.notify_waiters();
        }
        true
    }

    /// What became of objects after a loss.
    pub fn fates<T>(&self, work: impl FnOnce(&mut Fates) -> T) -> T {
        work(&mut self.state.lock().fates)
    }

    /// The object that was made in the place of the one with this lent fid, or that object itself.
    pub fn in_place_of(&self, fid: Fid) -> Fid {
        self.fates(|fates| fates.in_place_of(fid))
    }

    /// Begins to be timed, unless it is so already.
    pub fn begins_timing(&self) -> bool {
        !self.is_timed.swap(true, Ordering::SeqCst)
    }

    /// Ends to be timed if nothing waits.
    pub fn ends_timing(&self) -> bool {
        let state = self.state.lock();
        let is_over = state.journal.is_empty();
        if is_over {
            self.is_timed.store(false, Ordering::SeqCst);
        }
        is_over
    }

    /// Runs `work` on an object of which nothing waits when the first `made` changes of the list that was sent are over; no change
    /// of it is decided meanwhile.
    pub fn if_settled_by<T>(
        &self,
        list: &List,
        made: usize,
        key: Key,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let state = self.state.lock();
        state.journal.is_settled_by(list, made, key).then(work)
    }

    /// Ends the change that waits in front. If no other one concerns its object, runs `work` before; no change of it is decided
    /// meanwhile.
    pub fn first_is_over(&self, key: Key, work: impl FnOnce()) {
        let mut state = self.state.lock();
        if state.journal.concerns_once(key) {
            work();
        }
        state.journal.first_is_over();
    }
}

impl State {
    /// Whether a change names no objects but the directory and what was made with lent fids, as a server requires of it.
    fn covers(&self, dir: Fid, entry: &Entry) -> bool {
        entry.decided.fids().iter().all(|fid| *fid == dir || self.lent.has_made(*fid))
    }

    fn push(&mut self, entry: Entry) {
        self.decided += 1;
        self.used = entry.since;
        if entry.makes_object() {
            self.lent.made(entry.object);
        }
        if let (Some(Change::RemoveDir(_)), Some(removed)) = (entry.decided.change(), entry.unlinked) {
            self.lent.removed(removed.fid);
        }
        for (dir, _) in &entry.dirs {
            self.lent.changed(dir.key.fid);
            // There are as many as directories are lent.
            *self.by_directory.entry(dir.key).or_default() += 1;
        }
        self.journal.push(entry);
    }
}

/// What a lease has for a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    Fid(Fid),
    /// Nothing is decided under it any more.
    Nothing,
    /// What was lent is used up.
    UsedUp,
}
