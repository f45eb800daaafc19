//! Reasons for a store, and whether a store is deferred.

use crate::data::Content;

/// Reason for a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreReason {
    /// close(2).
    Close,
    /// fsync(2): the server flushes to disk, too.
    Sync,
    /// A store that cannot wait for a close: too much data is dirty, or the length was set without a handle.
    Midway,
    /// The last reference to a handle that may write is gone, some time after its close.
    Release,
    /// Retry of a failed store, whose close has returned the error.
    Retry,
}

impl StoreReason {
    /// True if the program thereby declares its change complete.
    pub fn completes_change(self) -> bool {
        matches!(self, StoreReason::Close | StoreReason::Sync)
    }

    /// True if dirty data stays local because another writer has the file open and will store it at its own close. The
    /// data may be an incomplete change of that writer, which other clients must not see before the close, nor if the
    /// close fails.
    pub fn defers_to_writer(self, content: &Content) -> bool {
        let closing = match self {
            StoreReason::Close | StoreReason::Sync | StoreReason::Midway => return false,
            StoreReason::Release => 1,
            StoreReason::Retry => 0,
        };
        content.changing && content.uses.writers() > closing
    }
}
