//! Release of leftover locks: when their server is reachable again, and at shutdown.
//!
//! A release without a reply may have been executed, and the lock be held by another machine now. Andrew's servers are
//! asked first: they know the holder of a lock, and a release affects the caller's lock alone. Servers of other
//! implementations only count locks; there the release is sent again only if it was certainly not received and the lock
//! has not expired (docs/protocol/fileserver.md "8. Advisory locks").

use std::collections::BTreeSet;
use std::sync::Arc;

use afs_rpc::{EnvExt, Instant};
use afs_wire::error::AbortCode;

use crate::api::LockKind;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::Key;
use crate::leftover_locks::LeftoverLock;
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::locking::{HELD_AT_LEAST, is_object_gone};
use crate::vnode::Vnode;

/// How often one client may have taken a read lock by requests without a reply.
const TAKEN_MAX: usize = 4;

/// Ownership of a lock that no process here holds, as reported by its server.
#[derive(Clone, Copy)]
enum LockOwnership {
    /// It was ours, and was converted to a read lock.
    Ours,
    /// A release affects no other client's lock; the lock may not be converted.
    OursIfAny,
    /// Not ours, or there is none.
    NotOurs,
    /// The server cannot tell.
    Unknown,
}

impl Venus {
    /// Adds a leftover lock. The caller must hold the `changing` lock of the file. `false` if the table is full, which
    /// is logged.
    pub(super) fn add_leftover_lock(&self, vnode: &Vnode, held_at_least_until: Option<Instant>) -> bool {
        let kept =
            self.leftover_locks.add(vnode.key, LeftoverLock { user: self.context.user, held_at_least_until });
        match kept {
            true => tracing::debug!(fid = %vnode.key.fid, "a lock is to be given back once more"),
            false => tracing::warn!(
                fid = %vnode.key.fid,
                "a lock could not be given back, like too many others; its server forgets it in five minutes"
            ),
        }
        kept
    }

    /// After a server has become reachable again: retries stores and releases in a background task. Stores come first,
    /// because the data was changed under the locks.
    pub(super) fn catch_up_later(&self) {
        if self.leftover_locks.is_empty() && !self.files.has_store_retries() {
            return;
        }
        let me = self.without_waiting();
        self.env.spawn(Box::pin(async move {
            me.retry_stores().await;
            me.release_leftover_locks().await;
        }));
    }

    /// Releases leftover locks at reachable servers.
    pub(super) async fn release_leftover_locks(&self) {
        if self.leftover_locks.is_empty() {
            return;
        }
        let _guard = self.leftover_locks.releasing.lock().await;
        let mut silent = BTreeSet::new();
        for key in self.leftover_locks.keys() {
            if silent.contains(&key.volume()) {
                continue;
            }
            if let Err(error) = self.release_leftover_lock(key).await {
                tracing::debug!(%error, "a lock cannot be given back yet");
                silent.insert(key.volume());
            }
        }
    }

    /// An error means that other locks of the volume need not be tried.
    async fn release_leftover_lock(&self, key: Key) -> Result<()> {
        let volume = self.volume_of(key).await?;
        if volume.sites(self.now()).iter().all(|server| server.is_unreachable()) {
            return Err(VenusError::new(ErrorKind::ServerUnreachable, "ReleaseLock").of(key.fid));
        }
        let vnode = self.vnode(key);
        // The holder may be waiting for the server; this lock is tried again later.
        let Ok(_guard) = vnode.changing.try_lock() else { return Ok(()) };
        let Some(leftover) = self.leftover_locks.get(key) else { return Ok(()) };
        if !vnode.state().locks.is_empty() {
            // A process holds it now, and will release it.
            self.leftover_locks.remove(key);
            return Ok(());
        }
        self.as_user(leftover.user).resolve_leftover_lock(&volume, &vnode, leftover).await
    }

    /// The caller must hold the `changing` lock of the file, on which no process here holds a lock.
    async fn resolve_leftover_lock(
        &self,
        volume: &Arc<Volume>,
        vnode: &Vnode,
        leftover: LeftoverLock,
    ) -> Result<()> {
        for _ in 0..TAKEN_MAX {
            let ownership = self.lock_ownership(volume, vnode).await?;
            let is_surely_ours = leftover.held_at_least_until.is_some_and(|until| self.now() < until);
            let released = match ownership {
                LockOwnership::NotOurs => break,
                LockOwnership::Unknown if !is_surely_ours => break,
                _ => self.send_release(volume, vnode).await,
            };
            match (released.result, ownership) {
                (Ok(_), LockOwnership::Ours) => {}
                (Err(error), _) if is_object_gone(&error) => break,
                (Err(error), LockOwnership::Unknown) if released.maybe_executed => {
                    tracing::warn!(%error, "whether a lock was given back is not known; it ends in five minutes");
                    break;
                }
                (released, _) => {
                    released?;
                    break;
                }
            }
        }
        vnode.state().locks.is_server_known = true;
        self.leftover_locks.remove(vnode.key);
        Ok(())
    }

    async fn lock_ownership(&self, volume: &Arc<Volume>, vnode: &Vnode) -> Result<LockOwnership> {
        let Err(error) = self.convert_lock(volume, vnode, LockKind::Read).await else {
            return Ok(LockOwnership::Ours);
        };
        match error.kind {
            ErrorKind::Invalid | ErrorKind::Stale | ErrorKind::NoVolume => Ok(LockOwnership::NotOurs),
            _ if error.code == Some(AbortCode::RXGEN_OPCODE) => Ok(LockOwnership::Unknown),
            ErrorKind::AccessDenied | ErrorKind::TokenExpired | ErrorKind::NotPermitted => {
                Ok(LockOwnership::OursIfAny)
            }
            _ => Err(error),
        }
    }

    /// At shutdown: releases the locks of open files and leftover locks, in bounded time, and logs the remaining ones.
    pub(super) async fn release_all_locks(&self, handles: &[Arc<Handle>]) {
        let all = async {
            for handle in handles {
                self.as_user(handle.user).make_lock_leftover(&handle.vnode).await;
            }
            self.probe_servers_of_leftover_locks().await;
            self.release_leftover_locks().await;
        };
        if self.env.timeout(self.limits.server_dead, all).await.is_err() {
            tracing::debug!("giving locks back takes too long");
        }
        self.log_leftover_locks();
    }

    /// Makes the lock on a file a leftover lock.
    async fn make_lock_leftover(&self, vnode: &Vnode) {
        let _guard = vnode.changing.lock().await;
        let (was_held, extended) = {
            let mut state = vnode.state();
            let is_there = !state.file.is_orphan() && !state.is_gone;
            let was_held = state.locks.at_server.is_some() && is_there;
            let extended = state.locks.extended;
            state.locks.lose();
            (was_held, extended)
        };
        if was_held {
            self.add_leftover_lock(vnode, extended.map(|at| at + HELD_AT_LEAST));
        }
    }

    /// Probes unreachable servers of leftover locks, which may be reachable again.
    async fn probe_servers_of_leftover_locks(&self) {
        let volumes: BTreeSet<_> = self.leftover_locks.keys().iter().map(Key::volume).collect();
        let known = volumes.iter().filter_map(|(cell, id)| self.location.volumes().get(*cell, *id));
        let servers = known.flat_map(|volume| volume.sites(self.now()));
        self.calls.probe_unreachable(servers).await;
    }

    fn log_leftover_locks(&self) {
        let left = self.leftover_locks.keys();
        if let Some(first) = left.first() {
            tracing::warn!(
                locks = left.len(),
                first = %first.fid,
                "locks could not be given back; their servers forget them in five minutes"
            );
        }
    }
}
