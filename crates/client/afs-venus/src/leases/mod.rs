//! Leases of directories that this client holds (docs/protocol/extensions.md "Leases of directories"): which directories are
//! leased, which may be soon, and which objects were made under a lease.
//!
//! This part makes no calls. A lease is in the table until all that was decided under it is settled, also when nothing more is
//! decided under it.

mod decided;
mod fates;
mod journal;
mod lease;
mod lent;
mod models;
mod runs;
mod waiting;

pub(crate) use decided::{Decided, WHOLE_MAX, WholeStore};
pub(crate) use journal::{Entry, Journal, List, Next, SmallFile};
pub(crate) use lease::{Lease, Taken};
pub(crate) use lent::New;
pub(crate) use models::{Models, NewObject};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use afs_rpc::Instant;
use afs_wire::fs::{LENT_MAX, LeaseId, Status};
use afs_wire::ids::Fid;
use parking_lot::Mutex;

use crate::error::VenusError;
use crate::identity::TokenId;
use crate::key::{Key, Map};
use crate::location::Volume;
use runs::Runs;

/// Most leases, and fids that are lent with them, as many as a server lends to one client.
const LEASES_MAX: usize = 512;
const FIDS_MAX: usize = 32 * LENT_MAX;
/// Most recalls that are remembered while a lease is asked for.
const RECALLS_MAX: usize = 64;

/// Changes with which a lease was worth its calls.
pub(crate) const USEFUL_MIN: u64 = 8;

/// The leases of this client.
#[derive(Default)]
pub(crate) struct Leases {
    /// Whether there is one: without any, nothing is looked at.
    any: AtomicBool,
    table: Mutex<Table>,
    runs: Mutex<Runs>,
    /// Bytes that wait in the journals.
    waiting: Arc<AtomicUsize>,
    /// Errors of files that are open, to be returned by their next close or fsync.
    failed: Mutex<BTreeMap<Key, VenusError>>,
}

#[derive(Default)]
struct Table {
    all: Vec<Arc<Lease>>,
    /// The leased directories, and what was made under their leases.
    by_object: Map<Key, Arc<Lease>>,
    /// Directories of which the lease is asked for, with the leases of which a recall came meanwhile.
    asked: BTreeMap<Key, Recalled>,
}

impl Leases {
    /// The journal of a new lease.
    pub fn journal(&self) -> Journal {
        Journal::beside(&self.waiting)
    }

    /// The lease under which names in a directory may be decided, and objects with lent fids changed.
    pub fn of(&self, key: Key, now: Instant) -> Option<Arc<Lease>> {
        self.known(key).filter(|lease| lease.holds(now))
    }

    /// The same, also if nothing more is decided under it.
    pub fn known(&self, key: Key) -> Option<Arc<Lease>> {
        if !self.any.load(Ordering::SeqCst) {
            return None;
        }
        self.table.lock().by_object.get(&key).cloned()
    }

    /// Whether the server does not have all that was decided about an object.
    pub fn concern(&self, key: Key) -> bool {
        self.known(key).is_some_and(|lease| lease.journal(|journal| journal.concerns(key)))
    }

    /// The leases in a volume with something that the server does not have; if there are objects, something that concerns one of them.
    pub fn unsettled(&self, volume: &Volume, about: Option<&[Key]>) -> Vec<Arc<Lease>> {
        if !self.any.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let concerns = |lease: &Lease| {
            lease.journal(|journal| match about {
                Some(keys) => keys.iter().any(|key| journal.concerns(*key)),
                None => !journal.is_empty(),
            })
        };
        let table = self.table.lock();
        let of_volume = table.all.iter().filter(|lease| lease.dir.volume() == (volume.cell, volume.id));
        of_volume.filter(|lease| concerns(lease)).cloned().collect()
    }

    /// All leases.
    pub fn all(&self) -> Vec<Arc<Lease>> {
        self.table.lock().all.clone()
    }

    /// The lease that a server recalls. One that is not known yet is not used when it comes.
    pub fn recalled(&self, dir: Fid, id: LeaseId) -> Option<Arc<Lease>> {
        let mut table = self.table.lock();
        let found = table.all.iter().find(|lease| lease.dir.fid == dir && lease.id == id).cloned();
        if found.is_none() {
            let asked = table.asked.iter_mut().filter(|(key, _)| key.fid == dir);
            asked.for_each(|(_, recalled)| recalled.note(id));
        }
        found
    }

    /// The lease of which nothing was used for the longest time, except `but`, if so many more leases, or fids, would be too many.
    pub fn to_make_room(&self, leases: usize, fids: usize, but: Option<&Arc<Lease>>) -> Option<Arc<Lease>> {
        let table = self.table.lock();
        let lent: usize = table.all.iter().map(|lease| lease.lent()).sum();
        let is_full = table.all.len() + table.asked.len() + leases > LEASES_MAX || lent + fids > FIDS_MAX;
        let others = table.all.iter().filter(|lease| !but.is_some_and(|but| Arc::ptr_eq(but, lease)));
        others.filter(|_| is_full).min_by_key(|lease| lease.used()).cloned()
    }

    /// Begins to ask for the lease of a directory, unless it is asked for, or there are enough leases.
    pub fn begin_asking(&self, dir: Key) -> Option<Asking<'_>> {
        let mut table = self.table.lock();
        let is_new = !table.asked.contains_key(&dir) && !table.all.iter().any(|lease| lease.dir == dir);
        if !is_new || table.all.len() + table.asked.len() >= LEASES_MAX {
            return None;
        }
        table.asked.insert(dir, Recalled::default());
        Some(Asking { leases: self, dir })
    }

    /// An object was made under a lease.
    pub fn made(&self, lease: &Arc<Lease>, object: Key) {
        self.table.lock().by_object.insert(object, lease.clone());
    }

    /// Objects that a lease has given back: nothing is decided of them, and the leases of directories among them are due as before.
    pub fn gave_back(&self, lease: &Arc<Lease>, fids: &[Fid], changes: Vec<(Key, u32)>) {
        {
            let mut table = self.table.lock();
            for key in fids.iter().map(|fid| Key::new(lease.dir.cell, *fid)) {
                if table.by_object.get(&key).is_some_and(|other| Arc::ptr_eq(other, lease)) {
                    table.by_object.remove(&key);
                }
            }
        }
        self.continue_in(lease, changes);
    }

    /// Removes a lease, of which everything is settled.
    pub fn remove(&self, lease: &Arc<Lease>) {
        lease.stop();
        let mut table = self.table.lock();
        table.all.retain(|other| !Arc::ptr_eq(other, lease));
        table.by_object.retain(|_, other| !Arc::ptr_eq(other, lease));
        self.any.store(!table.all.is_empty(), Ordering::SeqCst);
    }

    /// This client has changed names in a directory without a lease.
    pub fn note_change(&self, dir: Key) {
        self.runs.lock().changed(dir);
    }

    /// The server has made an object for the user of a token.
    pub fn learn(&self, dir: Key, token: TokenId, status: &Status) {
        match self.known(dir) {
            Some(lease) => lease.models(|models| models.learn(token, status)),
            None => self.runs.lock().learn(dir, token, status),
        }
    }

    /// Whether the lease of a directory is worth asking for.
    pub fn is_due(&self, dir: Key) -> bool {
        self.runs.lock().is_due(dir)
    }

    /// Whether much is made in a directory.
    pub fn is_busy(&self, dir: Key) -> bool {
        self.runs.lock().is_busy(dir)
    }

    /// The server has made a directory for the user of a token, by a single call.
    pub fn made_directory(&self, dir: Key, token: TokenId, status: &Status) {
        self.runs.lock().made(dir, Models::of_new_directory(token, status));
    }

    /// The lease of a directory was refused. Returns true if it was asked for because the directory is new.
    pub fn was_refused(&self, dir: Key) -> bool {
        self.runs.lock().was_refused(dir)
    }

    /// The lease of a directory was of no use, or lost.
    pub fn was_in_vain(&self, dir: Key) {
        self.runs.lock().was_in_vain(dir);
    }

    /// The lease of a directory has ended in order.
    pub fn has_ended(&self, lease: &Lease) {
        match lease.decided() {
            0..USEFUL_MIN => self.runs.lock().was_in_vain(lease.dir),
            _ if lease.is_lost() => {}
            _ => self.runs.lock().was_useful(lease.dir),
        }
    }

    /// What was lent with a lease was used up, and it has ended. The next leases of its directory, and of those that were made under it,
    /// are due at once: the server counts the changes of lists too.
    pub fn was_used_up(&self, lease: &Lease) {
        if lease.decided() < USEFUL_MIN
            || self.known(lease.dir).is_some_and(|known| std::ptr::eq(&*known, lease))
        {
            return;
        }
        self.continue_in(lease, lease.decided_in());
    }

    fn continue_in(&self, lease: &Lease, changes: impl IntoIterator<Item = (Key, u32)>) {
        let models = lease.models(|models| models.clone());
        let mut runs = self.runs.lock();
        changes.into_iter().for_each(|(dir, changes)| runs.continues(dir, changes, &models));
    }

    /// What was decided of an open file could not be done.
    pub fn note_failure(&self, file: Key, error: VenusError) {
        self.failed.lock().insert(file, error);
    }

    /// Takes the error of an open file.
    pub fn take_failure(&self, file: Key) -> Option<VenusError> {
        self.failed.lock().remove(&file)
    }
}

/// Leases that were recalled while one was asked for.
#[derive(Default)]
struct Recalled(Vec<LeaseId>);

impl Recalled {
    fn note(&mut self, id: LeaseId) {
        if self.0.len() < RECALLS_MAX {
            self.0.push(id);
        }
    }

    /// Whether this one is among them, or there were too many to tell.
    fn may_be(&self, id: LeaseId) -> bool {
        self.0.len() >= RECALLS_MAX || self.0.contains(&id)
    }
}

/// A lease that is asked for. If it is dropped, there is none.
pub(crate) struct Asking<'a> {
    leases: &'a Leases,
    dir: Key,
}

impl Asking<'_> {
    /// What is known of new objects in the directory.
    pub fn models(&self) -> Models {
        self.leases.runs.lock().models(self.dir)
    }

    /// The lease was granted. `None` if it was recalled before this.
    pub fn granted(self, lease: Lease) -> Option<Arc<Lease>> {
        let mut table = self.leases.table.lock();
        if table.asked.get(&self.dir).is_none_or(|recalled| recalled.may_be(lease.id)) {
            return None;
        }
        let lease = Arc::new(lease);
        table.all.push(lease.clone());
        table.by_object.insert(self.dir, lease.clone());
        self.leases.any.store(true, Ordering::SeqCst);
        drop(table);
        self.leases.runs.lock().leased(self.dir);
        Some(lease)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.leases.table.lock().asked.remove(&self.dir);
    }
}

#[cfg(test)]
mod tests;
