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

/// Fewest fids of a kind that are asked for later, when they are split as those before were used.
const FEWEST: usize = 16;
/// Fids that are asked for with a lease.
const DIRECTORIES: u32 = 32;
const FILES: u32 = LENT_MAX as u32 - DIRECTORIES;
/// Bytes of quota that are asked for.
const SPACE: u64 = 16 << 20;

impl Venus {
    /// The lease under which names in a directory may be decided. It is asked for if it is due.
    pub(super) async fn lease_of(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        is_worth_it: impl FnOnce() -> bool,
    ) -> Option<Arc<Lease>> {
        if let Some(lease) = self.leases.known(dir.key) {
            if lease.holds(self.now()) {
                return Some(lease);
            }
            // The server has ended it, or the promise on the directory was doubted here.
            self.end_lease(&lease).await;
        }
        let is_promised = || dir.fresh_status(volume, self.now()).is_some();
        match self.limits.leases && self.leases.is_due(dir.key) && is_promised() && is_worth_it() {
            true => Box::pin(self.take_lease(dir, volume)).await,
            false => None,
        }
    }

    /// Whether a change may be the first of several under a lease: not the removal of what a directory has left where that is little, and
    /// not that of a directory, which was not made under the lease.
    pub(super) fn is_worth_a_lease(&self, dir: &Vnode, volume: &Volume, change: &Change) -> bool {
        match change {
            Change::RemoveDir(_) => false,
            Change::RemoveFile(_) => {
                self.with_names(dir, volume, |names| names.are_many().then_some(())).is_some()
            }
            _ => true,
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
        let (server, reset) = (&lease.server, lease.server.reset.get());
        if server.lends_once.is_noted(self.now(), reset) {
            return false;
        }
        // What lists add is no part of the reservation any more.
        if lease.space() < SPACE / 2 && self.settle(lease).await.is_err() {
            return false;
        }
        let directories = lease.share_of_directories(LENT_MAX).clamp(FEWEST, LENT_MAX - FEWEST);
        // None is lent without any fid.
        let (files, directories) = match kind {
            New::Nothing => (1, 0),
            New::File | New::Directory => (LENT_MAX - directories, directories),
        };
        let request = fs::LendMore {
            dir: lease.dir.fid,
            lease: lease.id,
            files: files as u32,
            directories: directories as u32,
            space: SPACE.saturating_sub(lease.space()),
        };
        match self.calls.call(&self.context, &lease.volume, request).await.result {
            Ok(lent) => {
                let mut fids = lent.value.fids.into_vec();
                fids.retain(|fid| self.may_be_lent(lease.dir, *fid));
                lease.add(&fids, lent.value.space);
            }
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                server.lends_once.note(self.now(), reset);
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
        self.lease_of(dir, volume, || true).await
    }

    async fn take_lease(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) -> Option<Arc<Lease>> {
        let sites = volume.sites(self.now());
        let [server] = sites.as_slice() else { return None };
        let reset = server.reset.get();
        if self.is_closing() || server.no_leases.is_noted(self.now(), reset) {
            return None;
        }
        if let Some(other) = self.leases.to_make_room() {
            self.end_lease(&other).await;
        }
        let asking = self.leases.begin_asking(dir.key)?;
        let request =
            fs::TakeLease { dir: dir.key.fid, files: FILES, directories: DIRECTORIES, space: SPACE };
        // What was decided about the directory under the lease of another one is in the status that comes.
        self.send_first(volume, Some(&[dir.key])).await.ok()?;
        let taken = match self.calls.call(&self.context, volume, request).await.result {
            Ok(taken) => taken,
            Err(error) => {
                if error.code == Some(AbortCode::RXGEN_OPCODE) {
                    server.no_leases.note(self.now(), reset);
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
        Some(Lease::new(dir, volume, taken, promise, fids, models))
    }

    /// A number that is none of an object known here.
    fn may_be_lent(&self, dir: Key, fid: Fid) -> bool {
        let key = Key::new(dir.cell, fid);
        let is_known = self.vnodes.peek(key).is_some();
        fid.volume == dir.fid.volume && fid.vnode.0 > 1 && !is_known && self.leases.known(key).is_none()
    }
}
