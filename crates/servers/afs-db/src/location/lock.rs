//! Locks of location entries, set by tools while they work on a volume.

use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};

use super::entries;
use super::entry::entry_flags;
use crate::{Entry, LocationError, Refusal, RowsMut};

/// The parts of a lock to be released (docs/protocol vldb.md "4. Semantics", ReleaseLock).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    timestamp: bool,
    operation: bool,
}

impl Release {
    /// Leaves the lock unchanged.
    pub const NOTHING: Release = Release { timestamp: false, operation: false };
    /// Releases the lock, as the tools do.
    pub const ALL: Release = Release { timestamp: true, operation: true };

    /// Decodes a release type: bit 1 clears the time, 2 the operation, 4 the owner, which is not kept. Zero
    /// releases nothing; other bits alone are [`Refusal::BadRelease`].
    pub const fn from_wire(bits: i32) -> Result<Release, Refusal> {
        if bits != 0 && bits & 7 == 0 {
            return Err(Refusal::BadRelease);
        }
        Ok(Release { timestamp: bits & 1 != 0, operation: bits & 2 != 0 })
    }

    pub(crate) fn apply(self, entry: &mut Entry) {
        if self.timestamp {
            entry.locked = UnixSeconds(0);
        }
        if self.operation {
            entry.flags &= !entry_flags::OPERATIONS;
        }
    }
}

/// Locks an entry for one operation. Locks do not expire
/// (docs/protocol vldb.md "4. Semantics", SetLock).
pub(crate) fn set(
    rows: &mut (impl RowsMut + ?Sized),
    id: VolumeId,
    kind: Option<VolumeKind>,
    operation: u32,
    now: UnixSeconds,
) -> Result<(), LocationError> {
    if operation.count_ones() != 1 || operation & entry_flags::OPERATIONS == 0 {
        return Err(Refusal::BadOperation.into());
    }
    let (row, old) = entries::by_id(rows, id, kind)?;
    if old.locked.0 != 0 {
        return Err(Refusal::EntryLocked.into());
    }
    if old.flags & entry_flags::RELEASE != 0 {
        return Err(Refusal::Rerelease.into());
    }
    let flags = old.flags & !entry_flags::OPERATIONS | operation;
    // A clock at zero must not create a lock that looks like none.
    let locked = UnixSeconds(now.0.max(1));
    let new = Entry { locked, flags, ..old.clone() };
    entries::write(rows, row, Some(&old), &new)
}

/// Releases the lock of an entry; one that is not locked is no error.
pub(crate) fn release(
    rows: &mut (impl RowsMut + ?Sized),
    id: VolumeId,
    kind: Option<VolumeKind>,
    release: Release,
) -> Result<(), LocationError> {
    let (row, old) = entries::by_id(rows, id, kind)?;
    let mut new = old.clone();
    release.apply(&mut new);
    entries::write(rows, row, Some(&old), &new)
}
