//! Advisory locks: by range among the processes of this machine, on whole files among machines.
//!
//! A server knows neither ranges nor owners of locks (docs/protocol/fileserver.md "8. Advisory locks"): for any locks
//! on a file, one lock on the whole file is held at the server for all processes of this machine. The holder sees the
//! newest version, and its changes are stored before the lock is released: a lock therefore orders the changes of
//! machines, not only their requests.

use afs_rpc::boxed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{join_all, select};
use afs_rpc::sync::Notify;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LOCK_LIFETIME};
use afs_wire::ids::Fid;

use crate::api::{HandleId, LockHolder, LockKind, LockRange};
use crate::calls::CallOutcome;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::identity::TokenId;
use crate::key::Key;
use crate::location::Volume;
use crate::lock_queue::Claim;
use crate::lock_waits::LockWaits;
use crate::venus::Venus;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// Pause before a server is asked again for a lock that another client holds: one of another implementation does not
/// tell when it is free. Also between looks whether a signal ends the wait of a process.
const POLL: Duration = Duration::from_millis(500);
/// For this long after a lock was taken or extended it is certainly still held at its server, whatever the clocks and
/// delays.
pub(super) const HELD_AT_LEAST: Duration = LOCK_LIFETIME.saturating_sub(Duration::from_secs(30));

impl Venus {
    /// Takes a lock, or waits for it if `wait`, in the order of asking. Without `wait` a conflicting lock gives EAGAIN. A wait for a
    /// process of this machine that waits for a lock of `owner` gives EDEADLK at once. A signal of the process `pid` ends the wait with
    /// EINTR, see [`Venus::set_signal_check`].
    #[boxed]
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
        let claim = Claim { owner, pid, range, kind };
        match wait {
            true => me.await_lock(&held, &claim).await,
            false => me.try_lock(&held, None, &claim).await,
        }
    }

    /// Waits in the queue of the file. Whoever is called asks the server, and again when that says that the lock is free.
    async fn await_lock(&self, handle: &Arc<Handle>, claim: &Claim) -> Result<()> {
        let vnode = &handle.vnode;
        let place = Waiter::join(&self.lock_waits, vnode, claim, self.token_for(vnode.key.cell))?;
        loop {
            if place.is_called() {
                match self.try_lock(handle, Some(place.number), claim).await {
                    Err(error) if error.kind == ErrorKind::WouldBlock => {}
                    other => return other,
                }
            }
            select(place.wake.notified(), self.env.sleep(POLL)).await;
            if self.is_signalled(claim.pid) {
                drop(place);
                // It may have been passed on to this one.
                let _guard = vnode.changing.lock().await;
                self.pass_on_or_release(vnode).await?;
                return Err(VenusError::new(ErrorKind::Interrupted, "SetLock").of(vnode.key.fid));
            }
        }
    }

    /// A server has the lock on a file for this client: those who wait for it are woken. Returns when the server was asked
    /// for the lock, or nobody wants it any more, or after the time for which a reply to a server waits.
    pub(super) async fn lock_is_free(&self, fid: Fid) {
        let keys = self.location.volumes().with_id(fid.volume).into_iter().map(|of| Key::new(of.cell, fid));
        let files: Vec<Arc<Vnode>> = keys.filter_map(|key| self.vnodes.peek(key)).collect();
        let asked = join_all(files.iter().map(|vnode| self.asked_for(vnode)));
        self.env.timeout(self.limits.settle_max, asked).await.ok();
    }

    async fn asked_for(&self, vnode: &Vnode) {
        let Some((attempt, news)) = vnode.state().locks.queue.wake_called() else { return };
        loop {
            let heard = news.notified();
            if vnode.state().locks.queue.is_tried_since(attempt) {
                return;
            }
            heard.await;
        }
    }

    /// `number`: the place in the queue of a process that waits.
    async fn try_lock(&self, handle: &Arc<Handle>, number: Option<u64>, claim: &Claim) -> Result<()> {
        let vnode = &handle.vnode;
        let _guard = vnode.changing.lock().await;
        if handle.data().lost.load(Ordering::SeqCst) {
            return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(vnode.key.fid));
        }
        let before = {
            let mut state = vnode.state();
            if state.locks.is_in_the_way(number, claim) {
                return Err(VenusError::new(ErrorKind::WouldBlock, "SetLock").of(vnode.key.fid));
            }
            let before = state.locks.held();
            if !state.locks.take(claim) {
                state.locks.restore(before);
                return Err(VenusError::new(ErrorKind::NoLock, "SetLock").of(vnode.key.fid));
            }
            state.locks.queue.begin();
            before
        };
        let matched = self.match_server_lock(vnode).await;
        vnode.state().locks.queue.end();
        let agreed = match matched {
            Ok(is_new) => self.switch_to_newest(handle, is_new).await,
            Err(error) => Err(error),
        };
        if agreed.is_err() {
            vnode.state().locks.restore(before);
            self.match_server_lock(vnode).await.ok();
        }
        agreed
    }

    /// Makes the lock at the server match the locks held here. Returns true if none was held before: other clients may
    /// have changed the file since.
    async fn match_server_lock(&self, vnode: &Arc<Vnode>) -> Result<bool> {
        self.use_kept_lock(vnode);
        let (wanted, held, is_kept, orphan) = {
            let state = vnode.state();
            let locks = &state.locks;
            (locks.wanted_at_server(), locks.at_server, locks.is_kept, state.file.is_orphan())
        };
        if wanted == held || is_kept || orphan {
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
            // It was kept, and suffices.
            (Some(LockKind::Write), Some(LockKind::Read)) => Ok(false),
            (Some(_), Some(kind)) => self.change_lock(&volume, vnode, kind).await.map(|()| false),
            (_, None) => self.store_and_release_lock(&volume, vnode).await.map(|()| false),
        }
    }

    /// Takes a lock at the server. A client that crashed has left its locks there under the permanent name that this
    /// client uses now, and so has this client where it got no reply: no other client can release them. The lock is
    /// therefore first requested as a conversion of a leftover one.
    async fn take_lock(&self, volume: &Arc<Volume>, vnode: &Vnode, kind: LockKind) -> Result<()> {
        if !vnode.state().locks.is_server_known {
            match self.convert_lock(volume, vnode, kind).await {
                Ok(()) => return Ok(()),
                Err(error) => vnode.state().locks.is_server_known = has_no_lock(&error),
            }
        }
        self.set_lock(volume, vnode, kind).await
    }

    /// Requests a lock. If an earlier attempt got no reply, a refusal may be caused by the lock that it obtained.
    pub(super) async fn set_lock(&self, volume: &Arc<Volume>, vnode: &Vnode, kind: LockKind) -> Result<()> {
        let (fid, now, since) = (vnode.key.fid, self.now(), self.promises.serial());
        let token = self.token_for(vnode.key.cell);
        let outcome = self.call_tried(volume, fs::SetLock { fid, kind: wire(kind) }).await;
        if outcome.maybe_executed {
            self.add_leftover_lock(vnode, None);
        }
        let Err(error) = outcome.result else {
            let mut state = vnode.state();
            state.locks.hold_at_server(kind, token, now, since);
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

    /// Releases a lock left by a client that crashed, if it belongs to this client: a server of another implementation
    /// would release any client's lock, and does not know the call that tells. Returns true if it was released.
    async fn release_unknown_lock(&self, vnode: &Vnode, volume: &Arc<Volume>) -> Result<bool> {
        let _guard = vnode.changing.lock().await;
        let is_ours = !vnode.state().locks.is_server_known
            && self.convert_lock(volume, vnode, LockKind::Read).await.is_ok();
        if is_ours {
            self.release_lock(volume, vnode).await?;
        }
        Ok(is_ours)
    }

    /// Converts the lock of this client at the server to a kind.
    pub(super) async fn convert_lock(
        &self,
        volume: &Arc<Volume>,
        vnode: &Vnode,
        kind: LockKind,
    ) -> Result<()> {
        let (now, since) = (self.now(), self.promises.serial());
        let token = self.token_for(vnode.key.cell);
        self.call(volume, fs::ChangeLock { fid: vnode.key.fid, kind: wire(kind) }).await?;
        vnode.state().locks.hold_at_server(kind, token, now, since);
        Ok(())
    }

    /// Converts a lock, without a moment in which another client could take it. On a server without that call the lock
    /// is released and requested anew; the version of the file shows whether another client changed it in between.
    pub(super) async fn change_lock(
        &self,
        volume: &Arc<Volume>,
        vnode: &Arc<Vnode>,
        kind: LockKind,
    ) -> Result<()> {
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

    /// Stores what was changed under the lock.
    async fn store_changes(&self, vnode: &Arc<Vnode>) -> Result<()> {
        let data = vnode.state().file.data().cloned();
        match data {
            Some(data) => self.store_locked(vnode, &data, StoreReason::Close).await,
            None => Ok(()),
        }
    }

    /// Stores what was changed under the lock and releases the lock at the server, unless it is kept under a lease. If the
    /// store fails, the lock is held until the file is closed.
    async fn store_and_release_lock(&self, volume: &Arc<Volume>, vnode: &Arc<Vnode>) -> Result<()> {
        self.store_changes(vnode).await?;
        match self.keep_lock(vnode) {
            true => Ok(()),
            false => self.release_lock(volume, vnode).await,
        }
    }

    /// Releases the lock at the server, now or when the server is reachable again: for local processes it is released
    /// in any case. After an error it expires by itself.
    pub(super) async fn release_lock(&self, volume: &Arc<Volume>, vnode: &Vnode) -> Result<()> {
        if vnode.state().is_gone {
            vnode.state().locks.end_at_server();
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
            Err(error) if is_object_gone(error) => {
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

    /// Sends one release to the server; sent twice it might release another client's lock. From then on no local
    /// process holds the lock.
    pub(super) async fn send_release(
        &self,
        volume: &Arc<Volume>,
        vnode: &Vnode,
    ) -> CallOutcome<fs::LockReply> {
        let fid = vnode.key.fid;
        vnode.state().locks.end_at_server();
        let mut outcome = self.without_retry().call_tried(volume, fs::ReleaseLock { fid }).await;
        vnode.state().locks.is_server_known &= outcome.result.is_ok();
        outcome.result = outcome.result.map_err(|error| error.of(fid));
        outcome
    }

    /// Releases the locks of `owner` in the range.
    #[boxed]
    pub async fn unlock(&self, handle: HandleId, owner: u64, range: LockRange) -> Result<()> {
        let handle = self.files.handle(handle, "unlock")?;
        self.as_user(handle.user).unlock_range(&handle.vnode, owner, range).await
    }

    async fn unlock_range(&self, vnode: &Arc<Vnode>, owner: u64, range: LockRange) -> Result<()> {
        let _guard = vnode.changing.lock().await;
        {
            let mut state = vnode.state();
            if state.locks.is_full_for_release(owner, range) {
                return Err(VenusError::new(ErrorKind::NoLock, "ReleaseLock").of(vnode.key.fid));
            }
            state.locks.release(owner, range);
        }
        self.pass_on_or_release(vnode).await
    }

    /// Releases the lock at the server that no process here holds any more, or passes it on to one that waits here. The
    /// changes are stored in any case.
    async fn pass_on_or_release(&self, vnode: &Arc<Vnode>) -> Result<()> {
        let passes = vnode.state().locks.passes_on();
        match passes {
            true => self.store_changes(vnode).await,
            false => self.match_server_lock(vnode).await.map(drop),
        }
    }

    /// Releases the locks of a process that has closed the file. An error of a store was returned by its close.
    pub(super) async fn unlock_all(&self, vnode: &Arc<Vnode>, owner: u64) {
        if vnode.state().locks.is_empty() {
            return;
        }
        let _guard = vnode.changing.lock().await;
        vnode.state().locks.release(owner, LockRange::WHOLE);
        let mut agreed = self.pass_on_or_release(vnode).await;
        let is_unstored = agreed.is_err() && {
            let state = vnode.state();
            let locks = &state.locks;
            locks.at_server.is_some() && locks.wanted_at_server().is_none() && !locks.is_kept
        };
        if is_unstored && let Ok(volume) = self.volume_of(vnode.key).await {
            agreed = self.release_lock(&volume, vnode).await;
        }
        if let Err(error) = agreed {
            tracing::warn!(%error, "what was changed under a lock is not stored, or the lock not given back");
        }
    }

    /// A lock that conflicts with the given one, if any. Servers do not notify clients of locks, so the server is
    /// asked.
    #[boxed]
    pub async fn test_lock(
        &self,
        handle: HandleId,
        owner: u64,
        range: LockRange,
        kind: LockKind,
    ) -> Result<Option<LockHolder>> {
        let handle = self.files.handle(handle, "lock")?;
        let vnode = &handle.vnode;
        if vnode.state().locks.is_kept && !self.has_kept_lock(vnode) {
            self.release_kept_lock(vnode).await;
        }
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

/// True if the server replies that the locked object or its volume does not exist.
pub(super) fn is_object_gone(error: &VenusError) -> bool {
    matches!(error.kind, ErrorKind::Stale | ErrorKind::NoVolume)
}

/// True if the server replies that this client holds no lock on the object.
pub(super) fn has_no_lock(error: &VenusError) -> bool {
    error.code.and_then(|code| code.to_errno()) == Some(Errno::EINVAL.number())
}

/// A waiter in the queue of locks of a file; it leaves the queue when it is dropped.
struct Waiter<'a> {
    waits: &'a LockWaits,
    vnode: &'a Arc<Vnode>,
    claim: &'a Claim,
    number: u64,
    wake: Arc<Notify>,
}

impl<'a> Waiter<'a> {
    fn join(waits: &'a LockWaits, vnode: &'a Arc<Vnode>, claim: &'a Claim, token: TokenId) -> Result<Self> {
        let refused = |kind| VenusError::new(kind, "SetLock").of(vnode.key.fid);
        let ticket = vnode.state().locks.join(claim.clone(), token);
        let (number, wake) = ticket.ok_or(refused(ErrorKind::NoLock))?;
        if !waits.begin(vnode, claim) {
            vnode.state().locks.leave(number);
            return Err(refused(ErrorKind::Deadlock));
        }
        Ok(Waiter { waits, vnode, claim, number, wake })
    }

    fn is_called(&self) -> bool {
        self.vnode.state().locks.queue.is_called(self.number)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.waits.end(self.vnode, self.claim);
        self.vnode.state().locks.leave(self.number);
    }
}

fn wire(kind: LockKind) -> fs::LockKind {
    match kind {
        LockKind::Read => fs::LockKind::READ,
        LockKind::Write => fs::LockKind::WRITE,
    }
}
