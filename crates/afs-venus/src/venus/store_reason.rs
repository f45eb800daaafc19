//! Why something is stored, and what is not stored then.

use crate::data::Content;

/// What makes Venus store a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreReason {
    /// close(2).
    Close,
    /// fsync(2): the server is asked for its disk, too.
    Sync,
    /// Something that cannot wait for a close: too much is unsaved, or a length was set without a handle.
    Midway,
    /// The last reference to a handle that may write is gone, some time after its close.
    Release,
    /// A store has failed, and its close has returned the error.
    Retry,
}

impl StoreReason {
    /// Whether somebody says thereby that what he has changed is whole.
    pub fn completes_change(self) -> bool {
        matches!(self, StoreReason::Close | StoreReason::Sync)
    }

    /// Whether what is unsaved is left to somebody's close: there is one who may write, other than the one who leaves,
    /// and a change is under way. It may be half of what he is at, or the cut before it; that is seen nowhere else before
    /// he closes, and is not at the server if his close is refused.
    pub fn defers_to_writer(self, content: &Content) -> bool {
        let leaving = match self {
            StoreReason::Close | StoreReason::Sync | StoreReason::Midway => return false,
            StoreReason::Release => 1,
            StoreReason::Retry => 0,
        };
        content.changing && content.uses.writers() > leaving
    }
}
