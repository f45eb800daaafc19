//! Andrew's extensions of the file service; other servers answer "no such call" (-455). Their numbers begin with
//! "AN".

use super::{LockKind, LockReply, SERVICE, SetStatus, StatusReply};
use crate::ids::{DataVersion, Fid, VolumeId};
use crate::rpc::Streamed;
use crate::vol::Snapshots;

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server, as the call of the volume service with the same
    /// number. Requires the lookup right in the volume's root.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };

    /// Changes the caller's lock on a file to another kind without releasing it in between. A shared lock becomes an
    /// exclusive one only if there is no other holder: EAGAIN otherwise, and the shared lock stays. EINVAL without a
    /// lock. Requires the right to take a lock of that kind.
    0x414E_4411 "ChangeLock" ChangeLock { fid: Fid, kind: LockKind } -> LockReply;

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

    #[test]
    fn the_head_has_the_length_it_says() {
        let (fid, status, expected) = (Fid::default(), SetStatus::default(), DataVersion(1));
        let store = StoreRanges { fid, status, expected, file_length: 0, grown_to: 0, ranges: 0 };
        assert_eq!(encode_call(&store).len(), StoreRanges::HEAD_LEN);
    }
}
