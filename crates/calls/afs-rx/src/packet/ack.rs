//! Encoding of ACK payloads: docs/protocol/rx.md "6. ACK packets".

use super::word;

/// Why an ACK was sent.
pub mod reason {
    /// The DATA asked for it.
    pub const REQUESTED: u8 = 1;
    /// The DATA had been received before.
    pub const DUPLICATE: u8 = 2;
    /// The DATA left or filled a gap.
    pub const OUT_OF_SEQUENCE: u8 = 3;
    /// The DATA was beyond the window and was dropped.
    pub const EXCEEDS_WINDOW: u8 = 4;
    /// No room; current peers do not send it.
    pub const NO_SPACE: u8 = 5;
    /// A keepalive or reachability check.
    pub const PING: u8 = 6;
    /// Reply to a ping.
    pub const PING_RESPONSE: u8 = 7;
    /// A timer expired, or the application read. Not usable for measuring round trips.
    pub const DELAY: u8 = 8;
    /// More than one packet was unacknowledged.
    pub const IDLE: u8 = 9;
}

const FIXED_LEN: usize = 18;
const PADDING_LEN: usize = 3;

/// The fields after the soft acks. Ancient peers omit some, from the right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckTrailer {
    /// Largest datagram, without IP and UDP headers, that the sender accepts.
    pub mtu_max: Option<u32>,
    /// Largest packet its interface passes whole.
    pub mtu_interface: Option<u32>,
    /// Its receive window, in packets from `first`.
    pub window: Option<u32>,
    /// Packets it accepts in one jumbogram.
    pub jumbo_packets: Option<u32>,
}

/// An ACK's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// Unused; kept so that a packet can be encoded again unchanged.
    pub buffer_space: u16,
    /// Unused.
    pub skew_max: u16,
    /// Lowest sequence number that is not hard-acked.
    pub first: u32,
    /// Highest DATA sequence number received; only for telling old acks from new ones.
    pub previous: u32,
    /// Serial of the packet that caused the ACK, or 0.
    pub serial: u32,
    /// See [`reason`].
    pub reason: u8,
    /// Entry i is about `first + i`; bit 0 set means received.
    pub soft: &'a [u8],
    /// The fields after the soft acks.
    pub trailer: AckTrailer,
}

impl<'a> Ack<'a> {
    /// Decodes an ACK's payload; `None` when the fixed part is incomplete. A list shorter than announced is used as
    /// far as it goes.
    pub fn decode(payload: &'a [u8]) -> Option<Ack<'a>> {
        let fixed = payload.get(..FIXED_LEN)?;
        let announced = usize::from(fixed[17]);
        let end = (FIXED_LEN + announced).min(payload.len());
        let trailer = FIXED_LEN + announced + PADDING_LEN;
        Some(Ack {
            buffer_space: u16::from_be_bytes([fixed[0], fixed[1]]),
            skew_max: u16::from_be_bytes([fixed[2], fixed[3]]),
            first: word(fixed, 4)?,
            previous: word(fixed, 8)?,
            serial: word(fixed, 12)?,
            reason: fixed[16],
            soft: &payload[FIXED_LEN..end],
            trailer: AckTrailer {
                mtu_max: word(payload, trailer),
                mtu_interface: word(payload, trailer + 4),
                window: word(payload, trailer + 8),
                jumbo_packets: word(payload, trailer + 12),
            },
        })
    }

    /// Appends the payload. At most 255 soft acks are written.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let soft = &self.soft[..self.soft.len().min(255)];
        out.extend_from_slice(&self.buffer_space.to_be_bytes());
        out.extend_from_slice(&self.skew_max.to_be_bytes());
        for field in [self.first, self.previous, self.serial] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(&[self.reason, soft.len() as u8]);
        out.extend_from_slice(soft);
        out.extend_from_slice(&[0; PADDING_LEN]);
        let trailer = &self.trailer;
        for field in [trailer.mtu_max, trailer.mtu_interface, trailer.window, trailer.jumbo_packets] {
            let Some(field) = field else { return };
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAILER: AckTrailer = AckTrailer {
        mtu_max: Some(5692),
        mtu_interface: Some(1444),
        window: Some(32),
        jumbo_packets: Some(4),
    };

    fn example(soft: &[u8]) -> Ack<'_> {
        let (first, previous) = (2, 1);
        Ack { buffer_space: 0, skew_max: 0, first, previous, serial: 0, reason: 8, soft, trailer: TRAILER }
    }

    /// The final ACK of docs/protocol/rx.md "16. How to check", byte for byte.
    #[test]
    fn the_documents_example() {
        let mut bytes = Vec::new();
        example(&[]).encode(&mut bytes);
        let expected = [
            0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x16, 0x3c, 0, 0, 5, 0xa4,
            0, 0, 0, 0x20, 0, 0, 0, 4,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len() + super::super::HEADER_LEN, 65);
        assert_eq!(Ack::decode(&bytes), Some(example(&[])));
    }

    #[test]
    fn every_truncation_is_read_as_far_as_it_goes() {
        let mut bytes = Vec::new();
        example(&[1, 0, 1]).encode(&mut bytes);
        for len in 0..bytes.len() {
            let ack = Ack::decode(&bytes[..len]);
            assert_eq!(ack.is_none(), len < 18, "{len}");
            let Some(ack) = ack else { continue };
            assert_eq!(ack.soft.len(), (len - 18).min(3));
            assert_eq!(ack.trailer.mtu_max.is_some(), len >= 28);
            assert_eq!(ack.trailer.mtu_interface.is_some(), len >= 32);
            assert_eq!(ack.trailer.window.is_some(), len >= 36);
            assert_eq!(ack.trailer.jumbo_packets.is_some(), len >= 40);
        }
    }
}
