//! Andrew's extensions of the volume service; other servers answer "no such call" (-455). Their numbers begin with
//! "AN".

use super::{DataRoute, Destination, Lending, Placement, Privacy, RestoreCookie, SERVICE, TransactionId};
use crate::fs::{DataPathReply, DriveCapability};
use crate::ids::{DataVersion, Fid, UnixSeconds, VolumeId};
use crate::rpc::{Nothing, Streamed};
use crate::xdr::{BoundedVec, ByteString};

/// Most snapshots of one volume in a reply.
pub const SNAPSHOTS_MAX: usize = 4096;

/// Most bytes of one [`FetchPart`].
pub const PART_MAX: usize = 256 * 1024;

/// Of [`DumpFormats`]: `Restore` accepts dumps with holes ([`crate::dump::DumpWriter::sparse_vnode`]).
pub const DUMP_WITH_HOLES: u32 = 1;

/// Of [`DumpFormats`]: the server takes and gives dumps by its data path ([`RestoreByPath`]).
pub const DUMP_BY_PATH: u32 = 2;

/// Of [`DumpFormats`]: `Restore` knows times with nanoseconds ([`crate::dump::DumpWriter::with_fine_times`]).
pub const DUMP_WITH_FINE_TIMES: u32 = 4;

/// A [`StreamGrant`] in wire form, as it precedes the result of a call.
pub type StreamGrantBytes = ByteString<STREAM_GRANT_MAX>;

/// Most bytes of a [`StreamGrant`].
pub const STREAM_GRANT_MAX: usize = 320;

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

xdr_struct! {
    /// Where a stream of a volume is given or taken, and the capability for it, which is good once and for this stream
    /// alone (`docs/protocol/data-path.md`).
    pub struct StreamGrant {
        /// The server's drive, as the call DataPath of the file service tells of it.
        pub drive: DataPathReply,
        /// The capability, and how long the stream waits to be begun.
        pub capability: DriveCapability,
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

    /// Formats that `Restore` accepts beyond the dumps of AFS, and ways by which a dump may come: a sum of
    /// [`DUMP_WITH_HOLES`], [`DUMP_BY_PATH`], [`DUMP_WITH_FINE_TIMES`] and unused bits.
    0x414E_4404 "DumpFormats" DumpFormats {} -> DumpFormatsReply { formats: u32 };

    /// Sets by which ways the bytes of the files of a transaction's volume may travel.
    0x414E_4407 "SetRoute" SetRoute { transaction: TransactionId, route: DataRoute } -> Nothing;

    /// By which ways the bytes of a volume's files may travel.
    0x414E_4406 "GetRoute" GetRoute { volume: VolumeId } -> GetRouteReply { route: DataRoute };

    /// Sets on which drives of its file server the new data of a transaction's volume go.
    0x414E_4409 "SetPlacement" SetPlacement { transaction: TransactionId, placement: Placement } -> Nothing;

    /// On which drives of its file server the data of a volume are, and how many drives there are for new data.
    0x414E_4408 "GetPlacement" GetPlacement { volume: VolumeId } -> GetPlacementReply { placement: Placement, drives: u32 };

    /// Sets whether the directories of a transaction's volume may be leased to clients. Nothing of it is leased during the transaction.
    0x414E_440B "SetLending" SetLending { transaction: TransactionId, lending: Lending } -> Nothing;

    /// Whether the directories of a volume may be leased to clients.
    0x414E_440A "GetLending" GetLending { volume: VolumeId } -> GetLendingReply { lending: Lending };

    /// Sets what a transaction's volume withholds beyond its access lists.
    0x414E_440D "SetPrivacy" SetPrivacy { transaction: TransactionId, privacy: Privacy } -> Nothing;

    /// What a volume withholds beyond its access lists.
    0x414E_440C "GetPrivacy" GetPrivacy { volume: VolumeId } -> GetPrivacyReply { privacy: Privacy };

    /// As `DumpV2`, with the bytes on the data path: the reply is a [`StreamGrantBytes`], and ends when all of the dump was
    /// sent. -455 from a server without a data path for this volume.
    0x414E_4430 "DumpByPath" DumpByPath { transaction: TransactionId, from_date: UnixSeconds, flags: i32 } -> Nothing;

    /// As `Restore`, with the bytes on the data path: the reply is a [`StreamGrantBytes`], and ends when the dump that came
    /// is the volume's content. VOLSERREAD_DUMPERROR if the stream broke, or never began; -455 as for [`DumpByPath`].
    0x414E_4431 "RestoreByPath" RestoreByPath { transaction: TransactionId, flags: i32, cookie: RestoreCookie } -> Nothing;
}

impl Streamed for DumpByPath {
    const HEAD_LEN: usize = 4 + 3 * 4;
    const COUNT_LEN: usize = 0;
}

impl Streamed for RestoreByPath {
    const HEAD_LEN: usize = 4 + 2 * 4 + RestoreCookie::WIRE_LEN;
    const COUNT_LEN: usize = 0;
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::fs::{CapabilityArguments, CapabilitySecret, DriveAddresses};
    use crate::rpc::encode_call;
    use crate::xdr::{Decode, Encode, Fixed};

    #[test]
    fn heads_have_the_length_they_say() {
        let dump = DumpByPath { transaction: TransactionId(1), from_date: UnixSeconds(0), flags: 0 };
        assert_eq!(encode_call(&dump).len(), DumpByPath::HEAD_LEN);
        let cookie = RestoreCookie::default();
        let restore = RestoreByPath { transaction: TransactionId(1), flags: 1, cookie };
        assert_eq!(encode_call(&restore).len(), RestoreByPath::HEAD_LEN);
    }

    #[test]
    fn the_longest_grant_fits() {
        let drive = DataPathReply {
            port: 7000,
            clear: true,
            minimum_size: 65_536,
            drive: Fixed([1; 16]),
            fingerprint: Fixed([2; 32]),
            addresses: DriveAddresses::first_of([Ipv4Addr::LOCALHOST; 20]),
        };
        let arguments = CapabilityArguments::truncated(&[7; 200]);
        let capability = DriveCapability { arguments, secret: CapabilitySecret([9; 32]), seconds: 10 };
        let grant = StreamGrant { drive, capability };
        let bytes = StreamGrantBytes::new(grant.to_bytes()).expect("it fits");
        assert_eq!(StreamGrant::from_bytes(&bytes), Ok(grant));
    }
}
