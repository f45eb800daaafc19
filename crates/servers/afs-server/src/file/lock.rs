//! SetLock, ExtendLock and ReleaseLock, with their obsolete forms. A client whose SetLock was refused gets a callback when the lock is free.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LockKind, LockReply};
use afs_wire::ids::Fid;

use super::object::{Found, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::kept_locks::kept_lock;
use crate::locks::{Holder, Kept, LockMode};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::SetLock| async move {
        server.set_lock(&context, call.fid, call.kind).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::ExtendLock| async move {
        server.extend_lock(&context, call.fid).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::ReleaseLock| async move {
        server.release_lock(&context, call.fid).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::ChangeLock| async move {
        server.change_lock(&context, call.fid, call.kind).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::OldSetLock| async move {
        server.set_lock(&context, call.fid, call.kind).await.map(drop)
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::OldExtendLock| async move {
        server.extend_lock(&context, call.fid).await.map(drop)
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::OldReleaseLock| async move {
        server.release_lock(&context, call.fid).await.map(drop)
    })
}

/// The holder and mode of a lock that was taken, and whether it is already on disk.
type Taken = (Holder, LockMode, Kept);

impl FileServer {
    async fn set_lock(
        self: &Arc<Self>,
        context: &CallContext,
        fid: Fid,
        kind: LockKind,
    ) -> Result<LockReply, AbortCode> {
        match self.set_lock_once(context, fid, kind).await {
            Err(code) if code == Errno::EAGAIN.to_uae() && !self.waits(context, fid, kind) => {
                self.set_lock_once(context, fid, kind).await
            }
            other => other,
        }
    }

    /// Remembers a client that was refused. Returns false if it should ask once more.
    fn waits(self: &Arc<Self>, context: &CallContext, fid: Fid, kind: LockKind) -> bool {
        let mode = if kind == LockKind::READ { LockMode::Read } else { LockMode::Write };
        self.locks.wait(fid, context.host.holder(), context.host.id(), mode)
    }

    /// Tells those who wait for a lock, in the order of asking, as far as it is free for them.
    fn tell_waiters(self: &Arc<Self>, fid: Fid) {
        for (holder, host) in self.locks.call(fid) {
            let server = self.clone();
            self.env.spawn(Box::pin(async move {
                server.clients.tell_lock_free(fid, host).await;
                server.locks.replied(fid, holder);
                server.tell_waiters(fid);
            }));
        }
    }

    async fn set_lock_once(
        &self,
        context: &CallContext,
        fid: Fid,
        kind: LockKind,
    ) -> Result<LockReply, AbortCode> {
        let take = |holder, mode| self.locks.set(fid, holder, mode, self.clients.now());
        let (found, taken) = loop {
            let deletion = self.locks.next_deletion();
            match self.take_lock(context, fid, kind, take).await? {
                (_, Some((_, _, Kept::Leaving))) => deletion.await,
                taken => break taken,
            }
        };
        if let Some((holder, mode, Kept::NotYet)) = taken
            && let Err(code) = self.keep_lock(&found, fid, holder, mode).await
        {
            self.locks.release(fid, holder);
            return Err(code);
        }
        Ok(reply(&found))
    }

    async fn change_lock(
        self: &Arc<Self>,
        context: &CallContext,
        fid: Fid,
        kind: LockKind,
    ) -> Result<LockReply, AbortCode> {
        let change = |holder, mode| self.locks.change(fid, holder, mode, self.clients.now());
        let (found, taken) = self.take_lock(context, fid, kind, change).await?;
        if let Some((holder, mode, Kept::NotYet)) = taken {
            self.keep_lock(&found, fid, holder, mode).await?;
        }
        self.tell_waiters(fid);
        Ok(reply(&found))
    }

    /// Makes all checks and takes the lock in memory, if the volume is writable. A lock in the way that may be kept under a lease
    /// is recalled once.
    async fn take_lock(
        &self,
        context: &CallContext,
        fid: Fid,
        kind: LockKind,
        take: impl Fn(Holder, LockMode) -> Result<Kept, Errno>,
    ) -> Result<(Found, Option<Taken>), AbortCode> {
        let (found, taken) = self.try_lock(context, fid, kind, &take).await?;
        let is_refused = matches!(taken, Some(Err(Errno::EAGAIN)));
        let (found, taken) = match is_refused && self.recall_kept_lock(context, &found).await? {
            true => self.try_lock(context, fid, kind, &take).await?,
            false => (found, taken),
        };
        Ok((found, taken.transpose()?))
    }

    /// The same without a recall; the lock table's decision is inside.
    async fn try_lock(
        &self,
        context: &CallContext,
        fid: Fid,
        kind: LockKind,
        take: impl Fn(Holder, LockMode) -> Result<Kept, Errno>,
    ) -> Result<(Found, Option<Result<Taken, Errno>>), AbortCode> {
        let (mode, operation) = match kind {
            LockKind::READ => (LockMode::Read, Operation::ReadLock),
            LockKind::WRITE => (LockMode::Write, Operation::WriteLock),
            _ => return Err(Errno::EINVAL.to_uae()),
        };
        let found = self.find_locked(context, fid).await?;
        found.check(&context.subject, operation)?;
        if found.header.is_writable() {
            let (holder, _) = self.holder(context, fid);
            let taken = take(holder, mode).map(|kept| (holder, mode, kept));
            return Ok((found, Some(taken)));
        }
        if mode == LockMode::Write {
            return Err(Errno::EROFS.to_uae());
        }
        Ok((found, None))
    }

    /// Recalls the lease of the directory of a file if its holder has a lock on the file, which it may keep though none of its processes
    /// holds it (docs/protocol extensions.md "Locks under leases"). Returns whether there was such a lease.
    pub(super) async fn recall_kept_lock(
        &self,
        context: &CallContext,
        found: &Found,
    ) -> Result<bool, AbortCode> {
        let caller = Some(context.host.id());
        let (fid, dir) = (found.record.fid(found.header.id), found.directory(found.header.id));
        let Some(lease) = self.leases().of_others(dir, caller) else { return Ok(false) };
        let names = lease.host.earlier_holders().into_iter().chain([lease.host.holder()]);
        if !self.locks.is_held_by(fid, names) {
            return Ok(false);
        }
        self.recall_from_others(dir, caller).await?;
        Ok(true)
    }

    /// The name under which a machine holds locks, and the mode of a lock that it took before it was known by
    /// that name.
    fn holder(&self, context: &CallContext, fid: Fid) -> (Holder, Option<LockMode>) {
        let holder = context.host.holder();
        (holder, self.locks.adopt(fid, &context.host.earlier_holders(), holder))
    }

    /// An object whose locks are to be examined, after dropping those from before its volume moved elsewhere.
    async fn find_locked(&self, context: &CallContext, fid: Fid) -> Result<Found, AbortCode> {
        let found = self.find(context, fid).await?;
        self.locks.see(fid.volume, found.header.copy_date);
        Ok(found)
    }

    /// Writes a lock to disk, so that a restart does not grant it to another machine.
    async fn keep_lock(
        &self,
        found: &Found,
        fid: Fid,
        holder: Holder,
        mode: LockMode,
    ) -> Result<(), AbortCode> {
        let store = self.partitions.store(found.served.site.partition).ok_or(AbortCode::VNOVOL)?;
        let kept = store.keep_lock(kept_lock(fid, holder, mode)).await;
        kept.map_err(|error| self.code(fid, &error))?;
        self.locks.kept(fid, holder, mode);
        Ok(())
    }

    async fn extend_lock(&self, context: &CallContext, fid: Fid) -> Result<LockReply, AbortCode> {
        let found = self.find_locked(context, fid).await?;
        if found.header.is_writable() {
            let (holder, adopted) = self.holder(context, fid);
            self.locks.extend(fid, holder, self.clients.now())?;
            if let Some(mode) = adopted {
                self.keep_lock(&found, fid, holder, mode).await?;
            }
        }
        Ok(reply(&found))
    }

    async fn release_lock(self: &Arc<Self>, context: &CallContext, fid: Fid) -> Result<LockReply, AbortCode> {
        let found = self.find_locked(context, fid).await?;
        if found.header.is_writable() {
            self.locks.release(fid, self.holder(context, fid).0);
            self.tell_waiters(fid);
        }
        Ok(reply(&found))
    }
}

/// Locks in read-only volumes keep no state.
fn reply(found: &Found) -> LockReply {
    LockReply { sync: sync(&found.header) }
}
