//! One shard of the callback promises: records in two slabs, linked into three lists and two indexes.
//!
//! Every promise is in the list of its object, of its host and of its expiry bucket, and in an index, all of
//! them made of 32-bit numbers, so the cost of each operation is the same with a million promises as with
//! ten.
//!
//! A break does not remove a promise at once: until the host has replied, any further change of the object
//! must wait for that reply too. `breaking` counts the messages in flight; the promise is removed with the
//! last of them, unless it was granted anew meanwhile.

use std::collections::BTreeMap;

use afs_wire::ids::{Fid, VolumeId};

use super::index::{Index, mix};
use super::lifetime::{self, BUCKET_SECONDS, Grant, YOUNG_SECONDS};
use super::records::{File, Links, List, Promise, State, UNLINKED, hash_fid};
use super::slab::{NONE, Slab};
use crate::hosts::HostId;

/// Buckets in the ring: more than the longest promise spans.
const RING: usize = 256;

/// One shard of the promises of a server.
pub(super) struct Table {
    files: Slab<File>,
    by_fid: Index,
    promises: Slab<Promise>,
    by_pair: Index,
    seed: u64,
    hosts: Vec<u32>,
    volumes: BTreeMap<VolumeId, u32>,
    buckets: Box<[u32; RING]>,
    /// Number of the first bucket that has not been swept.
    unswept: u64,
}

impl Table {
    pub(super) fn new(seed: u64) -> Self {
        Table {
            files: Slab::new(),
            by_fid: Index::new(seed),
            promises: Slab::new(),
            by_pair: Index::new(seed),
            seed,
            hosts: Vec::new(),
            volumes: BTreeMap::new(),
            buckets: Box::new([NONE; RING]),
            unswept: 0,
        }
    }

    /// Promises held.
    pub(super) fn len(&self) -> usize {
        self.promises.len()
    }

    /// Objects on which promises are held.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Bytes on the heap, an estimate for the map of volumes.
    pub(super) fn bytes(&self) -> usize {
        self.files.bytes()
            + self.promises.bytes()
            + self.by_fid.bytes()
            + self.by_pair.bytes()
            + self.hosts.capacity() * size_of::<u32>()
            + self.volumes.len() * 32
            + RING * size_of::<u32>()
    }

    /// Grants or renews a promise; returns for how many seconds the client may rely on it.
    pub(super) fn grant(&mut self, fid: Fid, host: HostId, grant: Grant, now: u64) -> u32 {
        let file = self.file(fid).unwrap_or_else(|| self.add_file(fid));
        let promise = self.promise(file, host).unwrap_or_else(|| self.add_promise(file, host));
        let sharers = self.files.get(file).promises;
        let (bucket, told) = lifetime::expiry(now, lifetime::seconds(grant, sharers));
        self.unlink(List::Bucket, promise);
        let record = self.promises.get_mut(promise);
        record.bucket = (bucket % RING as u64) as u8;
        record.given = now as u32;
        // The reply with the new promise may be lost; the delayed break still says that an older one is
        // broken.
        if record.state != State::Delayed {
            record.state = State::Granted;
        }
        self.link(List::Bucket, promise);
        told
    }

    /// Starts to break the promises on an object to hosts other than `except`; the caller sends a message to
    /// each of them and then calls [`Table::broken`] or [`Table::delay`].
    pub(super) fn start_break(&mut self, fid: Fid, except: Option<HostId>, out: &mut Vec<HostId>) {
        let Some(file) = self.file(fid) else { return };
        let mut at = self.files.get(file).first;
        while at != NONE {
            let promise = self.promises.get_mut(at);
            let next = promise.links[List::File as usize].after;
            let host = promise.host;
            if Some(host) != except {
                promise.breaking = promise.breaking.saturating_add(1);
                promise.state = State::Broken;
                out.push(host);
            }
            at = next;
        }
    }

    /// As [`Table::start_break`], of the promise to one host; false if it has none.
    pub(super) fn start_break_to(&mut self, fid: Fid, host: HostId) -> bool {
        let Some(at) = self.find(fid, host) else { return false };
        let promise = self.promises.get_mut(at);
        promise.breaking = promise.breaking.saturating_add(1);
        promise.state = State::Broken;
        true
    }

    /// Completes a break that the host has acknowledged.
    pub(super) fn broken(&mut self, fid: Fid, host: HostId) {
        let Some(at) = self.find(fid, host) else { return };
        let promise = self.promises.get_mut(at);
        promise.breaking = promise.breaking.saturating_sub(1);
        if promise.breaking == 0 && promise.state == State::Broken {
            self.remove(at);
        }
    }

    /// Records that a break could not be delivered: it is sent when the host is back.
    pub(super) fn delay(&mut self, fid: Fid, host: HostId) {
        let Some(at) = self.find(fid, host) else { return };
        let promise = self.promises.get_mut(at);
        promise.breaking = promise.breaking.saturating_sub(1);
        promise.state = State::Delayed;
    }

    /// At most `limit` objects whose delayed breaks are due to a host. Each counts as a message in flight.
    pub(super) fn take_delayed(&mut self, host: HostId, limit: usize, out: &mut Vec<Fid>) {
        let mut at = self.first_of(host);
        while at != NONE && out.len() < limit {
            let promise = self.promises.get_mut(at);
            let next = promise.links[List::Host as usize].after;
            if promise.state == State::Delayed {
                promise.state = State::Broken;
                promise.breaking = promise.breaking.saturating_add(1);
                out.push(self.files.get(promise.file).fid);
            }
            at = next;
        }
    }

    /// The host gives up one promise. A young one is kept: most likely it was granted after the host decided,
    /// and the two messages crossed.
    pub(super) fn give_up(&mut self, fid: Fid, host: HostId, now: u64) -> bool {
        let old = |at: &u32| (now as u32).wrapping_sub(self.promises.get(*at).given) >= YOUNG_SECONDS;
        let found = self.find(fid, host).filter(old);
        if let Some(at) = found {
            self.remove(at);
        }
        found.is_some()
    }

    /// Withdraws a promise that no client was told of.
    pub(super) fn revoke(&mut self, fid: Fid, host: HostId) {
        if let Some(at) = self.find(fid, host) {
            self.remove(at);
        }
    }

    /// Drops every promise to a host; returns how many.
    pub(super) fn forget_host(&mut self, host: HostId) -> usize {
        let mut dropped = 0;
        while self.first_of(host) != NONE {
            self.remove(self.first_of(host));
            dropped += 1;
        }
        dropped
    }

    /// Drops every promise on a deleted object.
    pub(super) fn forget_file(&mut self, fid: Fid) {
        while let Some(file) = self.file(fid) {
            self.remove(self.files.get(file).first);
        }
    }

    /// Drops every promise in a volume and adds the hosts that held one.
    pub(super) fn forget_volume(&mut self, volume: VolumeId, out: &mut Vec<HostId>) {
        while let Some(&file) = self.volumes.get(&volume) {
            let first = self.files.get(file).first;
            out.push(self.promises.get(first).host);
            self.remove(first);
        }
    }

    /// Whether a host holds a promise on an object.
    pub(super) fn holds(&self, fid: Fid, host: HostId) -> bool {
        self.find(fid, host).is_some_and(|at| self.promises.get(at).state == State::Granted)
    }

    /// Whether a host holds any promise, and whether any delayed break is due to it.
    pub(super) fn has_promises(&self, host: HostId) -> bool {
        self.first_of(host) != NONE
    }

    /// Drops at most `limit` expired promises; returns how many. Fewer than `limit` means that none is left.
    pub(super) fn expire(&mut self, now: u64, limit: usize) -> usize {
        let current = now / BUCKET_SECONDS;
        // Buckets more than one turn of the ring behind hold nothing older than that turn.
        self.unswept = self.unswept.max(current.saturating_sub(RING as u64));
        let mut dropped = 0;
        while self.unswept < current {
            let bucket = (self.unswept % RING as u64) as usize;
            while self.buckets[bucket] != NONE {
                if dropped == limit {
                    return dropped;
                }
                self.remove(self.buckets[bucket]);
                dropped += 1;
            }
            self.unswept += 1;
        }
        dropped
    }

    /// Up to `limit` promises that expire first and are not being broken. They stay until their breaks, which
    /// this starts, are completed.
    pub(super) fn start_reclaim(&mut self, now: u64, limit: usize, out: &mut Vec<(Fid, HostId)>) {
        let start = now / BUCKET_SECONDS;
        for bucket in start..start + RING as u64 {
            let mut at = self.buckets[(bucket % RING as u64) as usize];
            while at != NONE {
                if out.len() >= limit {
                    return;
                }
                let promise = self.promises.get_mut(at);
                if promise.state == State::Granted && promise.breaking == 0 {
                    promise.breaking = 1;
                    promise.state = State::Broken;
                    out.push((self.files.get(promise.file).fid, promise.host));
                }
                at = promise.links[List::Bucket as usize].after;
            }
        }
    }

    fn file(&self, fid: Fid) -> Option<u32> {
        self.by_fid.find(&self.files, hash_fid(self.seed, fid), |file| file.fid == fid)
    }

    fn promise(&self, file: u32, host: HostId) -> Option<u32> {
        let is = |promise: &Promise| promise.file == file && promise.host == host;
        self.by_pair.find(&self.promises, mix(self.seed, file, host.0), is)
    }

    /// Whether a promise is recorded, broken or not.
    pub(super) fn has(&self, fid: Fid, host: HostId) -> bool {
        self.find(fid, host).is_some()
    }

    fn find(&self, fid: Fid, host: HostId) -> Option<u32> {
        self.file(fid).and_then(|file| self.promise(file, host))
    }

    fn first_of(&self, host: HostId) -> u32 {
        self.hosts.get(host.0 as usize).copied().unwrap_or(NONE)
    }

    fn add_file(&mut self, fid: Fid) -> u32 {
        let at = self.files.insert(File::new(fid));
        self.by_fid.insert(&mut self.files, at);
        let first = self.volumes.insert(fid.volume, at).unwrap_or(NONE);
        self.files.get_mut(at).volume = Links { before: NONE, after: first };
        if first != NONE {
            self.files.get_mut(first).volume.before = at;
        }
        at
    }

    fn add_promise(&mut self, file: u32, host: HostId) -> u32 {
        let place = host.0 as usize;
        if place >= self.hosts.len() {
            self.hosts.resize(place + 1, NONE);
        }
        let at = self.promises.insert(Promise::new(file, host));
        self.by_pair.insert(&mut self.promises, at);
        self.link(List::File, at);
        self.link(List::Host, at);
        self.link(List::Bucket, at);
        self.files.get_mut(file).promises += 1;
        at
    }

    fn remove(&mut self, at: u32) {
        let file = self.promises.get(at).file;
        self.by_pair.remove(&mut self.promises, at);
        self.unlink(List::File, at);
        self.unlink(List::Host, at);
        self.unlink(List::Bucket, at);
        self.promises.remove(at);
        let record = self.files.get_mut(file);
        record.promises -= 1;
        if record.promises == 0 {
            self.remove_file(file);
        }
    }

    fn remove_file(&mut self, at: u32) {
        let File { fid, volume, .. } = *self.files.get(at);
        self.by_fid.remove(&mut self.files, at);
        if volume.after != NONE {
            self.files.get_mut(volume.after).volume.before = volume.before;
        }
        if volume.before != NONE {
            self.files.get_mut(volume.before).volume.after = volume.after;
        } else if volume.after != NONE {
            self.volumes.insert(fid.volume, volume.after);
        } else {
            self.volumes.remove(&fid.volume);
        }
        self.files.remove(at);
    }

    fn head(&mut self, list: List, promise: Promise) -> &mut u32 {
        match list {
            List::File => &mut self.files.get_mut(promise.file).first,
            List::Host => &mut self.hosts[promise.host.0 as usize],
            List::Bucket => &mut self.buckets[usize::from(promise.bucket)],
        }
    }

    fn link(&mut self, list: List, at: u32) {
        let promise = *self.promises.get(at);
        let after = std::mem::replace(self.head(list, promise), at);
        self.promises.get_mut(at).links[list as usize] = Links { before: NONE, after };
        if after != NONE {
            self.promises.get_mut(after).links[list as usize].before = at;
        }
    }

    fn unlink(&mut self, list: List, at: u32) {
        let promise = *self.promises.get(at);
        let Links { before, after } = promise.links[list as usize];
        if before == NONE {
            *self.head(list, promise) = after;
        } else {
            self.promises.get_mut(before).links[list as usize].after = after;
        }
        if after != NONE {
            self.promises.get_mut(after).links[list as usize].before = before;
        }
        self.promises.get_mut(at).links[list as usize] = UNLINKED;
    }
}
