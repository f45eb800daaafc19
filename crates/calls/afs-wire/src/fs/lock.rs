//! Calls on advisory locks. Source: `docs/protocol/fileserver.md` "8. Advisory locks".

use super::{SERVICE, VolSync};
use crate::ids::Fid;
use crate::rpc::Nothing;
use std::time::Duration;

id! {
    /// Kind of a lock.
    pub struct LockKind(i32);
}

impl LockKind {
    /// Shared with other readers.
    pub const READ: Self = Self(0);
    /// Exclusive.
    pub const WRITE: Self = Self(1);
}

/// How long a lock lasts unless it is extended.
pub const LOCK_LIFETIME: Duration = Duration::from_secs(300);

calls! {
    service SERVICE;

    /// Obsolete form of [`SetLock`].
    143 "OldSetLock" OldSetLock { fid: Fid, kind: LockKind, sync: VolSync } -> Nothing;

    /// Obsolete form of [`ExtendLock`].
    144 "OldExtendLock" OldExtendLock { fid: Fid, sync: VolSync } -> Nothing;

    /// Obsolete form of [`ReleaseLock`].
    145 "OldReleaseLock" OldReleaseLock { fid: Fid, sync: VolSync } -> Nothing;

    /// Locks an object, or fails at once with EAGAIN.
    156 "SetLock" SetLock { fid: Fid, kind: LockKind } -> LockReply { sync: VolSync };

    /// Makes a lock last another [`LOCK_LIFETIME`].
    157 "ExtendLock" ExtendLock { fid: Fid } -> LockReply;

    /// Releases a lock. Requires no lock and no right.
    158 "ReleaseLock" ReleaseLock { fid: Fid } -> LockReply;
}
