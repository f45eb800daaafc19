//! What was decided under a lease: a change of a list, or the store of a whole file that no list has room for.

use std::fmt;

use afs_wire::fs::{Change, SetStatus};
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;

use crate::data::Piece;

/// Most bytes of a file that is stored under a lease. A longer one is stored at its close.
pub(crate) const WHOLE_MAX: u64 = 512 << 10;

/// What was decided.
#[derive(Clone, Debug)]
pub(crate) enum Decided {
    /// A change of a list.
    Change(Change),
    /// A store of its own, between two lists.
    Store(WholeStore),
}

impl Decided {
    /// The change of a list.
    pub fn change(&self) -> Option<&Change> {
        match self {
            Decided::Change(change) => Some(change),
            Decided::Store(_) => None,
        }
    }

    /// The objects that it names: the second one of a rename or a link, or the first again.
    pub fn fids(&self) -> [Fid; 2] {
        match self {
            Decided::Change(change) => change.fids(),
            Decided::Store(store) => [store.fid; 2],
        }
    }
}

/// All bytes of a file, in place of those that the server has.
#[derive(Clone)]
pub(crate) struct WholeStore {
    pub fid: Fid,
    pub status: SetStatus,
    /// The version that the file has before.
    pub expected: DataVersion,
    pub data: Bytes,
}

impl WholeStore {
    /// The bytes as what a store sends.
    pub fn piece(&self) -> Piece {
        let length = self.data.len() as u64;
        Piece { range: 0..length, file_length: length }
    }
}

impl fmt::Debug for WholeStore {
    /// Without the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WholeStore");
        shown.field("fid", &self.fid).field("expected", &self.expected).field("bytes", &self.data.len());
        shown.finish_non_exhaustive()
    }
}
