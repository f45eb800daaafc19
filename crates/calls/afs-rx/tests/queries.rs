//! Queries of rxdebug and the layout of the replies: docs/protocol/rx.md "13. DEBUG and VERSION".

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{HEADER_LEN, Header, PacketType, flags};
use afs_rx::{Config, DropReason, NullClient};
use std::net::SocketAddr;
use support::script::{CID, EPOCH, SERVICE, Script, Sent, from_client};

fn question(kind: PacketType, call: u32) -> Header {
    Header {
        epoch: 999,
        cid: 0,
        call,
        flags: flags::CLIENT_INITIATED | flags::LAST_PACKET,
        service: 0,
        ..from_client(kind, 0, 0, 0, 0)
    }
}

fn ask(script: &mut Script, kind: u32, index: u32) -> Vec<u8> {
    let payload = [kind.to_be_bytes(), index.to_be_bytes()].concat();
    let sent = insist(script, question(PacketType::DEBUG, 77), &payload);
    assert_eq!(
        (sent.header.kind, sent.header.call, sent.header.flags),
        (PacketType::DEBUG, 77, flags::LAST_PACKET)
    );
    sent.payload.to_vec()
}

/// Queries as rxdebug does, again when no reply comes: an unvalidated address gets no more than three times what it
/// has sent.
fn insist(script: &mut Script, question: Header, payload: &[u8]) -> Sent {
    let asked = (0..3).find_map(|_| {
        script.give(question, payload);
        script.sent().pop()
    });
    asked.expect("an answer within three tries")
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn the_version_is_65_bytes() {
    let mut config = Config::default();
    config.version = "Andrew test".to_owned();
    let mut script = Script::server_with(config);
    let sent = insist(&mut script, question(PacketType::VERSION, 5), &[0]);
    assert_eq!((sent.header.call, sent.header.flags, sent.payload.len()), (5, flags::LAST_PACKET, 65));
    assert!(sent.payload.starts_with(b"Andrew test\0"));
}

#[test]
fn answers_and_keepalives_are_never_answered() {
    let mut script = Script::server();
    for kind in [PacketType::VERSION, PacketType::DEBUG] {
        let header = Header { flags: flags::LAST_PACKET, ..question(kind, 0) };
        script.give(header, &[0; 8]);
        script.sent_none();
    }
    assert_eq!(script.end.stats().drops(DropReason::UnansweredQuery), 2);
}

#[test]
fn connections_and_peers() {
    let mut script = Script::server();
    script.give(from_client(PacketType::DATA, 3, 1, 1, flags::LAST_PACKET), b"x");
    script.incoming();
    for kind in [2, 3] {
        let found = ask(&mut script, kind, 0);
        assert_eq!(found.len(), 176);
        assert_eq!((word(&found, 0), u16::from_be_bytes([found[32], found[33]])), (0xc000_0209, 7001));
        assert_eq!((found[35], found[36], found[40], found[44]), (1, 0, 2, 4), "server, null, active, eof");
        assert_eq!((found[56], word(&found, 136)), (1, 1444));
        let end = ask(&mut script, kind, 1);
        assert_eq!((end.len(), word(&end, 0), word(&end, 4)), (176, 0, u32::MAX));
    }
    let peer = ask(&mut script, 5, 0);
    assert_eq!((peer.len(), word(&peer, 0), word(&peer, 4) >> 16), (132, 0xc000_0209, 7001));
    assert_eq!(word(&ask(&mut script, 5, 1), 0), u32::MAX);
}

#[test]
fn strangers_learn_no_numbers_that_a_packet_needs() {
    let mut script = Script::server();
    let own = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    script.call(own, b"x");
    script.sent();
    for kind in [2, 3] {
        assert_eq!(word(&ask(&mut script, kind, 0), 4), u32::MAX, "connections opened here are not listed");
    }
    script.give(from_client(PacketType::DATA, 0x0345_6789, 1, 0x0bcd_ef01, flags::LAST_PACKET), b"x");
    script.incoming();
    for kind in [2, 3, 4, 5] {
        let found = ask(&mut script, kind, 0);
        for number in [EPOCH, CID, 0x0345_6789, 0x0bcd_ef01] {
            assert!(
                !found.windows(4).any(|bytes| bytes == number.to_be_bytes()),
                "{number:08x} in {found:?}"
            );
        }
    }
}

#[test]
fn statistics_and_unknown_questions() {
    let mut script = Script::server();
    script.give(from_client(PacketType::DATA, 3, 1, 1, flags::LAST_PACKET), b"x");
    let stats = ask(&mut script, 1, 0);
    assert_eq!((stats.len(), word(&stats, 8), stats[14]), (56, 1, b'S'));
    let statistics = ask(&mut script, 4, 0);
    assert_eq!((statistics.len(), word(&statistics, 4 * 11), word(&statistics, 4 * 56)), (284, 1, 1));
    assert_eq!(ask(&mut script, 6, 0), [255, 255, 255, 248, 255, 255, 255, 248]);
    script.give(question(PacketType::DEBUG, 0), &[0; 7]);
    script.sent_none();
}

#[test]
fn a_flood_of_questions_is_bounded() {
    let mut config = Config::default();
    config.control_packets_max = 16;
    let mut script = Script::server_with(config);
    script.peer = SocketAddr::from(([127, 0, 0, 1], 7001));
    for _ in 0..100 {
        script.give(question(PacketType::VERSION, 1), &[0]);
    }
    assert_eq!(script.sent().len(), 16);
    assert_eq!(script.end.stats().drops(DropReason::ControlQueueFull), 84);
}

#[test]
fn answers_are_limited_in_each_second() {
    let mut config = Config::default();
    config.queries_per_second = 3;
    let mut script = Script::server_with(config);
    script.peer = SocketAddr::from(([127, 0, 0, 1], 7001));
    for second in 1..=2 {
        for _ in 0..5 {
            script.give(question(PacketType::VERSION, 1), &[0]);
        }
        assert_eq!(script.sent().len(), 3);
        assert_eq!(script.end.stats().drops(DropReason::TooManyQueries), 2 * second);
        script.wait_ms(1000);
    }
}

fn bytes(sent: &[Sent]) -> usize {
    sent.iter().map(|sent| HEADER_LEN + sent.payload.len()).sum()
}

#[test]
fn an_unproven_address_is_sent_at_most_three_times_what_it_sent() {
    let mut script = Script::server();
    let (mut asked, mut told) = (0, 0);
    for round in 0..200u32 {
        let (kind, payload) = match round % 7 {
            0 => (PacketType::VERSION, vec![0]),
            kind => (PacketType::DEBUG, [kind.to_be_bytes(), 0u32.to_be_bytes()].concat()),
        };
        script.give(question(kind, round), &payload);
        // An unknown service, which is refused without a connection.
        script.give(Header { service: 9999, ..from_client(PacketType::DATA, 1, 1, 1, 0) }, b"");
        asked += 2 * HEADER_LEN + payload.len();
        told += bytes(&script.sent());
        assert!(told <= 3 * asked, "{told} for {asked}");
    }
    assert!(told > 2 * asked, "questions are answered: {told} for {asked}");
}

/// There are more addresses than entries in the table of credits.
#[test]
fn no_address_is_told_what_another_has_earned() {
    let mut script = Script::server();
    let payload = [0, 0, 0, 4, 0, 0, 0, 0];
    for host in 1..5000_u32 {
        let from = SocketAddr::from((std::net::Ipv4Addr::from_bits(0x6300_0000 | host), 7001));
        script.give_from(from, question(PacketType::DEBUG, 1), &payload);
        let told = bytes(&script.sent());
        assert!(told <= 3 * (HEADER_LEN + payload.len()), "{from} is told {told}");
    }
}

#[test]
fn a_host_with_a_proven_address_and_the_machine_itself_are_told_at_once() {
    let mut script = Script::server();
    let own = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    script.call(own, b"x");
    let request = script.sent_one().header;
    script.give(script.server_header(&request, PacketType::DATA, 1, flags::LAST_PACKET), b"y");
    let other_port = SocketAddr::new(script.peer.ip(), 40_000);
    let itself = SocketAddr::from(([127, 0, 0, 1], 40_000));
    script.sent();
    for from in [other_port, itself] {
        for _ in 0..10 {
            script.give_from(from, question(PacketType::DEBUG, 1), &[0, 0, 0, 4, 0, 0, 0, 0]);
            assert_eq!(script.sent_one().payload.len(), 284, "{from}");
        }
    }
}
