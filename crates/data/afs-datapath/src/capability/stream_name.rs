//! Name of a stream of a volume: the volume, the transaction that holds it, the number of the stream.

use std::fmt;

use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::vol::TransactionId;

/// A stream of a volume: the bytes of one dump, on the way out of a transaction or into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName {
    /// The volume.
    pub volume: VolumeId,
    /// The transaction by which its server holds it.
    pub transaction: TransactionId,
    /// Distinguishes the streams of one process of the server.
    pub number: u32,
}

impl StreamName {
    /// The name in the place of a file's: volume, transaction, number.
    #[must_use]
    pub const fn fid(self) -> Fid {
        let (vnode, unique) = (VnodeId(self.transaction.0.cast_unsigned()), Uniquifier(self.number));
        Fid { volume: self.volume, vnode, unique }
    }

    /// The stream that has this name.
    #[must_use]
    pub const fn of(fid: Fid) -> Self {
        let transaction = TransactionId(fid.vnode.0.cast_signed());
        Self { volume: fid.volume, transaction, number: fid.unique.0 }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of transaction {} on volume {}", self.number, self.transaction, self.volume)
    }
}
