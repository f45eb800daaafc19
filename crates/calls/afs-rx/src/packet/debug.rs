//! Queries of rxdebug and their replies: docs/protocol/rx.md "13. DEBUG and VERSION".

use super::word;

/// Bytes of the reply to "stats".
pub const DEBUG_STATS_LEN: usize = 56;
/// Bytes of one connection's description.
pub const DEBUG_CONNECTION_LEN: usize = 176;
/// Bytes of the reply to "rx statistics".
pub const DEBUG_STATISTICS_LEN: usize = 284;
/// Bytes of one peer's description.
pub const DEBUG_PEER_LEN: usize = 132;
/// Bytes of the reply to VERSION.
const VERSION_LEN: usize = 65;

/// A DEBUG request's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugQuery {
    /// Kind of query.
    pub kind: u32,
    /// Index of the entry, counted from 0.
    pub index: u32,
}

impl DebugQuery {
    /// Decodes a request; `None` when it is too short.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        Some(DebugQuery { kind: word(payload, 0)?, index: word(payload, 4)? })
    }
}

/// Exactly 65 bytes, padded with NUL, the last of which is always NUL.
pub fn version_reply(text: &str) -> [u8; VERSION_LEN] {
    let mut bytes = [0; VERSION_LEN];
    let len = text.len().min(VERSION_LEN - 1);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    bytes
}

/// Fills a C struct of known size at known offsets.
pub(crate) struct StructWriter<const LEN: usize>(pub(crate) [u8; LEN]);

impl<const LEN: usize> StructWriter<LEN> {
    pub(crate) fn new() -> Self {
        StructWriter([0; LEN])
    }
    pub(crate) fn u8(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }
    pub(crate) fn u16(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    pub(crate) fn u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    pub(crate) fn u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
}

/// A connection as rxdebug shows it, without the numbers of the connection and its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DebugConnection {
    pub(crate) host: u32,
    pub(crate) port: u16,
    /// All ones at the end of the list, zero otherwise.
    pub(crate) cid: u32,
    pub(crate) error: i32,
    pub(crate) is_server: bool,
    pub(crate) security_index: u8,
    /// 0 not in use, 1 precall, 2 active, 3 dally, 4 hold.
    pub(crate) states: [u8; 4],
    /// 1 sending, 2 receiving, 3 error, 4 end of stream.
    pub(crate) modes: [u8; 4],
    /// Bit 1 input queued, bit 2 output queued.
    pub(crate) queues: [u8; 4],
    pub(crate) security: crate::security::SecurityReport,
    pub(crate) mtu: u32,
}

impl DebugConnection {
    pub(crate) const END: DebugConnection = DebugConnection {
        host: 0,
        port: 0,
        cid: u32::MAX,
        error: 0,
        is_server: false,
        security_index: 0,
        states: [0; 4],
        modes: [0; 4],
        queues: [0; 4],
        security: crate::security::SecurityReport { kind: 0, level: 0, flags: 0, expires: 0 },
        mtu: 0,
    };

    pub(crate) fn to_bytes(self) -> [u8; DEBUG_CONNECTION_LEN] {
        let mut out = StructWriter::new();
        out.u32(0, self.host);
        out.u32(4, self.cid);
        for index in 0..self.states.len() {
            out.u8(40 + index, self.states[index]);
            out.u8(44 + index, self.modes[index]);
            out.u8(52 + index, self.queues[index]);
        }
        out.u32(28, self.error as u32);
        out.u16(32, self.port);
        out.u8(35, u8::from(self.is_server));
        out.u8(36, self.security_index);
        out.u8(56, self.security.kind);
        out.u8(57, self.security.level);
        out.u32(68, self.security.flags);
        out.u32(72, self.security.expires);
        out.u32(136, self.mtu);
        out.0
    }
}

/// A peer as rxdebug shows it. All ones in `host` marks the end of the list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DebugPeer {
    pub(crate) host: u32,
    pub(crate) port: u16,
    pub(crate) references: u16,
    pub(crate) rtt_ms_times_8: u32,
    pub(crate) deviation_ms_times_4: u32,
    pub(crate) sent: u32,
    pub(crate) resent: u32,
    pub(crate) mtu: u16,
    pub(crate) mtu_max: u16,
    pub(crate) jumbo_packets: u16,
    pub(crate) window: u16,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl DebugPeer {
    pub(crate) fn to_bytes(self) -> [u8; DEBUG_PEER_LEN] {
        let mut out = StructWriter::new();
        out.u32(0, self.host);
        out.u16(4, self.port);
        out.u16(6, self.mtu);
        out.u16(12, self.references);
        out.u32(24, self.rtt_ms_times_8);
        out.u32(28, self.deviation_ms_times_4);
        out.u32(40, self.sent);
        out.u32(44, self.resent);
        out.u16(60, self.mtu);
        out.u16(62, self.mtu_max);
        out.u16(64, self.jumbo_packets);
        out.u16(66, 1);
        out.u16(68, self.mtu);
        out.u16(70, self.window);
        out.u16(72, 1);
        out.u64(76, self.bytes_sent);
        out.u64(84, self.bytes_received);
        out.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_65_bytes_and_ends_in_nul() {
        let reply = version_reply("OpenAFS 1.8.9-1+deb12u1-debian 2024-12-25");
        assert_eq!(reply.len(), 65);
        assert!(reply.starts_with(b"OpenAFS 1.8.9-1+deb12u1-debian 2024-12-25\0"));
        assert_eq!(version_reply(&"x".repeat(99))[64], 0);
    }

    #[test]
    fn ends_of_lists() {
        let end = DebugConnection::END.to_bytes();
        assert_eq!(word(&end, 0), Some(0));
        assert_eq!(word(&end, 4), Some(u32::MAX));
        let end = DebugPeer { host: u32::MAX, ..DebugPeer::default() }.to_bytes();
        assert_eq!(word(&end, 0), Some(u32::MAX));
    }
}
