//! Iterator over the packets of a datagram: docs/protocol/rx.md "5. DATA packets, sizes, jumbograms".

use super::header::{HEADER_LEN, Header, PacketType, flags};
use bytes::Bytes;

/// Payload of every packet of a jumbogram but the last.
pub const JUMBO_PAYLOAD_LEN: usize = 1412;
/// The short header between the packets of a jumbogram.
pub const JUMBO_HEADER_LEN: usize = 4;

/// Iterates over the packets of one datagram: one, or several DATA packets of a jumbogram.
#[derive(Debug)]
pub struct Packets {
    next: Option<Header>,
    rest: Bytes,
    broken: bool,
}

impl Packets {
    /// Starts with the datagram's fixed header; `None` when the datagram is shorter than one.
    pub fn new(mut datagram: Bytes) -> Option<Self> {
        let header = Header::decode(&datagram)?;
        let rest = datagram.split_off(HEADER_LEN);
        Some(Packets { next: Some(header), rest, broken: false })
    }

    /// True when a packet announced another, and too few bytes followed. What was yielded before is valid.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn split_jumbo(&mut self, header: Header) -> Option<(Header, Bytes)> {
        if self.rest.len() < JUMBO_PAYLOAD_LEN + JUMBO_HEADER_LEN {
            self.broken = true;
            return None;
        }
        let payload = self.rest.split_to(JUMBO_PAYLOAD_LEN);
        let short = self.rest.split_to(JUMBO_HEADER_LEN);
        self.next = Some(Header {
            seq: header.seq.wrapping_add(1),
            serial: header.serial.wrapping_add(1),
            flags: short[0],
            user_status: 0,
            checksum: u16::from_be_bytes([short[2], short[3]]),
            ..header
        });
        // All packets of a datagram have one sender, and the rest must not contradict it.
        if let Some(next) = &mut self.next {
            next.flags = next.flags & !flags::CLIENT_INITIATED | header.flags & flags::CLIENT_INITIATED;
        }
        Some((header, payload))
    }
}

impl Iterator for Packets {
    type Item = (Header, Bytes);

    fn next(&mut self) -> Option<(Header, Bytes)> {
        let header = self.next.take()?;
        // The same bit means something else in an ACK, which is never split.
        if header.kind == PacketType::DATA && header.has(flags::JUMBO_PACKET) {
            return self.split_jumbo(header);
        }
        Some((header, std::mem::take(&mut self.rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jumbogram(short_headers: &[[u8; 4]], last: usize) -> Bytes {
        let mut bytes = Header {
            epoch: 0x90f1cc96,
            cid: 0xf5b37f40,
            call: 2,
            seq: 8,
            serial: 10,
            kind: PacketType::DATA,
            flags: 0x28,
            user_status: 7,
            security_index: 2,
            checksum: 0x9f63,
            service: 4,
        }
        .to_bytes()
        .to_vec();
        for (index, short) in short_headers.iter().enumerate() {
            bytes.extend(std::iter::repeat_n(index as u8, JUMBO_PAYLOAD_LEN));
            bytes.extend(short);
        }
        bytes.extend(std::iter::repeat_n(0xee, last));
        bytes.into()
    }

    #[test]
    fn a_jumbogram_is_split() {
        let mut packets =
            Packets::new(jumbogram(&[[0x28, 0, 0xbf, 0xe4], [0x04, 0, 0x5e, 0x66]], 100)).unwrap();
        let (header, payload) = packets.next().unwrap();
        assert_eq!((header.seq, header.serial, header.checksum, payload.len()), (8, 10, 0x9f63, 1412));
        let (header, payload) = packets.next().unwrap();
        assert_eq!((header.seq, header.serial, header.checksum, payload.len()), (9, 11, 0xbfe4, 1412));
        assert_eq!(header.user_status, 0);
        let (header, payload) = packets.next().unwrap();
        assert_eq!((header.seq, header.serial, header.flags, payload.len()), (10, 12, 0x04, 100));
        assert!(packets.next().is_none());
        assert!(!packets.is_broken());
    }

    #[test]
    fn a_truncated_jumbogram_yields_what_is_whole() {
        let mut packets = Packets::new(jumbogram(&[[0x20, 0, 0, 0]], 1415)).unwrap();
        assert!(packets.next().is_some());
        assert!(packets.next().is_none());
        assert!(packets.is_broken());
    }

    #[test]
    fn an_ack_is_never_split() {
        let mut bytes = jumbogram(&[[0x20, 0, 0, 0]], 1412).to_vec();
        bytes[20] = 2;
        let mut packets = Packets::new(bytes.into()).unwrap();
        assert_eq!(packets.next().unwrap().1.len(), 2 * 1412 + 4);
        assert!(packets.next().is_none());
    }
}
