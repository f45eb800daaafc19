//! Packets that OpenAFS sent: each is decoded, and encoded again byte for byte; and each is fed to endpoints, which
//! must survive them. docs/protocol/rx.md "16. How to check" describes each capture.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Ack, Header, JUMBO_PAYLOAD_LEN, PacketType, Packets, flags};
use afs_rx::{Config, Endpoint, Instant, NullServer};
use bytes::Bytes;
use core::time::Duration;
use support::pcapng::{Datagram, datagrams};

const CAPTURES: [(&str, &[u8]); 13] = [
    ("dump-crypt", include_bytes!("data/dump-crypt.first60.pcapng")),
    ("dump-jumbo-clear", include_bytes!("data/dump-jumbo-clear.first90.pcapng")),
    ("keepalive-ping", include_bytes!("data/keepalive-ping.pcapng")),
    ("restore-jumbo", include_bytes!("data/restore-jumbo.first90.pcapng")),
    ("retrans", include_bytes!("data/retrans.first14.pcapng")),
    ("rx-edge-cases", include_bytes!("data/rx-edge-cases.pcapng")),
    ("rxdebug", include_bytes!("data/rxdebug.pcapng")),
    ("rxgk-master-vlserver", include_bytes!("data/rxgk-master-vlserver.pcapng")),
    ("rxkad-errors", include_bytes!("data/rxkad-errors.pcapng")),
    ("rxkad-levels-tickets", include_bytes!("data/rxkad-levels-tickets.pcapng")),
    ("vos-clear", include_bytes!("data/vos-clear.pcapng")),
    ("vos-crypt", include_bytes!("data/vos-crypt.pcapng")),
    ("vos-noauth", include_bytes!("data/vos-noauth.pcapng")),
];

fn all() -> impl Iterator<Item = (&'static str, Datagram)> {
    CAPTURES
        .iter()
        .flat_map(|(name, file)| datagrams(file).into_iter().map(move |datagram| (*name, datagram)))
}

/// The packets of a datagram, encoded again.
fn written_back(datagram: &Datagram) -> Vec<u8> {
    let mut out = Vec::new();
    let packets = Packets::new(Bytes::copy_from_slice(&datagram.payload)).expect("a whole header");
    for (header, payload) in packets {
        match out.is_empty() {
            true => out.extend(header.to_bytes()),
            false => {
                out.extend([header.flags & !flags::CLIENT_INITIATED, 0]);
                out.extend(header.checksum.to_be_bytes());
            }
        }
        match header.kind {
            PacketType::ACK => write_ack(&payload, &mut out),
            _ => out.extend_from_slice(&payload),
        }
    }
    out
}

/// Encodes an ACK, and the bytes after it that a probe for larger packets carries.
fn write_ack(payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    Ack::decode(payload).expect("a whole ACK").encode(out);
    let written = out.len() - start;
    out.extend_from_slice(&payload[written..]);
}

#[test]
fn every_packet_is_written_back_as_it_was() {
    let mut count = 0;
    for (name, datagram) in all() {
        let mut original = datagram.payload.clone();
        // Bytes without a meaning may hold anything: the flag of a later packet's sender, the padding of acks.
        blank_meaningless(&mut original);
        assert_eq!(written_back(&datagram), original, "{name}: {:02x?}", &datagram.payload[..28]);
        count += 1;
    }
    assert!(count > 400, "{count}");
}

fn blank_meaningless(bytes: &mut [u8]) {
    let header = Header::decode(bytes).expect("a whole header");
    if header.kind == PacketType::ACK {
        let padding = 28 + 18 + usize::from(bytes[28 + 17]);
        bytes[padding..padding + 3].fill(0);
    }
    let mut at = 28 + JUMBO_PAYLOAD_LEN;
    let mut jumbo = header.kind == PacketType::DATA && header.has(flags::JUMBO_PACKET);
    while jumbo {
        jumbo = bytes[at] & flags::JUMBO_PACKET != 0;
        bytes[at] &= !flags::CLIENT_INITIATED;
        bytes[at + 1] = 0;
        at += 4 + JUMBO_PAYLOAD_LEN;
    }
}

#[test]
fn jumbograms_have_the_sequence_the_document_shows() {
    let jumbo = all()
        .filter(|(name, _)| *name == "dump-jumbo-clear")
        .map(|(_, datagram)| datagram.payload)
        .find(|payload| payload.len() == 2856)
        .expect("frame 27");
    let packets: Vec<_> = Packets::new(jumbo.into()).expect("a header").map(|(header, _)| header).collect();
    assert_eq!(packets.len(), 2);
    assert_eq!((packets[0].seq, packets[0].serial, packets[0].checksum), (8, 10, 0x9f63));
    assert_eq!((packets[1].seq, packets[1].serial, packets[1].checksum), (9, 11, 0x8911));
    let five = all().find(|(_, datagram)| datagram.payload.len() == 5688).expect("frame 59").1;
    let packets = Packets::new(five.payload.into()).expect("a header");
    assert_eq!(
        packets.map(|(header, _)| header.checksum).skip(1).collect::<Vec<_>>(),
        [0xbfe4, 0x5a24, 0x5e66]
    );
}

#[test]
fn endpoints_survive_everything_seen() {
    for (name, file) in CAPTURES {
        let mut end = Endpoint::new(Config::default(), [9; 32]);
        for service in [1, 4, 52, 73] {
            end.listen(service, vec![Box::new(NullServer)]).expect("a free service id");
        }
        let (mut now, mut buf, mut sent) = (Instant::ZERO, Vec::new(), 0);
        for datagram in datagrams(file) {
            now += Duration::from_millis(300);
            end.handle_timeout(now);
            end.handle_datagram(now, datagram.from, datagram.payload.into());
            while end.poll_transmit(now, &mut buf).is_some() {
                sent += 1;
            }
        }
        assert!(sent > 0, "{name}: some packet wants an answer, if only an abort");
    }
}
