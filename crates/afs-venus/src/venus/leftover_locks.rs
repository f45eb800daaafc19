//! Giving locks back that a server did not hear of: when it answers again, and at the end.
//!
//! A release whose answer was lost may have been done, and the lock be another machine's by now. Our servers are asked first: they
//! know whose lock it is, and a machine's release touches its own alone. Servers of other makers know a number of locks only; there
//! it is sent again only if it has surely not been heard and the lock has not ended by itself
//! (docs/protocol/fileserver.md "8. Advisory locks").

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
use crate::venus::locking::{HELD_AT_LEAST, is_over};
use crate::vnode::Vnode;

/// How often one machine may have taken a lock to read, with answers that were lost.
const TAKEN_MAX: usize = 4;

/// What a server says of a lock that nobody here holds.
#[derive(Clone, Copy)]
enum LockOwnership {
    /// It was ours, and is one to read now.
    Ours,
    /// Ours, if anybody's, as far as a release goes; it may not be changed.
    OursIfAny,
    /// Not ours, or there is none.
    NotOurs,
    /// The server cannot tell.
    Unknown,
}

impl Venus {
    /// Remembers that the server may have a lock of which nobody here knows. For one who has the turn to change the file. `false`
    /// if there is no room, which the log says.
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

    /// A server answers again: what it could not be told is told now, in a task of its own. Data comes first: they were changed
    /// under the locks.
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

    /// Gives back what is owed to servers that answer.
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

    /// An error is one after which other locks of the volume need not be tried.
    async fn release_leftover_lock(&self, key: Key) -> Result<()> {
        let volume = self.volume_of(key).await?;
        if volume.sites(self.now()).iter().all(|server| server.is_unreachable()) {
            return Err(VenusError::new(ErrorKind::ServerUnreachable, "ReleaseLock").of(key.fid));
        }
        let vnode = self.vnode(key);
        // Whoever has the turn may be waiting for the server; this one comes again.
        let Ok(_guard) = vnode.changing.try_lock() else { return Ok(()) };
        let Some(leftover) = self.leftover_locks.get(key) else { return Ok(()) };
        if !vnode.state().locks.is_empty() {
            // A process here has it now, and gives it back in its time.
            self.leftover_locks.remove(key);
            return Ok(());
        }
        self.as_user(leftover.user).resolve_leftover_lock(&volume, &vnode, leftover).await
    }

    /// For one who has the turn to change the file, of which nobody here holds a lock.
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
                (Err(error), _) if is_over(&error) => break,
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

    /// At the end: gives back what open files still hold, and what is owed, in bounded time. The log says what is left.
    pub(super) async fn release_all_locks(&self, handles: &[Arc<Handle>]) {
        let all = async {
            for handle in handles {
                self.as_user(handle.user).disown_lock(&handle.vnode).await;
            }
            self.probe_servers_of_leftover_locks().await;
            self.release_leftover_locks().await;
        };
        if self.env.timeout(self.limits.server_dead, all).await.is_err() {
            tracing::debug!("giving locks back takes too long");
        }
        self.log_leftover_locks();
    }

    /// What processes here hold of a file counts no more.
    async fn disown_lock(&self, vnode: &Vnode) {
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

    /// Servers to which locks are owed and that did not answer of late may be back.
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
