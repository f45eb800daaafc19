//! Calls of our own, which other servers answer with "no such call" (-455). Their numbers begin with "AN".

use super::{LockKind, LockReply, SERVICE, SetStatus, StatusReply};
use crate::ids::{DataVersion, Fid, VolumeId};
use crate::rpc::Streamed;
use crate::vol::Snapshots;

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server, as the call of the volume service with the same
    /// number. For whoever may look up names in the volume's root.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };

    /// Changes the caller's lock on a file to another kind without giving it up in between. A shared lock becomes an
    /// exclusive one only if nobody else holds one: EAGAIN otherwise, and the shared lock stays. EINVAL where there is no
    /// lock any more. For whoever may take a lock of that kind.
    0x414E_4411 "ChangeLock" ChangeLock { fid: Fid, kind: LockKind } -> LockReply;

    /// Writes data at several places of a file as one change of it, if the file still has the version that was changed.
    /// `ranges` pairs of position and length (two 64-bit words each) follow the arguments, in ascending order and without
    /// overlap, and then the raw bytes of all of them. EAGAIN where the file has another version: nothing is changed.
    0x414E_4410 "StoreRanges" StoreRanges {
        fid: Fid,
        status: SetStatus,
        /// The version of the file that was changed.
        expected: DataVersion,
        /// What the file is cut to before the bytes are written, if it is longer.
        file_length: u64,
        /// What the file is grown to with zeros after that, if it is shorter.
        grown_to: u64,
        /// How many ranges follow, at most [`STORE_RANGES_MAX`].
        ranges: u32,
    } -> StatusReply;
}

/// Most ranges of one [`StoreRanges`].
pub const STORE_RANGES_MAX: usize = 1000;

/// Bytes that one range takes in front of the data of [`StoreRanges`].
pub const STORE_RANGE_LEN: usize = 16;

impl Streamed for StoreRanges {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + SetStatus::WIRE_LEN + 8 + 8 + 8 + 4;
    const COUNT_LEN: usize = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;

    #[test]
    fn the_head_has_the_length_it_says() {
        let (fid, status, expected) = (Fid::default(), SetStatus::default(), DataVersion(1));
        let store = StoreRanges { fid, status, expected, file_length: 0, grown_to: 0, ranges: 0 };
        assert_eq!(encode_call(&store).len(), StoreRanges::HEAD_LEN);
    }
}
