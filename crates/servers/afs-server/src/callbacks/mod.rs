//! Sharded table of callback promises: the objects that each client caches.
//!
//! The table only keeps records: it sends no message and never waits. [`crate::clients`] sends the breaks,
//! and the operations decide when.

mod index;
mod lifetime;
mod records;
mod slab;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};

use afs_wire::ids::{Fid, VolumeId};
use parking_lot::{Mutex, MutexGuard};

use crate::hosts::HostId;
pub use lifetime::Grant;
use table::Table;

/// Number of shards; calls on different objects seldom contend for one lock.
const SHARDS: usize = 16;
/// Most expired promises dropped under one lock: microseconds, not milliseconds.
const EXPIRE_STEP: usize = 1024;

/// Counters of [`Callbacks`] since the server started: collection 3 of `GetXStats`.
#[derive(Default, Debug)]
pub struct Counters {
    /// Objects deleted together with their promises.
    pub files_deleted: AtomicU64,
    /// Promises given back by clients.
    pub given_up: AtomicU64,
    /// Objects changed while others held promises on them.
    pub breaks: AtomicU64,
    /// Promises given.
    pub granted: AtomicU64,
    /// Times that promises were reclaimed because the table was full.
    pub reclaims: AtomicU64,
    /// Times that a host gave up all its promises.
    pub hosts_dropped: AtomicU64,
    /// Promises that expired.
    pub expired: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// All promises of a server. The cost of a method does not depend on the number of promises, except for those
/// it removes or returns.
pub struct Callbacks {
    shards: Vec<Mutex<Table>>,
    shard_max: usize,
    counters: Counters,
}

impl Callbacks {
    /// A table for about `promises_max` promises; `seed` keeps clients from choosing keys that collide.
    pub fn new(promises_max: usize, seed: u64) -> Self {
        Callbacks {
            shards: (0..SHARDS as u64).map(|n| Mutex::new(Table::new(seed.wrapping_add(n)))).collect(),
            shard_max: (promises_max / SHARDS).max(1),
            counters: Counters::default(),
        }
    }

    /// Grants or renews a promise at `now` (seconds of any monotonic clock) and returns for how many seconds
    /// the client may rely on it.
    ///
    /// Must precede the read of the object for the client: a later change then finds the promise.
    pub fn grant(&self, fid: Fid, host: HostId, grant: Grant, now: u64) -> u32 {
        Counters::add(&self.counters.granted, 1);
        self.shard(fid).grant(fid, host, grant, now)
    }

    /// The same, but `None` for a promise more than the shard of `fid` may have: where nothing could be reclaimed, because the clients that
    /// hold the others do not reply, one more is not given.
    pub fn grant_if_room(&self, fid: Fid, host: HostId, grant: Grant, now: u64) -> Option<u32> {
        let mut shard = self.shard(fid);
        if shard.len() >= self.shard_max && !shard.has(fid, host) {
            return None;
        }
        Counters::add(&self.counters.granted, 1);
        Some(shard.grant(fid, host, grant, now))
    }

    /// Whether the shard of `fid` is over its bound, so that [`Callbacks::start_reclaim`] must precede
    /// further grants.
    pub fn is_full(&self, fid: Fid) -> bool {
        self.shard(fid).len() >= self.shard_max
    }

    /// Makes room in the shard of `fid`: starts to break at most `limit` promises, those that expire first.
    /// Expired promises are dropped first; when that is enough, nothing is broken.
    pub fn start_reclaim(&self, fid: Fid, now: u64, limit: usize) -> Vec<(Fid, HostId)> {
        let mut out = Vec::new();
        let mut table = self.shard(fid);
        Counters::add(&self.counters.expired, table.expire(now, EXPIRE_STEP));
        if table.len() >= self.shard_max {
            table.start_reclaim(now, limit, &mut out);
            Counters::add(&self.counters.reclaims, 1);
        }
        out
    }

    /// Starts to break the promises on an object to hosts other than `except`. The caller sends a message to
    /// each host returned; [`Callbacks::broken`] or [`Callbacks::delay`] completes the break.
    pub fn start_break(&self, fid: Fid, except: Option<HostId>) -> Vec<HostId> {
        let mut out = Vec::new();
        self.shard(fid).start_break(fid, except, &mut out);
        Counters::add(&self.counters.breaks, usize::from(!out.is_empty()));
        out
    }

    /// As [`Callbacks::start_break`], of the promise to one host; false if it has none.
    pub fn start_break_to(&self, fid: Fid, host: HostId) -> bool {
        self.shard(fid).start_break_to(fid, host)
    }

    /// Completes a break that the host has acknowledged.
    pub fn broken(&self, fid: Fid, host: HostId) {
        self.shard(fid).broken(fid, host);
    }

    /// Records a break that did not reach its host and must be delivered later.
    pub fn delay(&self, fid: Fid, host: HostId) {
        self.shard(fid).delay(fid, host);
    }

    /// At most `limit` objects whose delayed breaks are due to a host; the caller sends each, and completes
    /// it as any break.
    pub fn take_delayed(&self, host: HostId, limit: usize) -> Vec<Fid> {
        let mut out = Vec::new();
        for shard in &self.shards {
            shard.lock().take_delayed(host, limit, &mut out);
        }
        out
    }

    /// Withdraws a promise that no client was told of.
    pub fn revoke(&self, fid: Fid, host: HostId) {
        self.shard(fid).revoke(fid, host);
    }

    /// A client gives up a promise at `now`; giving up one that it does not hold is no error. A promise of
    /// the last minute is kept: the client may have requested the object again while this message was in
    /// flight.
    pub fn give_up(&self, fid: Fid, host: HostId, now: u64) {
        let held = self.shard(fid).give_up(fid, host, now);
        Counters::add(&self.counters.given_up, usize::from(held));
    }

    /// Drops every promise to a host.
    pub fn forget_host(&self, host: HostId) {
        for shard in &self.shards {
            shard.lock().forget_host(host);
        }
        Counters::add(&self.counters.hosts_dropped, 1);
    }

    /// Drops the promises on a deleted object.
    pub fn forget_file(&self, fid: Fid) {
        self.shard(fid).forget_file(fid);
        Counters::add(&self.counters.files_deleted, 1);
    }

    /// Drops every promise in a volume; returns the hosts that held one, each once.
    pub fn forget_volume(&self, volume: VolumeId) -> Vec<HostId> {
        let mut hosts = Vec::new();
        for shard in &self.shards {
            shard.lock().forget_volume(volume, &mut hosts);
        }
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Whether a host holds an unbroken promise on an object.
    pub fn holds(&self, fid: Fid, host: HostId) -> bool {
        self.shard(fid).holds(fid, host)
    }

    /// Whether a host holds any promise.
    pub fn has_promises(&self, host: HostId) -> bool {
        self.shards.iter().any(|shard| shard.lock().has_promises(host))
    }

    /// Drops expired promises, in bounded steps so that no call waits long for a lock.
    pub fn expire(&self, now: u64) {
        for shard in &self.shards {
            loop {
                let dropped = shard.lock().expire(now, EXPIRE_STEP);
                Counters::add(&self.counters.expired, dropped);
                if dropped < EXPIRE_STEP {
                    break;
                }
            }
        }
    }

    /// Promises held.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether no promise is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Objects on which promises are held.
    pub fn files(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().files()).sum()
    }

    /// Bytes of memory used by the promises.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// The counters since the server started.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn shard(&self, fid: Fid) -> MutexGuard<'_, Table> {
        self.shards[records::hash_fid(0, fid) as usize % SHARDS].lock()
    }
}

#[cfg(test)]
mod tests;
