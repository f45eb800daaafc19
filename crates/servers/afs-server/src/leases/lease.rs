//! Record of one lease: what is lent to whom, and whether it still holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afs_rpc::sync;
use afs_wire::fs::{LeaseId, ListedChange};
use afs_wire::ids::Fid;
use parking_lot::RwLock;

use crate::file::stores::SpaceHeld;
use crate::hosts::Host;
use crate::volume_states::Site;

/// A lease of a directory.
pub(crate) struct Lease {
    pub(crate) id: LeaseId,
    pub(crate) dir: Fid,
    /// The volume, on the partition where it was when the directory was lent.
    pub(crate) site: Site,
    pub(crate) host: Arc<Host>,
    /// Whether it is counted among those of machines that have not authenticated.
    pub(super) anonymous: bool,
    /// What is lent with it.
    fids: RwLock<BTreeSet<Fid>>,
    /// Whether lists are made under it. Looked at inside the transaction of each list.
    holds: AtomicBool,
    /// Whether a recall waits for it.
    wanted: AtomicBool,
    /// Seconds of the server's own clock at its last use.
    used: AtomicU64,
    /// Held by the task that lends or recalls it.
    pub(crate) turn: sync::Mutex<()>,
    /// Held while a list is made, and while the lease ends.
    pub(crate) lists: sync::Mutex<Lists>,
}

/// What the lists of a lease use up.
#[derive(Default)]
pub(crate) struct Lists {
    /// Quota that is reserved for the next ones.
    pub(crate) space: Option<SpaceHeld>,
    /// Whether what was lent has been taken back.
    pub(crate) over: bool,
}

impl Lease {
    pub(crate) fn new(id: LeaseId, dir: Fid, site: Site, host: Arc<Host>, now: u64) -> Self {
        Lease {
            id,
            dir,
            site,
            anonymous: !host.is_authenticated(),
            host,
            fids: RwLock::default(),
            holds: AtomicBool::new(true),
            wanted: AtomicBool::new(false),
            used: AtomicU64::new(now),
            turn: sync::Mutex::default(),
            lists: sync::Mutex::default(),
        }
    }

    /// What is lent with it.
    pub(crate) fn fids(&self) -> Vec<Fid> {
        self.fids.read().iter().copied().collect()
    }

    /// Number of fids that are lent with it.
    pub(crate) fn lent(&self) -> usize {
        self.fids.read().len()
    }

    pub(super) fn lend(&self, fids: &[Fid]) {
        self.fids.write().extend(fids);
    }

    /// Removes fids from those that are lent. Returns those that were.
    pub(super) fn give_back(&self, fids: &[Fid]) -> Vec<Fid> {
        let mut lent = self.fids.write();
        fids.iter().copied().filter(|fid| lent.remove(fid)).collect()
    }

    /// The directory, and the directories that may have been made under it.
    pub(crate) fn directories(&self) -> impl Iterator<Item = Fid> {
        std::iter::once(self.dir).chain(self.fids().into_iter().filter(|fid| fid.vnode.is_directory()))
    }

    /// Whether lists are made under it.
    pub(crate) fn holds(&self) -> bool {
        self.holds.load(Ordering::SeqCst)
    }

    /// No list is made from here on.
    pub(crate) fn stop(&self) {
        self.holds.store(false, Ordering::SeqCst);
    }

    /// Somebody wants it back.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    /// Seconds since its last use.
    pub(crate) fn idle(&self, now: u64) -> u64 {
        now.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Whether a fid was lent with it.
    pub(crate) fn has_lent(&self, fid: Fid) -> bool {
        self.fids.read().contains(&fid)
    }

    /// Whether a change concerns the directory and what was lent with it, and names the object that it makes.
    pub(crate) fn covers(&self, listed: &ListedChange) -> bool {
        let object = match listed.change.makes_object() {
            true => self.has_lent(listed.object),
            false => listed.object == Fid::default(),
        };
        object && listed.change.fids().iter().all(|fid| *fid == self.dir || self.has_lent(*fid))
    }
}

impl Lists {
    /// Keeps nothing more: the lease is over.
    pub(crate) fn end(&mut self) {
        *self = Lists { over: true, ..Lists::default() };
    }
}
