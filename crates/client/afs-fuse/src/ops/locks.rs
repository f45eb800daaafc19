//! Requests for advisory locks of fcntl(2) and flock(2).

use crate::convert::errno;
use crate::ops::Mount;
use crate::ops::names::done;
use afs_venus::{HandleId, LockKind, LockRange};
use fuser::{Errno, ReplyEmpty, ReplyLock};

/// A request to set or test a lock.
pub(crate) struct LockRequest {
    pub(crate) handle: HandleId,
    pub(crate) owner: u64,
    pub(crate) pid: u32,
    pub(crate) range: LockRange,
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub(crate) kind: i32,
}

impl Mount {
    pub(crate) async fn setlk(&self, lock: LockRequest, wait: bool, reply: ReplyEmpty) {
        if lock.kind == libc::F_UNLCK {
            return done(self.venus.unlock(lock.handle, lock.owner, lock.range).await, reply);
        }
        let Some(kind) = kind(lock.kind) else { return reply.error(Errno::EINVAL) };
        let LockRequest { handle, owner, pid, range, .. } = lock;
        done(self.venus.for_process(pid).lock(handle, owner, pid, range, kind, wait).await, reply);
    }

    pub(crate) async fn getlk(&self, lock: LockRequest, reply: ReplyLock) {
        let Some(kind) = kind(lock.kind) else { return reply.error(Errno::EINVAL) };
        match self.venus.test_lock(lock.handle, lock.owner, lock.range, kind).await {
            Ok(None) => reply.locked(lock.range.first, lock.range.last, libc::F_UNLCK, 0),
            Ok(Some(holder)) => {
                let kind = match holder.kind {
                    LockKind::Read => libc::F_RDLCK,
                    LockKind::Write => libc::F_WRLCK,
                };
                reply.locked(holder.range.first, holder.range.last, kind, holder.pid);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

fn kind(kind: i32) -> Option<LockKind> {
    match kind {
        libc::F_RDLCK => Some(LockKind::Read),
        libc::F_WRLCK => Some(LockKind::Write),
        _ => None,
    }
}
