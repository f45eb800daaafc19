//! Andrew's extensions of the volume service; other servers answer "no such call" (-455). Their numbers begin with
//! "AN".

use super::{Destination, RestoreCookie, SERVICE, TransactionId};
use crate::ids::{DataVersion, Fid, UnixSeconds, VolumeId};
use crate::rpc::Nothing;
use crate::xdr::{BoundedVec, ByteString};

/// Most snapshots of one volume in a reply.
pub const SNAPSHOTS_MAX: usize = 4096;

/// Most bytes of one [`FetchPart`].
pub const PART_MAX: usize = 256 * 1024;

/// Of [`DumpFormats`]: `Restore` accepts dumps with holes ([`crate::dump::DumpWriter::sparse_vnode`]).
pub const DUMP_WITH_HOLES: u32 = 1;

/// The snapshots of a volume, newest first.
pub type Snapshots = BoundedVec<Snapshot, SNAPSHOTS_MAX>;

xdr_struct! {
    /// A named snapshot: a volume that keeps an earlier state of another.
    pub struct Snapshot {
        /// Its name: the part after the volume's name and a dot.
        pub name: ByteString<32>,
        /// The volume of the snapshot.
        pub volume: VolumeId,
        /// Creation time.
        pub created: UnixSeconds,
    }
}

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };

    /// Reads bytes of one version of a file, for a server that has lost its own: VNOVNODE if there is no such file,
    /// ESTALE if it has another version.
    0x414E_4402 "FetchPart" FetchPart { fid: Fid, data_version: DataVersion, position: u64, length: u32 }
        -> FetchPartReply { bytes: ByteString<PART_MAX> };

    /// As `Forward`, with the differences from an older state of the volume's group: a volume on the same partition
    /// that does not change. It finds changes that dates do not show, since a restored file keeps its date.
    0x414E_4403 "ForwardDifference" ForwardDifference {
        transaction: TransactionId,
        /// The older state.
        base: VolumeId,
        destination: Destination,
        destination_transaction: TransactionId,
        cookie: RestoreCookie,
    } -> Nothing;

    /// Formats that `Restore` accepts beyond the dumps of AFS: a sum of [`DUMP_WITH_HOLES`] and unused bits.
    0x414E_4404 "DumpFormats" DumpFormats {} -> DumpFormatsReply { formats: u32 };
}
