//! Periodic maintenance: expiry of promises and tokens, promises given back, probes, store retries, extension of locks.

use std::sync::Arc;

use afs_rpc::future::{Either, select};
use afs_rpc::{EnvExt, Instant};
use afs_wire::fs::{self, Fids, Promises};

use crate::api::TokenOwner;
use crate::data::FileData;
use crate::error::{ErrorKind, Result};
use crate::key::Key;
use crate::location::Server;
use crate::venus::store_reason::StoreReason;
use crate::venus::{Shared, Venus};
use crate::vnode::Vnode;

/// Limit of promises ended in one round.
const EXPIRED_MAX: usize = 10_000;
/// Locks last five minutes at the server; they are extended every so many rounds.
const LOCK_ROUNDS: u64 = 4;

impl Venus {
    /// Runs until Venus shuts down. Holds no reference while it sleeps.
    pub(super) async fn maintain(shared: std::sync::Weak<Shared>) {
        let upgraded = || shared.upgrade().map(Venus::anonymous);
        let mut round = 0;
        loop {
            let Some(venus) = upgraded() else { return };
            let wake = venus.wake.clone().notified_owned();
            let sleep = venus.env.sleep(venus.limits.maintenance);
            if venus.is_closing() {
                return;
            }
            drop(venus);
            if let Either::Left(()) = select(wake, sleep).await {
                continue;
            }
            let Some(venus) = upgraded() else { return };
            round += 1;
            venus.run_round(round).await;
        }
    }

    async fn run_round(&self, round: u64) {
        self.end_promises().await;
        self.watch_open_files();
        self.end_tokens();
        self.give_up_promises().await;
        self.calls.probe_idle();
        self.retry_stores().await;
        self.release_leftover_locks().await;
        if round.is_multiple_of(LOCK_ROUNDS) {
            self.extend_locks().await;
        }
        self.cells.renew_outdated();
        self.refresh_locations().await;
        self.pins.retry();
    }

    /// Ends promises about to expire. The kernel caches without a time limit, so it must be notified when a promise
    /// ends. The promise of a read-only volume is renewed by one call before it ends.
    async fn end_promises(&self) {
        let soon = self.now() + self.limits.maintenance;
        self.promises.end_due(soon, EXPIRED_MAX);
        for volume in self.promises.volumes_due(soon + self.limits.maintenance) {
            volume.set_promise(None);
            let root = self.vnode(Key::new(volume.cell, afs_wire::ids::Fid::root(volume.id)));
            if self.status(&root).await.is_err() {
                self.promises.invalidate_volume(&volume);
            }
        }
    }

    async fn give_up_promises(&self) {
        for (server, keys) in self.promises.take_give_ups() {
            for keys in keys.chunks(fs::FIDS_MAX) {
                if !self.give_up(&server, keys).await {
                    break;
                }
            }
        }
    }

    /// Gives back the promises on those of at most [`fs::FIDS_MAX`] objects that are out of the cache now. Returns true
    /// if the server replied.
    ///
    /// The server ends all promises on these objects that it has given when the call arrives, including those of
    /// look-ups made during the call. The call therefore ends promises on its objects as a break does, whatever its
    /// outcome.
    async fn give_up(&self, server: &Arc<Server>, keys: &[Key]) -> bool {
        let unused = self.promises.unused(keys);
        if unused.is_empty() {
            return true;
        }
        let Some(target) = self.calls.reachable_target(server) else { return false };
        let request = fs::GiveUpCallBacks {
            fids: Fids::first_of(unused.iter().map(|key| key.fid)),
            callbacks: Promises::new(),
        };
        self.counters.call("GiveUpCallBacks");
        let answer = target.connection.call(&request).await;
        self.promises.gave_up(&unused);
        if let Err(error) = &answer {
            tracing::debug!(%error, "promises could not be given back; they end by themselves");
        }
        answer.is_ok()
    }

    /// Retries the failed stores of a user soon, with a new count of failures.
    pub(super) fn retry_stores_of(&self, owner: TokenOwner) {
        for (key, user) in self.files.store_retries() {
            let data = self.vnodes.peek(key).and_then(|vnode| vnode.state().file.data().cloned());
            if let Some(data) = data.filter(|_| user == Some(owner)) {
                data.content().failures = 0;
            }
        }
        let me = self.in_background();
        self.env.spawn(Box::pin(async move { me.retry_stores().await }));
    }

    /// Retries failed stores, if that may help.
    pub(super) async fn retry_stores(&self) {
        for (key, user) in self.files.store_retries() {
            let Some(vnode) = self.vnodes.peek(key) else {
                self.files.clear_store_retry(key);
                continue;
            };
            let Some(data) = vnode.state().file.data().cloned() else {
                self.files.clear_store_retry(key);
                continue;
            };
            if data.content().failures >= self.limits.store_retries {
                continue;
            }
            // The outcome is recorded and logged.
            self.as_user(user).retry_listed(&vnode, &data).await.ok();
        }
    }

    /// Retries a store that is listed, for its user, who is the current one.
    pub(super) async fn retry_listed(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>) -> Result<()> {
        let (key, user) = (vnode.key, self.context.user);
        let stored = self.retry_store(vnode, data, StoreReason::Retry).await;
        match &stored {
            // A writer has the file open and will store it at its close.
            Ok(()) if data.content().is_dirty() => {}
            Ok(()) => {
                tracing::info!(fid = %key.fid, "unsaved data has been stored after all");
                self.files.clear_store_retry(key);
                self.retire(vnode, data, user).await;
            }
            Err(error) if is_final(error.kind) => {
                tracing::error!(%error, "unsaved data is not stored any more; `andrew fs recover` has it");
                self.give_up_data(vnode, error).await;
            }
            Err(error) => {
                self.files.note_failure(key, error);
                self.keep_unsaved(vnode, data).await;
            }
        }
        stored
    }

    /// Queries old locations again, and those of volumes without a reachable server: the volume, or the server, may
    /// have moved.
    async fn refresh_locations(&self) {
        let now = self.now();
        for volume in self.location.volumes().all() {
            let is_old = now.saturating_since(volume.located_at()) >= self.limits.location_max_age;
            if is_old || volume.is_unreachable(now) {
                self.calls.relocate(&self.context, &volume).await.ok();
            }
        }
    }

    /// Gives back all promises, to reachable servers.
    pub(super) async fn give_up_all(&self, until: Instant) {
        for server in self.location.servers().all() {
            let Some(target) = self
                .calls
                .reachable_target(&server)
                .filter(|target| target.address.absence.idle_for(self.now()).is_some())
            else {
                continue;
            };
            let left = until.saturating_since(self.now()).min(self.limits.server_dead);
            self.counters.call("GiveUpAllCallBacks");
            let call = target.connection.call(&fs::GiveUpAllCallBacks {});
            if self.env.timeout(left, call).await.is_err() {
                tracing::debug!(server = %target.address.peer, "promises could not be given back");
            }
        }
    }
}

/// True if a retry cannot help.
pub(super) fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Stale
            | ErrorKind::LockLost
            | ErrorKind::AccessDenied
            | ErrorKind::NotPermitted
            | ErrorKind::ReadOnly
            | ErrorKind::TooBig
    )
}
