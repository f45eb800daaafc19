//! Advisory locks: among the processes of this machine here, among machines at the server.
//!
//! Only a lock on a whole file is taken at the server, and one for all of this machine's: the server knows no owners
//! (docs/protocol/fileserver.md "8. Advisory locks").

use std::sync::Arc;

use afs_rpc::EnvExt;
use afs_wire::fs;
use std::time::Duration;

use crate::api::{HandleId, LockHolder, LockKind, LockRange};
use crate::error::{ErrorKind, Result, VenusError};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Pause before a server is asked again for a lock that somebody else holds.
const POLL: Duration = Duration::from_secs(1);

impl Venus {
    /// Takes a lock, or waits for it if `wait`. Without `wait` a lock in the way gives EAGAIN.
    pub async fn lock(
        &self,
        handle: HandleId,
        owner: u64,
        pid: u32,
        range: LockRange,
        kind: LockKind,
        wait: bool,
    ) -> Result<()> {
        let held = self.handles.get(handle, "lock")?;
        let (vnode, me) = (&held.vnode, self.speaking_for(held.who));
        loop {
            match me.try_lock(vnode, owner, pid, range, kind).await {
                Err(error) if error.kind == ErrorKind::WouldBlock && wait => self.env.sleep(POLL).await,
                other => return other,
            }
        }
    }

    async fn try_lock(
        &self,
        vnode: &Arc<Vnode>,
        owner: u64,
        pid: u32,
        range: LockRange,
        kind: LockKind,
    ) -> Result<()> {
        let _turn = vnode.changing.lock().await;
        {
            let mut state = vnode.state();
            if state.locks.conflict(owner, range, kind).is_some() {
                return Err(VenusError::new(ErrorKind::WouldBlock, "SetLock").of(vnode.key.fid));
            }
            if !state.locks.take(owner, pid, range, kind) {
                return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(vnode.key.fid));
            }
        }
        let agreed = self.agree_with_server(vnode).await;
        if agreed.is_err() {
            vnode.state().locks.release(owner, range);
            self.agree_with_server(vnode).await.ok();
        }
        agreed
    }

    /// Makes the server's lock what the locks here want. A lock cannot be changed from one kind to the other at once
    /// (docs/protocol/fileserver.md "14. Cache-manager side rules").
    async fn agree_with_server(&self, vnode: &Arc<Vnode>) -> Result<()> {
        let (wanted, held) = {
            let state = vnode.state();
            (state.locks.wanted_at_server(), state.locks.at_server)
        };
        if wanted == held || vnode.state().orphan {
            return Ok(());
        }
        let volume = self.volume_of(vnode.key).await?;
        if !volume.is_writable() {
            return match wanted {
                Some(LockKind::Write) => {
                    Err(VenusError::new(ErrorKind::ReadOnly, "SetLock").of(vnode.key.fid))
                }
                _ => Ok(()),
            };
        }
        let fid = vnode.key.fid;
        if held.is_some() {
            vnode.state().locks.at_server = None;
            self.call(&volume, fs::ReleaseLock { fid }).await.map_err(|error| error.of(fid))?;
        }
        if let Some(kind) = wanted {
            let wire = match kind {
                LockKind::Read => fs::LockKind::READ,
                LockKind::Write => fs::LockKind::WRITE,
            };
            self.call(&volume, fs::SetLock { fid, kind: wire }).await.map_err(|error| error.of(fid))?;
            vnode.state().locks.at_server = Some(kind);
        }
        Ok(())
    }

    /// Releases what `owner` holds in the range.
    pub async fn unlock(&self, handle: HandleId, owner: u64, range: LockRange) -> Result<()> {
        let handle = self.handles.get(handle, "unlock")?;
        self.speaking_for(handle.who).unlock_range(&handle.vnode, owner, range).await
    }

    async fn unlock_range(&self, vnode: &Arc<Vnode>, owner: u64, range: LockRange) -> Result<()> {
        let _turn = vnode.changing.lock().await;
        vnode.state().locks.release(owner, range);
        self.agree_with_server(vnode).await
    }

    /// A process has closed the file: its locks are gone.
    pub(super) async fn unlock_all(&self, vnode: &Arc<Vnode>, owner: u64) {
        if vnode.state().locks.is_empty() {
            return;
        }
        if let Err(error) = self.unlock_range(vnode, owner, LockRange::WHOLE).await {
            tracing::warn!(%error, "a lock could not be given back; the server forgets it in five minutes");
        }
    }

    /// A lock that stands in the way of such a lock, if there is one.
    pub async fn test_lock(
        &self,
        handle: HandleId,
        owner: u64,
        range: LockRange,
        kind: LockKind,
    ) -> Result<Option<LockHolder>> {
        let handle = self.handles.get(handle, "lock")?;
        let vnode = &handle.vnode;
        let here = vnode.state().locks.conflict(owner, range, kind);
        if here.is_some() || !range.is_whole() || vnode.state().locks.at_server.is_some() {
            return Ok(here);
        }
        let status = self.speaking_for(handle.who).status_unseen(vnode).await?;
        let elsewhere = match status.lock_count {
            0 => None,
            n if n < 0 => Some(LockKind::Write),
            _ if kind == LockKind::Write => Some(LockKind::Read),
            _ => None,
        };
        Ok(elsewhere.map(|kind| LockHolder { kind, range: LockRange::WHOLE, pid: 0 }))
    }

    /// Makes the locks we hold at servers last longer.
    pub(super) async fn extend_locks(&self) {
        for handle in self.handles.all() {
            let vnode = &handle.vnode;
            if vnode.state().locks.at_server.is_none() {
                continue;
            }
            let Ok(volume) = self.volume_of(vnode.key).await else { continue };
            let me = self.speaking_for(handle.who);
            if let Err(error) = me.call(&volume, fs::ExtendLock { fid: vnode.key.fid }).await {
                tracing::warn!(%error, "a lock could not be extended");
            }
        }
    }
}
