//! Calls that carry file data: raw bytes between or after the XDR.
//!
//! Source: `docs/protocol/fileserver.md` "4. Data framing on the split calls".

use super::{CallBack, SERVICE, SetStatus, Status, StatusReply, VolSync};
use crate::ids::Fid;
use crate::rpc::Streamed;

calls! {
    service SERVICE;

    /// Reads data. The reply is a count (one signed word), that many raw bytes, then these results.
    130 "FetchData" FetchData { fid: Fid, position: i32, length: i32 }
        -> FetchDataReply { status: Status, callback: CallBack, sync: VolSync };

    /// Writes data: `length` raw bytes follow the arguments.
    133 "StoreData" StoreData {
        fid: Fid,
        status: SetStatus,
        /// Position of the bytes.
        position: u32,
        /// Number of bytes that follow.
        length: u32,
        /// Length to which a longer file is truncated before the bytes are written.
        file_length: u32,
    } -> StatusReply;

    /// Reads data at a 64-bit position. The reply is a count (eight bytes), that many raw bytes, then these results.
    65537 "FetchData64" FetchData64 { fid: Fid, position: i64, length: i64 } -> FetchDataReply;

    /// Writes data at a 64-bit position: `length` raw bytes follow the arguments.
    65538 "StoreData64" StoreData64 {
        fid: Fid,
        status: SetStatus,
        /// Position of the bytes.
        position: u64,
        /// Number of bytes that follow.
        length: u64,
        /// Length to which a longer file is truncated before the bytes are written.
        file_length: u64,
    } -> StatusReply;
}

impl Streamed for FetchData {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + 2 * 4;
    const COUNT_LEN: usize = 4;
}

impl Streamed for FetchData64 {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + 2 * 8;
    const COUNT_LEN: usize = 8;
}

impl Streamed for StoreData {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + SetStatus::WIRE_LEN + 3 * 4;
    const COUNT_LEN: usize = 0;
}

impl Streamed for StoreData64 {
    const HEAD_LEN: usize = 4 + Fid::WIRE_LEN + SetStatus::WIRE_LEN + 3 * 8;
    const COUNT_LEN: usize = 0;
}

impl FetchDataReply {
    /// Bytes of the results that follow the raw bytes.
    pub const WIRE_LEN: usize = Status::WIRE_LEN + CallBack::WIRE_LEN + VolSync::WIRE_LEN;
}

impl StatusReply {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = Status::WIRE_LEN + VolSync::WIRE_LEN;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::Encode;

    #[test]
    fn heads_have_the_length_they_say() {
        let fid = Fid::default();
        let status = SetStatus::default();
        assert_eq!(encode_call(&FetchData { fid, position: 0, length: 0 }).len(), FetchData::HEAD_LEN);
        assert_eq!(encode_call(&FetchData64 { fid, position: 0, length: 0 }).len(), FetchData64::HEAD_LEN);
        let store = StoreData { fid, status, position: 0, length: 0, file_length: 0 };
        assert_eq!(encode_call(&store).len(), StoreData::HEAD_LEN);
        let store = StoreData64 { fid, status, position: 0, length: 0, file_length: 0 };
        assert_eq!(encode_call(&store).len(), StoreData64::HEAD_LEN);
    }

    #[test]
    fn replies_have_the_length_they_say() {
        let (status, sync) = (Status::default(), VolSync::default());
        let fetched = FetchDataReply { status, callback: CallBack::NONE, sync };
        assert_eq!(fetched.to_bytes().len(), FetchDataReply::WIRE_LEN);
        assert_eq!(StatusReply { status, sync }.to_bytes().len(), StatusReply::WIRE_LEN);
    }
}
