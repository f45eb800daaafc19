//! Calls of our own, which other servers answer with "no such call" (-455). Their numbers begin with "AN".

use super::SERVICE;
use crate::ids::{UnixSeconds, VolumeId};
use crate::xdr::{BoundedVec, ByteString};

/// Most snapshots of one volume that are told.
pub const SNAPSHOTS_MAX: usize = 4096;

/// The snapshots of a volume, newest first.
pub type Snapshots = BoundedVec<Snapshot, SNAPSHOTS_MAX>;

xdr_struct! {
    /// A named snapshot: a volume that keeps what another was.
    pub struct Snapshot {
        /// Its name: what comes after the volume's name and a dot in its own.
        pub name: ByteString<32>,
        /// The volume that keeps it.
        pub volume: VolumeId,
        /// When it was made.
        pub created: UnixSeconds,
    }
}

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };
}
