//! Andrew's extensions of the file service; other servers answer "no such call" (-455). Their numbers begin with
//! "AN".

use super::{LockKind, LockReply, Name, RenameReply, SERVICE, SetStatus, StatusReply};
use crate::ids::{DataVersion, Fid, VolumeId};
use crate::rpc::Streamed;
use crate::vol::Snapshots;
use crate::xdr::{BoundedVec, Fixed};
use std::net::Ipv4Addr;

/// Addresses of a drive.
pub type DriveAddresses = BoundedVec<Ipv4Addr, DRIVE_ADDRESSES_MAX>;

/// Most addresses of one drive.
pub const DRIVE_ADDRESSES_MAX: usize = 16;

/// In [`Commit`](super::Commit): the file may have any version.
pub const ANY_VERSION: DataVersion = DataVersion(u64::MAX);

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server, as the call of the volume service with the same
    /// number. Requires the lookup right in the volume's root.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };

    /// Changes the caller's lock on a file to another kind without releasing it in between. A shared lock becomes an
    /// exclusive one only if there is no other holder: EAGAIN otherwise, and the shared lock stays. EINVAL without a
    /// lock. Requires the right to take a lock of that kind.
    0x414E_4411 "ChangeLock" ChangeLock { fid: Fid, kind: LockKind } -> LockReply;

    /// Renames an entry if its new name does not exist: EEXIST otherwise, with nothing changed. Everything else as Rename.
    0x414E_4418 "RenameNew" RenameNew { old_dir: Fid, old_name: Name, new_dir: Fid, new_name: Name } -> RenameReply;

    /// Writes data at several positions of a file as one change, if the file still has the expected version. `ranges`
    /// pairs of position and length (two 64-bit words each) follow the arguments, in ascending order and without
    /// overlap, and then the raw bytes of all of them. EAGAIN if the file has another version: nothing is changed.
    0x414E_4410 "StoreRanges" StoreRanges {
        fid: Fid,
        status: SetStatus,
        /// The version that the changes are based on.
        expected: DataVersion,
        /// Length to which a longer file is truncated before the bytes are written.
        file_length: u64,
        /// Length to which a shorter file is extended with zeros after that.
        grown_to: u64,
        /// Number of ranges that follow, at most [`STORE_RANGES_MAX`].
        ranges: u32,
    } -> StatusReply;

    /// Asks for the server's drive: where bytes of files are read and written without calls (`docs/protocol/data-path.md`).
    /// -455 from a server without one.
    0x414E_4420 "DataPath" DataPath {} -> DataPathReply {
        /// TCP port.
        port: u16,
        /// Whether the drive accepts connections without TLS as well.
        clear: bool,
        /// Bytes below which a transfer should be a call.
        minimum_size: u64,
        /// Id of the drive.
        drive: Fixed<16>,
        /// SHA-256 of the drive's public key (the DER form of its SubjectPublicKeyInfo). Another one at each start.
        fingerprint: Fixed<32>,
        /// Addresses, the best one first; none means the address of this call.
        addresses: DriveAddresses,
    };

    /// Asks since which version a file has only grown. Requires the right that FetchData does.
    0x414E_4437 "GetGrowth" GetGrowth { fid: Fid } -> GetGrowthReply {
        /// The version of the file.
        version: DataVersion,
        /// The oldest version all of whose bytes this one is known to begin with; at most `version`.
        since: DataVersion,
    };
}

/// Most ranges of one [`StoreRanges`].
pub const STORE_RANGES_MAX: usize = 1000;

/// Bytes of one range before the data of [`StoreRanges`].
pub const STORE_RANGE_LEN: usize = 16;

impl Streamed for StoreRanges {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + SetStatus::WIRE_LEN + 8 + 8 + 8 + 4;
    const COUNT_LEN: usize = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn the_head_has_the_length_it_says() {
        let (fid, status, expected) = (Fid::default(), SetStatus::default(), DataVersion(1));
        let store = StoreRanges { fid, status, expected, file_length: 0, grown_to: 0, ranges: 0 };
        assert_eq!(encode_call(&store).len(), StoreRanges::HEAD_LEN);
    }

    #[test]
    fn the_reply_of_the_data_path_is_bounded() {
        let reply = DataPathReply {
            port: 7000,
            clear: false,
            minimum_size: 65_536,
            drive: Fixed([1; 16]),
            fingerprint: Fixed([2; 32]),
            addresses: DriveAddresses::first_of([Ipv4Addr::new(10, 0, 0, 1); 20]),
        };
        let mut bytes = reply.to_bytes();
        assert_eq!(bytes.len(), 4 + 4 + 8 + 16 + 32 + 4 + 16 * 4);
        assert_eq!(DataPathReply::from_bytes(&bytes), Ok(reply));
        bytes[67] = 17;
        assert!(matches!(DataPathReply::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }
}
