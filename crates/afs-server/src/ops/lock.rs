//! SetLock, ExtendLock and ReleaseLock, with their old forms.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LockKind, LockReply};
use afs_wire::ids::Fid;

use super::object::{Found, sync};
use crate::access::Wish;
use crate::locks::LockMode;
use crate::server::{FileServer, Visit};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::SetLock| async move {
        server.set_lock(&visit, call.fid, call.kind)
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::ExtendLock| async move {
        server.extend_lock(&visit, call.fid)
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::ReleaseLock| async move {
        server.release_lock(&visit, call.fid).await
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::ChangeLock| async move {
        server.change_lock(&visit, call.fid, call.kind)
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::OldSetLock| async move {
        server.set_lock(&visit, call.fid, call.kind).map(drop)
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::OldExtendLock| async move {
        server.extend_lock(&visit, call.fid).map(drop)
    });
    super::call(table, |server: Arc<FileServer>, visit, call: fs::OldReleaseLock| async move {
        server.release_lock(&visit, call.fid).await.map(drop)
    })
}

impl FileServer {
    fn set_lock(&self, visit: &Visit, fid: Fid, kind: LockKind) -> Result<LockReply, AbortCode> {
        let (mode, wish) = match kind {
            LockKind::READ => (LockMode::Read, Wish::ReadLock),
            LockKind::WRITE => (LockMode::Write, Wish::WriteLock),
            _ => return Err(Errno::EINVAL.to_uae()),
        };
        let found = self.find(visit, fid)?;
        found.check(&visit.subject, wish)?;
        if found.header.is_writable() {
            self.locks.set(fid, mode, self.clients.now())?;
        } else if mode == LockMode::Write {
            return Err(Errno::EROFS.to_uae());
        }
        Ok(reply(&found))
    }

    fn change_lock(&self, visit: &Visit, fid: Fid, kind: LockKind) -> Result<LockReply, AbortCode> {
        let (mode, wish) = match kind {
            LockKind::READ => (LockMode::Read, Wish::ReadLock),
            LockKind::WRITE => (LockMode::Write, Wish::WriteLock),
            _ => return Err(Errno::EINVAL.to_uae()),
        };
        let found = self.find(visit, fid)?;
        found.check(&visit.subject, wish)?;
        if found.header.is_writable() {
            self.locks.change(fid, mode, self.clients.now())?;
        } else if mode == LockMode::Write {
            return Err(Errno::EROFS.to_uae());
        }
        Ok(reply(&found))
    }

    fn extend_lock(&self, visit: &Visit, fid: Fid) -> Result<LockReply, AbortCode> {
        let found = self.find(visit, fid)?;
        if found.header.is_writable() {
            self.locks.extend(fid, self.clients.now())?;
        }
        Ok(reply(&found))
    }

    /// When the object is free again all others are told, so that those who wait try again.
    async fn release_lock(self: &Arc<Self>, visit: &Visit, fid: Fid) -> Result<LockReply, AbortCode> {
        let found = self.find(visit, fid)?;
        if found.header.is_writable() && self.locks.release(fid) {
            self.clients.start_breaks(fid, Some(visit.host.id())).answered().await;
        }
        Ok(reply(&found))
    }
}

/// Locking volumes that nobody writes to keeps no state.
fn reply(found: &Found) -> LockReply {
    LockReply { sync: sync(&found.header) }
}
