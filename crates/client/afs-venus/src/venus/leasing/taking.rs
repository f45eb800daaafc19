//! Taking the lease of a directory in which this client has made some changes in a row.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Change, FileKind, LENT_MAX, TakeLeaseReply};
use afs_wire::ids::Fid;

use crate::calls::CallReply;
use crate::counters::count;
use crate::key::Key;
use crate::leases::{Lease, Models, New};
use crate::location::{Server, Volume};
use crate::promise::Promise;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Fids that are asked for with the lease of a directory in which little was made so far; of other ones, [`LENT_MAX`].
const FEW: usize = 16;
/// Of so many, one is for a directory.
const DIRECTORIES_OF: usize = 8;
/// Most fids that a server lends with one lease.
const OF_LEASE_MAX: usize = 1024;
/// Bytes of quota that are asked for.
const SPACE: u64 = 16 << 20;
/// Leases that are returned at once to make room for one.
const RETURNED_MAX: usize = 16;

/// For what a lease is taken: removals need no fids, but a lease has one at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    Creation,
    Removal,
}

impl Venus {
    /// The lease under which names in a directory may be decided. It is asked for if it is due.
    pub(super) async fn lease_of(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        first: impl FnOnce() -> Option<First>,
    ) -> Option<Arc<Lease>> {
        if let Some(lease) = self.leases.known(dir.key) {
            if lease.holds(self.now()) {
                return Some(lease);
            }
            // The server has ended it, or the promise on the directory was doubted here.
            self.end_lease(&lease).await;
        }
        let is_promised = || dir.fresh_status(volume, self.now()).is_some();
        if !self.limits.leases || !self.leases.is_due(dir.key) || !is_promised() {
            return None;
        }
        let first = first()?;
        Box::pin(self.take_lease(dir, volume, first)).await
    }

    /// What a lease is for of which a change is the first. `None` for one that is not worth a lease: the removal of what a directory has left
    /// where that is little, and that of a directory, which was not made under the lease.
    pub(super) fn first_of_lease(&self, dir: &Vnode, volume: &Volume, change: &Change) -> Option<First> {
        match change {
            Change::RemoveDir(_) => None,
            Change::RemoveFile(_) => {
                self.with_names(dir, volume, |names| names.are_many().then_some(First::Removal))
            }
            _ => Some(First::Creation),
        }
    }

    /// A directory was made. If that was by a single call, nobody else knows it, and more is made there at once in most cases. One that was
    /// made under a lease is in that lease; when it has ended, others may be at work there.
    pub(in crate::venus) fn learn_of_new_directory(
        &self,
        made: &Vnode,
        answered: &CallReply<fs::CreateReply>,
    ) {
        let server = &answered.server;
        let is_of_lease = self.leases.known(made.key).is_some();
        if made.key.fid.is_directory()
            && !is_of_lease
            && !server.lends_no_new.is_noted(self.now(), server.reset.get())
        {
            self.leases.made_directory(made.key, answered.token, &answered.value.status);
        }
    }

    /// Asks for more of what a change under the lease needs. Returns false if it has not got that.
    pub(super) async fn borrow_more(&self, lease: &Arc<Lease>, cost: u64, kind: New) -> bool {
        let _turn = lease.borrowing.lock().await;
        if lease.has(cost, kind) {
            return true;
        }
        // What waits is not given back.
        if lease.lent() > OF_LEASE_MAX - LENT_MAX && self.settle(lease).await.is_err() {
            return false;
        }
        let (returned, changes) = lease.give_back();
        self.leases.gave_back(lease, &returned, changes);
        let [files, directories] = lease.more(FEW);
        self.make_room(0, files + directories, Some(lease)).await;
        let [space, waiting] = lease.space();
        let request = fs::LendMore {
            dir: lease.dir.fid,
            lease: lease.id,
            files: files as u32,
            directories: directories as u32,
            left: space.saturating_add(waiting),
            space: SPACE.saturating_sub(space),
            returned: fs::LentFids::first_of(returned),
        };
        match self.calls.call(&self.context, &lease.volume, request).await.result {
            Ok(lent) => {
                let mut fids = lent.value.fids.into_vec();
                fids.retain(|fid| self.may_be_lent(lease.dir, *fid));
                lease.add(&fids, lent.value.space);
            }
            Err(error) => tracing::debug!(%error, dir = %lease.dir.fid, "nothing more is lent with a lease"),
        }
        lease.has(cost, kind)
    }

    /// The lease after one with which nothing is left that a change needs.
    pub(super) async fn next_lease(
        &self,
        used_up: &Arc<Lease>,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
    ) -> Option<Arc<Lease>> {
        self.end_lease(used_up).await;
        self.leases.was_used_up(used_up);
        self.lease_of(dir, volume, || Some(First::Creation)).await
    }

    async fn take_lease(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, first: First) -> Option<Arc<Lease>> {
        let sites = volume.sites(self.now());
        let [server] = sites.as_slice() else { return None };
        let reset = server.reset.get();
        if self.is_closing() || !server.may_know_our_calls(self.now()) {
            return None;
        }
        let fids = match first {
            First::Removal => 1,
            First::Creation if self.leases.is_busy(dir.key) => LENT_MAX,
            First::Creation => FEW,
        };
        let directories = fids / DIRECTORIES_OF;
        self.make_room(1, fids, None).await;
        let asking = self.leases.begin_asking(dir.key)?;
        let request = fs::TakeLease {
            dir: dir.key.fid,
            files: (fids - directories) as u32,
            directories: directories as u32,
            space: SPACE,
        };
        // What was decided about the directory under the lease of another one is in the status that comes.
        self.send_first(volume, Some(&[dir.key])).await.ok()?;
        let taken = match self.calls.call(&self.context, volume, request).await.result {
            Ok(taken) => taken,
            Err(error) => {
                if error.code == Some(AbortCode::RXGEN_OPCODE) {
                    server.no_calls_of_ours.note(self.now(), reset);
                }
                if self.leases.was_refused(dir.key) {
                    server.lends_no_new.note(self.now(), reset);
                }
                return None;
            }
        };
        let lease = self.taken(dir, volume, server, &taken, asking.models())?;
        let granted = asking.granted(lease);
        granted.iter().for_each(|_| count(&self.counters.leases_taken));
        granted
    }

    /// Returns the leases that were used longest ago, if so many more, with so many fids, would be too many.
    async fn make_room(&self, leases: usize, fids: usize, but: Option<&Arc<Lease>>) {
        for _ in 0..RETURNED_MAX {
            let Some(other) = self.leases.to_make_room(leases, fids, but) else { return };
            self.end_lease(&other).await;
        }
    }

    /// The lease of a reply that makes sense.
    fn taken(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        server: &Arc<Server>,
        taken: &CallReply<TakeLeaseReply>,
        models: Models,
    ) -> Option<Lease> {
        let reply = &taken.value;
        if reply.status.kind != FileKind::Directory || !Arc::ptr_eq(server, &taken.server) {
            self.leases.was_in_vain(dir.key);
            return None;
        }
        self.promises.record_reply(volume, dir, &reply.status, &reply.callback, &reply.sync, &taken.origin());
        let mut fids: Vec<Fid> =
            reply.fids.iter().copied().filter(|fid| self.may_be_lent(dir.key, *fid)).collect();
        fids.sort_unstable();
        fids.dedup();
        let (reset, margin) = (&server.reset, self.limits.promise_margin);
        let promise = Promise::of(&reply.callback, reset, taken.serial, taken.started, margin)?;
        Some(Lease::new(dir, volume, taken, promise, fids, models, self.leases.journal()))
    }

    /// A number that is none of an object known here.
    fn may_be_lent(&self, dir: Key, fid: Fid) -> bool {
        let key = Key::new(dir.cell, fid);
        let is_known = self.vnodes.peek(key).is_some();
        fid.volume == dir.fid.volume && fid.vnode.0 > 1 && !is_known && self.leases.known(key).is_none()
    }
}
