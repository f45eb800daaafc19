//! Taking the lease of a directory in which this client has made some changes in a row.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, FileKind, LENT_MAX, TakeLeaseReply};
use afs_wire::ids::Fid;

use crate::calls::CallReply;
use crate::counters::count;
use crate::key::Key;
use crate::leases::{Lease, Models};
use crate::location::{Server, Volume};
use crate::promise::Promise;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Fids that are asked for.
const DIRECTORIES: u32 = 32;
const FILES: u32 = LENT_MAX as u32 - DIRECTORIES;
/// Bytes of quota that are asked for.
const SPACE: u64 = 16 << 20;

impl Venus {
    /// The lease under which names in a directory may be decided. It is asked for if it is due.
    pub(super) async fn lease_of(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) -> Option<Arc<Lease>> {
        if let Some(lease) = self.leases.known(dir.key) {
            if lease.holds(self.now()) {
                return Some(lease);
            }
            // The server has ended it, or the promise on the directory was doubted here.
            self.end_lease(&lease).await;
        }
        let is_promised = || dir.fresh_status(volume, self.now()).is_some();
        match self.limits.leases && self.leases.is_due(dir.key) && is_promised() {
            true => self.take_lease(dir, volume).await,
            false => None,
        }
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
        self.lease_of(dir, volume).await
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
                self.leases.was_in_vain(dir.key);
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
