//! Locks that are kept at the server under a lease although no process here holds them: the next process takes them without a call.
//!
//! The server recalls the lease of the directory before a kept lock is in the way of another client, and the lock is released before
//! the recall is answered. It excludes the others until then like any other lock, also when the lease is lost.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::join_all;

use crate::api::LockKind;
use crate::error::Result;
use crate::key::Key;
use crate::leases::Lease;
use crate::location::Volume;
use crate::transfer::directory_of;
use crate::venus::Venus;
use crate::venus::locking::HELD_AT_LEAST;
use crate::vnode::Vnode;

/// Longest time for which a recall waits for the release of locks: one of a file that is being stored is released after that.
const RELEASE_WAIT: Duration = Duration::from_secs(2);

impl Venus {
    /// Keeps the lock at the server for the next process here, while the file is open and the lease lasts. Returns false if it is to be
    /// released. The caller must hold the `changing` lock of the file.
    pub(in crate::venus) fn keep_lock(&self, vnode: &Arc<Vnode>) -> bool {
        let may_be_kept = {
            let state = vnode.state();
            let is_there = state.file.opens() > 0 && !state.file.is_orphan() && !state.is_gone;
            is_there && state.locks.at_server == Some(LockKind::Write) && state.locks.is_server_known
        };
        let lease = self.lease_of_lock(vnode).filter(|_| may_be_kept);
        let is_kept = lease.is_some_and(|lease| lease.keep_lock(vnode, self.context.user));
        vnode.state().locks.is_kept = is_kept;
        is_kept
    }

    /// Whether a lock is kept that is certainly held at the server.
    pub(in crate::venus) fn has_kept_lock(&self, vnode: &Vnode) -> bool {
        let lease = self.lease_of_lock(vnode).filter(|_| vnode.state().locks.is_kept);
        lease.is_some_and(|lease| !self.may_have_lost_lock(vnode, &lease.volume, HELD_AT_LEAST))
    }

    /// A process takes a lock where one is kept: that is used if it is certainly held and was taken with the same token; otherwise the
    /// server is asked. The caller must hold the `changing` lock of the file.
    pub(in crate::venus) fn use_kept_lock(&self, vnode: &Arc<Vnode>) {
        let (is_wanted, extended, token) = {
            let state = vnode.state();
            let is_wanted = state.locks.is_kept && state.locks.wanted_at_server().is_some();
            (is_wanted, state.locks.extended, state.locks.taken_with)
        };
        if !is_wanted {
            return;
        }
        if token == self.token_for(vnode.key.cell) && self.has_kept_lock(vnode) {
            vnode.state().locks.is_kept = false;
            return;
        }
        self.forget_kept_lock(vnode);
        // The server may be unreachable now.
        self.add_leftover_lock(vnode, extended.map(|at| at + HELD_AT_LEAST));
    }

    /// What the server knows of a kept lock is not known here any more.
    fn forget_kept_lock(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.locks.end_at_server();
        state.locks.is_server_known = false;
    }

    /// Extends a lock that is kept, or releases it if the lease has ended.
    pub(in crate::venus) async fn extend_kept_lock(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) {
        if self.lease_of_lock(vnode).is_none() {
            self.release_kept_lock(vnode).await;
        } else if !self.extend_lock(vnode, volume).await {
            let _guard = vnode.changing.lock().await;
            if vnode.state().locks.is_kept {
                // Nobody here relies on it.
                self.forget_kept_lock(vnode);
            }
        }
    }

    /// The lease under which a lock on a file is kept.
    fn lease_of_lock(&self, vnode: &Vnode) -> Option<Arc<Lease>> {
        let dir = vnode.state().status.map(|status| directory_of(vnode.key.fid, &status))?;
        let now = self.now();
        self.leases.of(vnode.key, now).or_else(|| self.leases.of(Key::new(vnode.key.cell, dir), now))
    }

    /// Releases the locks that were kept under a lease under which nothing is decided any more.
    pub(in crate::venus) async fn release_kept_locks(&self, lease: &Lease) {
        let kept = lease.take_kept_locks();
        if kept.is_empty() {
            return;
        }
        let me = self.without_waiting();
        let releasing = self.env.spawn_with_result(async move {
            let each =
                kept.iter().map(async |(vnode, user)| me.as_user(*user).release_kept_lock(vnode).await);
            join_all(each).await;
        });
        self.env.timeout(RELEASE_WAIT, releasing).await.ok();
    }

    /// Releases a lock that is kept at the server. If a process has taken it meanwhile, the lock gets the strength that this process needs.
    pub(in crate::venus) async fn release_kept_lock(&self, vnode: &Arc<Vnode>) {
        let _guard = vnode.changing.lock().await;
        if let Err(error) = self.match_kept_lock(vnode).await {
            tracing::warn!(%error, "a lock that was kept could not be given back");
        }
    }

    async fn match_kept_lock(&self, vnode: &Arc<Vnode>) -> Result<()> {
        let (is_kept, at_server, wanted) = {
            let state = vnode.state();
            (state.locks.is_kept, state.locks.at_server, state.locks.wanted_at_server())
        };
        match (at_server, wanted) {
            (Some(_), None) if is_kept => {
                let volume = self.volume_of(vnode.key).await?;
                self.release_lock(&volume, vnode).await
            }
            (Some(LockKind::Write), Some(LockKind::Read)) => {
                let volume = self.volume_of(vnode.key).await?;
                self.change_lock(&volume, vnode, LockKind::Read).await
            }
            _ => Ok(()),
        }
    }
}
