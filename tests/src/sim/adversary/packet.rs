//! Rx packets with fields of the adversary's choice: docs/protocol/rx.md "1. Fixed header, 28 bytes".

use afs_rx::packet::{Header, PacketType, flags};
use bytes::Bytes;

/// Fields that identify a connection in its packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wire {
    /// The client's epoch.
    pub epoch: u32,
    /// The connection id without the channel.
    pub cid: u32,
    /// Index of the security class.
    pub security: u8,
    /// The service.
    pub service: u16,
}

impl Wire {
    /// A packet of the connection's client.
    #[must_use]
    pub fn client(self, kind: PacketType, channel: u32, call: u32, seq: u32, last: bool) -> Header {
        let last = if last { flags::LAST_PACKET } else { 0 };
        Header {
            epoch: self.epoch,
            cid: self.cid | channel,
            call,
            seq,
            serial: 1,
            kind,
            flags: flags::CLIENT_INITIATED | last,
            user_status: 0,
            security_index: self.security,
            checksum: 0,
            service: self.service,
        }
    }

    /// A packet of the connection's server.
    #[must_use]
    pub fn server(self, kind: PacketType, channel: u32, call: u32, seq: u32) -> Header {
        let header = self.client(kind, channel, call, seq, true);
        Header { flags: header.flags & !flags::CLIENT_INITIATED, ..header }
    }
}

/// A datagram of one packet.
#[must_use]
pub fn datagram(header: &Header, payload: &[u8]) -> Bytes {
    Bytes::from([&header.to_bytes()[..], payload].concat())
}

/// A request of rxdebug: docs/protocol/rx.md "13. DEBUG and VERSION".
#[must_use]
pub fn question(kind: u32, index: u32) -> Bytes {
    let wire = Wire { epoch: 999, cid: 0, security: 0, service: 0 };
    let header = wire.client(PacketType::DEBUG, 0, 1 + index, 0, true);
    datagram(&header, &[kind.to_be_bytes(), index.to_be_bytes()].concat())
}
