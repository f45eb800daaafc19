//! Advisory locks: among the processes of this machine here, among machines at the server.
//!
//! The server knows neither ranges nor owners (docs/protocol/fileserver.md "8. Advisory locks"): whatever is locked here
//! of a file, one lock on the whole of it is held at the server for all processes of this machine. Who gets it sees the
//! newest version, and what was changed is stored before it is given back: so a lock orders what machines do, not only
//! what they ask for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, LOCK_LIFETIME};

use crate::api::{HandleId, LockHolder, LockKind, LockRange};
use crate::calls::CallOutcome;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// Pause before a server is asked again for a lock that somebody else holds.
const POLL: Duration = Duration::from_secs(1);
/// So long after a lock was taken or extended it is still held at its server, whatever its clock and the way to it.
pub(super) const HELD_AT_LEAST: Duration = LOCK_LIFETIME.saturating_sub(Duration::from_secs(30));

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
        let held = self.files.handle(handle, "lock")?;
        let me = self.as_user(held.user);
        loop {
            match me.try_lock(&held, owner, pid, range, kind).await {
                Err(error) if error.kind == ErrorKind::WouldBlock && wait => self.env.sleep(POLL).await,
                other => return other,
            }
        }
    }

    async fn try_lock(
        &self,
        handle: &Arc<Handle>,
        owner: u64,
        pid: u32,
        range: LockRange,
        kind: LockKind,
    ) -> Result<()> {
        let vnode = &handle.vnode;
        let _guard = vnode.changing.lock().await;
        if handle.data().lost.load(Ordering::SeqCst) {
            return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(vnode.key.fid));
        }
        let before = {
            let mut state = vnode.state();
            if state.locks.conflict(owner, range, kind).is_some() {
                return Err(VenusError::new(ErrorKind::WouldBlock, "SetLock").of(vnode.key.fid));
            }
            let before = state.locks.held();
            if !state.locks.take(owner, pid, range, kind) {
                state.locks.restore(before);
                return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(vnode.key.fid));
            }
            before
        };
        let agreed = match self.match_server_lock(vnode).await {
            Ok(is_new) => self.switch_to_newest(handle, is_new).await,
            Err(error) => Err(error),
        };
        if agreed.is_err() {
            vnode.state().locks.restore(before);
            self.match_server_lock(vnode).await.ok();
        }
        agreed
    }

    /// Makes the server's lock what the locks here want. Says whether none was held before: others may have changed the
    /// file since.
    async fn match_server_lock(&self, vnode: &Arc<Vnode>) -> Result<bool> {
        let (wanted, held, orphan) = {
            let state = vnode.state();
            (state.locks.wanted_at_server(), state.locks.at_server, state.file.is_orphan())
        };
        if wanted == held || orphan {
            return Ok(false);
        }
        let volume = self.volume_of(vnode.key).await?;
        if !volume.is_writable() {
            return match wanted {
                Some(LockKind::Write) => {
                    Err(VenusError::new(ErrorKind::ReadOnly, "SetLock").of(vnode.key.fid))
                }
                _ => Ok(false),
            };
        }
        match (held, wanted) {
            (None, Some(kind)) => self.take_lock(&volume, vnode, kind).await.map(|()| true),
            (Some(_), Some(kind)) => self.change_lock(&volume, vnode, kind).await.map(|()| false),
            (_, None) => self.store_and_release_lock(&volume, vnode).await.map(|()| false),
        }
    }

    /// A client that was killed has left its locks at the server, under the name that this one goes on with, and so has this one
    /// where it heard no answer: nobody else can give them up. So a lock is asked for as a change of what may be left.
    async fn take_lock(&self, volume: &Arc<Volume>, vnode: &Vnode, kind: LockKind) -> Result<()> {
        if !vnode.state().locks.is_server_known && self.convert_lock(volume, vnode, kind).await.is_ok() {
            return Ok(());
        }
        self.set_lock(volume, vnode, kind).await
    }

    /// Asks for a lock. Where an earlier attempt had no answer, the refusal may be because of the lock that it has got.
    pub(super) async fn set_lock(&self, volume: &Arc<Volume>, vnode: &Vnode, kind: LockKind) -> Result<()> {
        let (fid, now, since) = (vnode.key.fid, self.now(), self.promises.serial());
        let outcome = self.call_tried(volume, fs::SetLock { fid, kind: wire(kind) }).await;
        if outcome.maybe_executed {
            self.add_leftover_lock(vnode, None);
        }
        let Err(error) = outcome.result else {
            let mut state = vnode.state();
            state.locks.hold_at_server(kind, now, since);
            // It may have been taken twice.
            state.locks.is_server_known = !outcome.maybe_executed;
            return Ok(());
        };
        vnode.state().locks.is_server_known &= error.code.is_some() && !outcome.maybe_executed;
        if outcome.maybe_executed && error.kind == ErrorKind::WouldBlock {
            return self.convert_lock(volume, vnode, kind).await.map_err(|_| error.of(fid));
        }
        Err(error.of(fid))
    }

    /// Releases what a client that was killed has left, if it was ours: a server of another maker would release anybody's lock, and
    /// does not know the call that tells. Says whether it did.
    async fn release_unknown_lock(&self, vnode: &Vnode, volume: &Arc<Volume>) -> Result<bool> {
        let _guard = vnode.changing.lock().await;
        let is_ours = !vnode.state().locks.is_server_known
            && self.convert_lock(volume, vnode, LockKind::Read).await.is_ok();
        if is_ours {
            self.release_lock(volume, vnode).await?;
        }
        Ok(is_ours)
    }

    /// Makes the lock that the server has of this machine one of that kind.
    pub(super) async fn convert_lock(
        &self,
        volume: &Arc<Volume>,
        vnode: &Vnode,
        kind: LockKind,
    ) -> Result<()> {
        let (now, since) = (self.now(), self.promises.serial());
        self.call(volume, fs::ChangeLock { fid: vnode.key.fid, kind: wire(kind) }).await?;
        vnode.state().locks.hold_at_server(kind, now, since);
        Ok(())
    }

    /// Makes a lock one of another kind, with no moment in which another machine could have it. A server without that
    /// call has to be asked for both locks in turn; that nobody used the moment shows in the version of the file.
    async fn change_lock(&self, volume: &Arc<Volume>, vnode: &Arc<Vnode>, kind: LockKind) -> Result<()> {
        let fid = vnode.key.fid;
        match self.convert_lock(volume, vnode, kind).await {
            Ok(()) => return Ok(()),
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {}
            Err(error) => return Err(error.of(fid)),
        }
        let Some(held) = vnode.state().locks.at_server else { return Ok(()) };
        let before = self.fetch_status(vnode, volume).await?.data_version;
        self.release_lock(volume, vnode).await?;
        let changed = self.set_lock(volume, vnode, kind).await;
        if changed.is_err() {
            self.set_lock(volume, vnode, held).await?;
        }
        if self.fetch_status(vnode, volume).await?.data_version != before {
            tracing::error!(%fid, "another machine changed a file while a lock on it was made one to write");
            return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(fid));
        }
        changed
    }

    /// Gives the server's lock back when it has what was changed under it. If it does not get that, the lock stays until
    /// the file is closed.
    async fn store_and_release_lock(&self, volume: &Arc<Volume>, vnode: &Arc<Vnode>) -> Result<()> {
        let data = vnode.state().file.data().cloned();
        if let Some(data) = data {
            self.store_locked(vnode, &data, StoreReason::Close).await?;
        }
        self.release_lock(volume, vnode).await
    }

    /// Releases the server's lock, now or when the server can be asked again: for those here it is given up either way. An error
    /// says that it is left to end by itself.
    pub(super) async fn release_lock(&self, volume: &Arc<Volume>, vnode: &Vnode) -> Result<()> {
        if vnode.state().is_gone {
            vnode.state().locks.at_server = None;
            self.leftover_locks.remove(vnode.key);
            return Ok(());
        }
        let (extended, was_server_known) = {
            let state = vnode.state();
            (state.locks.extended, state.locks.is_server_known)
        };
        let outcome = self.send_release(volume, vnode).await;
        let held_at_least_until = match &outcome.result {
            Ok(_) if was_server_known => {
                self.leftover_locks.remove(vnode.key);
                return Ok(());
            }
            // The lock has ended with its file.
            Err(error) if is_over(error) => {
                self.leftover_locks.remove(vnode.key);
                return Ok(());
            }
            Err(_) if !outcome.maybe_executed => extended.map(|at| at + HELD_AT_LEAST),
            // It may have been taken more than once, or be released already.
            _ => None,
        };
        match self.add_leftover_lock(vnode, held_at_least_until) {
            true => Ok(()),
            false => outcome.result.map(drop),
        }
    }

    /// One release on its way to the server, which may release another machine's lock if it comes twice. Nobody here holds the
    /// lock from then on.
    pub(super) async fn send_release(
        &self,
        volume: &Arc<Volume>,
        vnode: &Vnode,
    ) -> CallOutcome<fs::LockReply> {
        let fid = vnode.key.fid;
        vnode.state().locks.at_server = None;
        let mut outcome = self.without_retry().call_tried(volume, fs::ReleaseLock { fid }).await;
        vnode.state().locks.is_server_known &= outcome.result.is_ok();
        outcome.result = outcome.result.map_err(|error| error.of(fid));
        outcome
    }

    /// Releases what `owner` holds in the range.
    pub async fn unlock(&self, handle: HandleId, owner: u64, range: LockRange) -> Result<()> {
        let handle = self.files.handle(handle, "unlock")?;
        self.as_user(handle.user).unlock_range(&handle.vnode, owner, range).await
    }

    async fn unlock_range(&self, vnode: &Arc<Vnode>, owner: u64, range: LockRange) -> Result<()> {
        let _guard = vnode.changing.lock().await;
        vnode.state().locks.release(owner, range);
        self.match_server_lock(vnode).await.map(drop)
    }

    /// A process has closed the file: its locks are gone. What could not be stored is what its close has told of.
    pub(super) async fn unlock_all(&self, vnode: &Arc<Vnode>, owner: u64) {
        if vnode.state().locks.is_empty() {
            return;
        }
        let _guard = vnode.changing.lock().await;
        vnode.state().locks.release(owner, LockRange::WHOLE);
        let mut agreed = self.match_server_lock(vnode).await.map(drop);
        let is_kept = {
            let state = vnode.state();
            state.locks.at_server.is_some() && state.locks.wanted_at_server().is_none()
        };
        if is_kept && let Ok(volume) = self.volume_of(vnode.key).await {
            agreed = self.release_lock(&volume, vnode).await;
        }
        if let Err(error) = agreed {
            tracing::warn!(%error, "what was changed under a lock is not stored, or the lock not given back");
        }
    }

    /// A lock that stands in the way of such a lock, if there is one. Nobody is told of a lock that another machine takes, and
    /// we are not told of our own, so the server is asked.
    pub async fn test_lock(
        &self,
        handle: HandleId,
        owner: u64,
        range: LockRange,
        kind: LockKind,
    ) -> Result<Option<LockHolder>> {
        let handle = self.files.handle(handle, "lock")?;
        let vnode = &handle.vnode;
        let here = vnode.state().locks.conflict(owner, range, kind);
        if here.is_some() || vnode.state().locks.at_server.is_some() {
            return Ok(here);
        }
        let volume = self.volume_of(vnode.key).await?;
        if vnode.state().file.is_orphan() || !volume.is_writable() {
            return Ok(None);
        }
        let me = self.as_user(handle.user);
        let mut status = me.fetch_status(vnode, &volume).await?;
        if status.lock_count != 0 && me.release_unknown_lock(vnode, &volume).await? {
            status = me.fetch_status(vnode, &volume).await?;
        }
        let elsewhere = match status.lock_count {
            0 => None,
            n if n < 0 => Some(LockKind::Write),
            _ if kind == LockKind::Write => Some(LockKind::Read),
            _ => None,
        };
        Ok(elsewhere.map(|kind| LockHolder { kind, range: LockRange::WHOLE, pid: 0 }))
    }
}

/// Whether a server says that there is nothing any more that could be locked.
pub(super) fn is_over(error: &VenusError) -> bool {
    matches!(error.kind, ErrorKind::Stale | ErrorKind::NoVolume)
}

fn wire(kind: LockKind) -> fs::LockKind {
    match kind {
        LockKind::Read => fs::LockKind::READ,
        LockKind::Write => fs::LockKind::WRITE,
    }
}
