//! Encoding of the fixed header: docs/protocol/rx.md "1. Fixed header, 28 bytes".

use super::word;
use core::fmt;

/// Bytes before every payload.
pub const HEADER_LEN: usize = 28;

/// The type byte: docs/protocol/rx.md "2. Types and flags".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Stream bytes.
    pub const DATA: Self = PacketType(1);
    /// Acknowledgement.
    pub const ACK: Self = PacketType(2);
    /// The channel is still occupied.
    pub const BUSY: Self = PacketType(3);
    /// Failure of a call, or of the connection when the call number is zero.
    pub const ABORT: Self = PacketType(4);
    /// Everything was received.
    pub const ACK_ALL: Self = PacketType(5);
    /// Asks the client to authenticate.
    pub const CHALLENGE: Self = PacketType(6);
    /// The client's proof.
    pub const RESPONSE: Self = PacketType(7);
    /// A query or reply of rxdebug.
    pub const DEBUG: Self = PacketType(8);
    /// A query or reply about the program's version.
    pub const VERSION: Self = PacketType(13);

    /// Index into per-type counters, for the thirteen types that exist.
    pub(crate) fn counter(self) -> Option<usize> {
        (1..=13).contains(&self.0).then(|| usize::from(self.0) - 1)
    }

    /// Types 9 to 11 are reserved and unused.
    pub(crate) fn is_reserved(self) -> bool {
        (9..=11).contains(&self.0)
    }
}

impl fmt::Debug for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            1 => "DATA",
            2 => "ACK",
            3 => "BUSY",
            4 => "ABORT",
            5 => "ACKALL",
            6 => "CHALLENGE",
            7 => "RESPONSE",
            8 => "DEBUG",
            13 => "VERSION",
            other => return write!(f, "type {other}"),
        };
        f.write_str(name)
    }
}

/// Bits of the flags byte.
pub mod flags {
    /// The sender is the client of the connection.
    pub const CLIENT_INITIATED: u8 = 0x01;
    /// The sender wants an ACK now; in an ACK: this is a ping.
    pub const REQUEST_ACK: u8 = 0x02;
    /// The last packet of this direction of the call.
    pub const LAST_PACKET: u8 = 0x04;
    /// More packets follow at once. A hint.
    pub const MORE_PACKETS: u8 = 0x08;
    /// DATA: another packet follows in this datagram.
    pub const JUMBO_PACKET: u8 = 0x20;
    /// ACK: the sender does slow start. The same bit as `JUMBO_PACKET`.
    pub const SLOW_START_OK: u8 = 0x20;
}

/// The fields of a header, as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The client process's number.
    pub epoch: u32,
    /// Connection id, with the channel in the low two bits.
    pub cid: u32,
    /// Call number; 0 when the packet concerns the whole connection.
    pub call: u32,
    /// Sequence number of DATA; 0 otherwise.
    pub seq: u32,
    /// Transmission number.
    pub serial: u32,
    /// Type of the packet.
    pub kind: PacketType,
    /// See [`flags`].
    pub flags: u8,
    /// Out-of-band byte of the application.
    pub user_status: u8,
    /// Security class.
    pub security_index: u8,
    /// The security class's field; meaningless except in DATA and RESPONSE.
    pub checksum: u16,
    /// Service addressed.
    pub service: u16,
}

impl Header {
    /// Decodes the header of a packet; `None` when it is too short.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let tail = bytes.get(20..HEADER_LEN)?;
        Some(Header {
            epoch: word(bytes, 0)?,
            cid: word(bytes, 4)?,
            call: word(bytes, 8)?,
            seq: word(bytes, 12)?,
            serial: word(bytes, 16)?,
            kind: PacketType(tail[0]),
            flags: tail[1],
            user_status: tail[2],
            security_index: tail[3],
            checksum: u16::from_be_bytes([tail[4], tail[5]]),
            service: u16::from_be_bytes([tail[6], tail[7]]),
        })
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        for (at, value) in [self.epoch, self.cid, self.call, self.seq, self.serial].into_iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_be_bytes());
        }
        bytes[20] = self.kind.0;
        bytes[21] = self.flags;
        bytes[22] = self.user_status;
        bytes[23] = self.security_index;
        bytes[24..26].copy_from_slice(&self.checksum.to_be_bytes());
        bytes[26..28].copy_from_slice(&self.service.to_be_bytes());
        bytes
    }

    /// The channel the packet belongs to.
    pub fn channel(&self) -> usize {
        (self.cid & crate::ids::CHANNEL_MASK) as usize
    }

    /// True when the sender is the client of the connection.
    pub fn from_client(&self) -> bool {
        self.has(flags::CLIENT_INITIATED)
    }

    /// True when all bits of `flag` are set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_document_says() {
        let bytes: Vec<u8> = (0..28).collect();
        let header = Header::decode(&bytes).unwrap();
        assert_eq!(header.epoch, 0x00010203);
        assert_eq!(header.cid, 0x04050607);
        assert_eq!(header.channel(), 3);
        assert_eq!(header.call, 0x08090a0b);
        assert_eq!(header.seq, 0x0c0d0e0f);
        assert_eq!(header.serial, 0x10111213);
        assert_eq!(
            (header.kind.0, header.flags, header.user_status, header.security_index),
            (20, 21, 22, 23)
        );
        assert_eq!((header.checksum, header.service), (0x1819, 0x1a1b));
        assert_eq!(header.to_bytes().as_slice(), bytes);
        assert_eq!(Header::decode(&bytes[..27]), None);
    }
}
