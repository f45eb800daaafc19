//! Encoding and decoding of packets: docs/protocol/rx.md sections 1, 2, 5, 6 and 13. Independent of connections.

mod ack;
mod debug;
mod header;
mod jumbo;

pub use ack::{Ack, AckTrailer, reason};
pub use debug::{
    DEBUG_CONNECTION_LEN, DEBUG_PEER_LEN, DEBUG_STATISTICS_LEN, DEBUG_STATS_LEN, DebugQuery, version_reply,
};
pub(crate) use debug::{DebugConnection, DebugPeer, StructWriter};
pub use header::{HEADER_LEN, Header, PacketType, flags};
pub use jumbo::{JUMBO_HEADER_LEN, JUMBO_PAYLOAD_LEN, Packets};

/// Reads a big-endian word at `offset`; `None` beyond the end.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}
