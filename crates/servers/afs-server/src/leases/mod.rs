//! Table of leases: which client decides the names of which directory by itself (docs/protocol extensions.md "Leases of
//! directories").
//!
//! The table only keeps records: it sends no message and never waits. [`crate::clients`] sends the recalls, and
//! `crate::file::recalls` decides when.

mod lease;
mod runs;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_wire::fs::{LENT_MAX, LeaseId};
use afs_wire::ids::{Fid, VnodeId, VolumeId};
use parking_lot::RwLock;

use crate::hosts::{HostId, Seeded};
pub(crate) use lease::Lease;
use runs::Runs;

/// Most leases and lent fids: of all clients, of those that have not authenticated together, and of one. A program that changes many directories by turns, as `git add` does in 256 of them, needs a lease of each.
const ALL: Bound = Bound { leases: 2048, fids: 1024 * LENT_MAX };
const ANONYMOUS: Bound = Bound { leases: ALL.leases / 4, fids: ALL.fids / 4 };
const OF_HOST: Bound = Bound { leases: 512, fids: 32 * LENT_MAX };
/// Most fids that are lent with one lease.
const OF_LEASE_MAX: usize = 1024;

/// All leases of a server.
pub(crate) struct Leases {
    table: RwLock<Table>,
    runs: Runs,
}

#[derive(Default)]
struct Table {
    by_id: BTreeMap<LeaseId, Arc<Lease>>,
    /// The directories, and what is lent with them: a number is of one object as long as it is lent.
    by_object: BTreeMap<(VolumeId, VnodeId), Arc<Lease>>,
    by_host: BTreeMap<HostId, Held>,
    anonymous: Held,
    all: Held,
    /// Volumes of which nothing is lent, and how many operations want that.
    barred: BTreeMap<VolumeId, usize>,
    /// Whether nothing at all is lent any more.
    closed: bool,
}

/// Leases, and fids that are lent with them.
#[derive(Clone, Copy, Default)]
struct Held {
    leases: usize,
    fids: usize,
}

/// Most leases, and fids that are lent with them.
#[derive(Clone, Copy)]
struct Bound {
    leases: usize,
    fids: usize,
}

impl Held {
    /// Whether one more lease, or more fids of one that is counted, are within a bound.
    fn has_room(self, leases: usize, fids: usize, most: Bound) -> bool {
        self.leases + leases <= most.leases && self.fids + fids <= most.fids
    }
}

/// Keeps the directories of a volume from being lent, until it is dropped.
pub(crate) struct Bar {
    leases: Arc<Leases>,
    volume: VolumeId,
}

impl Leases {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Leases { table: RwLock::default(), runs: Runs::new(Seeded(seed)) })
    }

    /// Begins to lend a directory, of which nobody else has a lease, with so many fids. From here on others recall it. `None` if there
    /// are too many leases, or nothing of the volume is lent.
    pub(crate) fn begin(&self, lease: Lease, fids: usize) -> Option<Arc<Lease>> {
        let lease = Arc::new(lease);
        let (id, dir) = (lease.id, lease.dir);
        let mut table = self.table.write();
        if !table.may_begin(&lease, fids) {
            return None;
        }
        table.by_object.insert(key(dir), lease.clone());
        table.by_id.insert(id, lease.clone());
        table.held_with(&lease, |held| held.leases += 1);
        Some(lease)
    }

    /// Whether so many more fids may be lent with a lease, of which some are given back.
    pub(crate) fn have_room(&self, lease: &Lease, fids: usize, returned: usize) -> bool {
        let (table, lent) = (self.table.read(), lease.lent().saturating_sub(returned));
        !table.closed
            && lent + fids <= OF_LEASE_MAX
            && table.has_room(lease, 0, fids.saturating_sub(returned))
    }

    /// Adds what is lent with a directory.
    pub(crate) fn lend(&self, lease: &Arc<Lease>, fids: &[Fid]) {
        lease.lend(fids);
        let mut table = self.table.write();
        table.by_object.extend(fids.iter().map(|fid| (key(*fid), lease.clone())));
        table.held_with(lease, |held| held.fids += fids.len());
    }

    /// Fids are lent no more with a lease: what was not used of them was taken back.
    pub(crate) fn give_back(&self, lease: &Arc<Lease>, fids: &[Fid]) {
        let fids = lease.give_back(fids);
        let mut table = self.table.write();
        fids.iter().for_each(|fid| table.is_not_lent(lease, *fid));
        table.held_with(lease, |held| held.fids -= fids.len());
    }

    /// Removes a lease, of which everything was taken back.
    pub(crate) fn remove(&self, lease: &Arc<Lease>) {
        let mut table = self.table.write();
        if table.by_id.remove(&lease.id).is_none() {
            return;
        }
        std::iter::once(lease.dir).chain(lease.fids()).for_each(|fid| table.is_not_lent(lease, fid));
        let fids = lease.lent();
        table.held_with(lease, |held| {
            held.leases -= 1;
            held.fids -= fids;
        });
        if table.by_host.get(&lease.host.id()).is_some_and(|held| held.leases == 0) {
            table.by_host.remove(&lease.host.id());
        }
    }

    /// The lease of an object.
    pub(crate) fn of(&self, fid: Fid) -> Option<Arc<Lease>> {
        self.table.read().by_object.get(&key(fid)).cloned()
    }

    /// The lease of an object, if a client other than `host` holds it.
    pub(crate) fn of_others(&self, fid: Fid, host: Option<HostId>) -> Option<Arc<Lease>> {
        let table = self.table.read();
        table.by_object.get(&key(fid)).filter(|lease| Some(lease.host.id()) != host).cloned()
    }

    /// The same of a number that a transaction changes.
    pub(crate) fn of_others_by_number(
        &self,
        volume: VolumeId,
        mut changed: impl Iterator<Item = VnodeId>,
        host: Option<HostId>,
    ) -> Option<Arc<Lease>> {
        let table = self.table.read();
        if table.by_object.is_empty() {
            return None;
        }
        changed.find_map(|vnode| {
            table.by_object.get(&(volume, vnode)).filter(|lease| Some(lease.host.id()) != host).cloned()
        })
    }

    /// The lease of a directory of a volume that a client holds by this id.
    pub(crate) fn held(&self, id: LeaseId, volume: VolumeId, host: HostId) -> Option<Arc<Lease>> {
        let table = self.table.read();
        let found = table.by_id.get(&id).cloned();
        found.filter(|lease| lease.dir.volume == volume && lease.host.id() == host && lease.holds())
    }

    /// Runs `grant`, which records a promise to a client, unless another client has the lease of the object. The promises that were
    /// recorded before a lease are broken when it is granted.
    pub(crate) fn unless_lent<T>(&self, fid: Fid, host: HostId, grant: impl FnOnce() -> T) -> Option<T> {
        let table = self.table.read();
        let lent = table.by_object.get(&key(fid)).is_some_and(|lease| lease.host.id() != host);
        (!lent).then(grant)
    }

    /// Nothing more of a volume is lent until the bar is dropped. Also the leases there are.
    pub(crate) fn bar(self: &Arc<Self>, volume: VolumeId) -> (Bar, Vec<Arc<Lease>>) {
        let mut table = self.table.write();
        *table.barred.entry(volume).or_default() += 1;
        let all = table.by_id.values().filter(|lease| lease.dir.volume == volume).cloned().collect();
        (Bar { leases: self.clone(), volume }, all)
    }

    /// Nothing more is lent.
    pub(crate) fn close(&self) {
        self.table.write().closed = true;
    }

    /// All leases.
    pub(crate) fn all(&self) -> Vec<Arc<Lease>> {
        self.table.read().by_id.values().cloned().collect()
    }

    /// A client changes names in a directory.
    pub(crate) fn note_change(&self, dir: Fid, host: HostId) {
        self.runs.changes(dir, host);
    }

    /// A client has made a directory.
    pub(crate) fn note_made(&self, dir: Fid, host: HostId) {
        self.runs.makes(dir, host);
    }

    /// A client, or the server itself, names an object.
    pub(crate) fn note_use(&self, fid: Fid, host: Option<HostId>) {
        self.runs.names(fid, host);
    }

    /// Whether a call that names an object has to do with leases of others, or with their runs of changes.
    pub(crate) fn concern(&self, fid: Fid, host: Option<HostId>) -> bool {
        self.runs.are_of_others(fid, host) || self.of_others(fid, host).is_some()
    }

    /// Whether a client made the last changes of a directory.
    pub(crate) fn made_last_changes(&self, dir: Fid, host: HostId) -> bool {
        self.runs.are_of(dir, host)
    }
}

impl Table {
    /// Whether a lease may begin with so many fids.
    fn may_begin(&self, lease: &Lease, fids: usize) -> bool {
        !self.closed
            && !self.by_id.contains_key(&lease.id)
            && !self.by_object.contains_key(&key(lease.dir))
            && !self.barred.contains_key(&lease.dir.volume)
            && self.has_room(lease, 1, fids)
    }

    /// Whether more is within all bounds.
    fn has_room(&self, lease: &Lease, leases: usize, fids: usize) -> bool {
        let of_host = self.by_host.get(&lease.host.id()).copied().unwrap_or_default();
        self.all.has_room(leases, fids, ALL)
            && of_host.has_room(leases, fids, OF_HOST)
            && (!lease.anonymous || self.anonymous.has_room(leases, fids, ANONYMOUS))
    }

    /// An object is not, or no more, one of a lease.
    fn is_not_lent(&mut self, lease: &Arc<Lease>, fid: Fid) {
        if self.by_object.get(&key(fid)).is_some_and(|other| Arc::ptr_eq(other, lease)) {
            self.by_object.remove(&key(fid));
        }
    }

    /// Changes what is counted with a lease.
    fn held_with(&mut self, lease: &Lease, mut change: impl FnMut(&mut Held)) {
        change(&mut self.all);
        change(self.by_host.entry(lease.host.id()).or_default());
        if lease.anonymous {
            change(&mut self.anonymous);
        }
    }
}

impl std::fmt::Debug for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bar").field("volume", &self.volume).finish_non_exhaustive()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let mut table = self.leases.table.write();
        if let Some(count) = table.barred.get_mut(&self.volume) {
            *count -= 1;
            if *count == 0 {
                table.barred.remove(&self.volume);
            }
        }
    }
}

fn key(fid: Fid) -> (VolumeId, VnodeId) {
    (fid.volume, fid.vnode)
}
