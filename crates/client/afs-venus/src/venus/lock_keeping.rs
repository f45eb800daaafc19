//! Extension of locks held at servers, and recovery of locks that a server has lost.
//!
//! A server that does not know a lock any more may have granted it to another client. The lock is requested again; if
//! it is granted and the file is unchanged, no other client can have relied on it meanwhile. Otherwise the lock is
//! lost: later changes by processes of this machine are not stored over those of the other client, and the processes
//! get an error (docs/semantics.md "Locks").

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_wire::fs::{self, LOCK_LIFETIME};

use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::locking::has_no_lock;
use crate::vnode::Vnode;

impl Venus {
    /// Extends all locks held at servers.
    pub(super) async fn extend_locks(&self) {
        for handle in self.files.handles() {
            let vnode = &handle.vnode;
            if vnode.state().locks.at_server.is_none() {
                continue;
            }
            let Ok(volume) = self.volume_of(vnode.key).await else { continue };
            let me = self.as_user(handle.user);
            if vnode.state().locks.is_kept {
                me.extend_kept_lock(vnode, &volume).await;
                continue;
            }
            if !me.extend_lock(vnode, &volume).await {
                let _guard = vnode.changing.lock().await;
                me.take_lock_again(vnode, &volume).await;
            }
        }
    }

    /// Before a store: verifies a lock that was not extended in time, as after a suspend, and one of a volume that may
    /// have moved since, whose new server knows no locks. Data of which a lock was lost is not stored. The caller must
    /// hold the `changing` lock of the file.
    pub(super) async fn check_lock(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &FileData,
    ) -> Result<()> {
        let is_held = !vnode.state().locks.is_kept;
        if is_held
            && self.may_have_lost_lock(vnode, volume, LOCK_LIFETIME)
            && !self.extend_lock(vnode, volume).await
        {
            self.take_lock_again(vnode, volume).await;
        }
        match data.lost.load(Ordering::SeqCst) {
            true => Err(VenusError::new(ErrorKind::LockLost, "StoreData").of(vnode.key.fid)),
            false => Ok(()),
        }
    }

    /// True if a lock that is held at the server was extended longer ago than this, or the volume may have moved since.
    pub(super) fn may_have_lost_lock(&self, vnode: &Vnode, volume: &Volume, longest: Duration) -> bool {
        let (state, now) = (vnode.state(), self.now());
        let old = |at| now.saturating_since(at) >= longest;
        // A server reports a move by breaking its promises on the whole volume.
        let may_have_moved = volume.broken.load(Ordering::SeqCst) > state.locks.extended_since;
        state.locks.at_server.is_some() && (may_have_moved || state.locks.extended.is_none_or(old))
    }

    /// `false` if the server replies that there is no such lock.
    pub(super) async fn extend_lock(&self, vnode: &Vnode, volume: &Arc<Volume>) -> bool {
        let (now, since) = (self.now(), self.promises.serial());
        match self.call(volume, fs::ExtendLock { fid: vnode.key.fid }).await {
            Ok(_) => {
                vnode.state().locks.extend(now, since);
                true
            }
            Err(error) if has_no_lock(&error) => false,
            Err(error) => {
                tracing::warn!(%error, "a lock could not be extended");
                true
            }
        }
    }

    /// The caller must hold the `changing` lock of the file.
    async fn take_lock_again(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) {
        let (held, known) = {
            let state = vnode.state();
            let of_data = state.file.data().map(|data| data.content().version);
            (state.locks.at_server, of_data.or(state.status.map(|status| status.data_version)))
        };
        let Some(kind) = held else { return };
        match self.set_lock(volume, vnode, kind).await {
            Ok(()) => {
                let status = self.fetch_status(vnode, volume).await;
                if status.is_ok_and(|status| known.is_none_or(|known| known == status.data_version)) {
                    tracing::info!(fid = %vnode.key.fid, "a lock that the server did not know was taken again");
                    return;
                }
                self.release_lock(volume, vnode).await.ok();
            }
            Err(error) if error.kind == ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "a lock that the server does not know could not be taken again");
                return;
            }
        }
        self.lose_lock(vnode).await;
    }

    async fn lose_lock(&self, vnode: &Arc<Vnode>) {
        tracing::error!(fid = %vnode.key.fid, "a lock was lost; what was written under it is not stored");
        vnode.state().locks.lose();
        self.files.lock_lost(vnode).await;
        self.distrust(vnode);
        self.invalidate(vnode.key);
    }
}
