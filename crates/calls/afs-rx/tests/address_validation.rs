//! Admission and amplification before a client has validated its address or authenticated.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::field_reassign_with_default)]

use crate::support;

use afs_rx::packet::{HEADER_LEN, Header, PacketType, flags, reason};
use afs_rx::{Config, Event, ServiceOptions};
use core::time::Duration;
use std::net::SocketAddr;
use support::script::{CID, SERVICE, Script, Sent, ack_payload, from_client};

const DATA: PacketType = PacketType::DATA;
const ACK: PacketType = PacketType::ACK;
const ABORT: PacketType = PacketType::ABORT;
const LAST: u8 = flags::LAST_PACKET;

/// A server that validates its clients' addresses.
fn checking_server(config: Config) -> Script {
    let mut script = Script::new(config);
    let options = ServiceOptions { reachability_check: true };
    script.end.listen_with(SERVICE, vec![Box::new(afs_rx::NullServer)], options).unwrap();
    script
}

#[test]
fn an_address_that_is_not_proven_gets_at_most_three_times_what_came_from_it() {
    for len in [1, 40, 1400] {
        let mut script = checking_server(Config::default());
        let mut received = 0;
        let mut sent = 0;
        for channel in 0..3 {
            let header =
                Header { cid: CID + channel, ..from_client(DATA, 1, 1, channel, LAST | flags::REQUEST_ACK) };
            script.give(header, &vec![0; len]);
            received += HEADER_LEN + len;
            sent += script.sent().iter().map(|sent| HEADER_LEN + sent.payload.len()).sum::<usize>();
            assert!(sent > 0 && sent <= 3 * received, "{sent} {received}");
        }
        let later = script.wait(Duration::from_secs(800));
        sent += later.iter().map(|(_, sent)| HEADER_LEN + sent.payload.len()).sum::<usize>();
        assert!(sent <= 3 * received, "{sent} {received}");
    }
}

#[test]
fn a_guessed_answer_to_a_ping_proves_nothing() {
    let mut script = checking_server(Config::default());
    script.give(from_client(DATA, 1, 1, 1, LAST), b"x");
    let serial = script.sent_one().header.serial;
    for guess in (0..64).chain([serial - 1, serial + 1]) {
        let answer = ack_payload(1, 0, guess, reason::PING_RESPONSE, &[]);
        script.give(from_client(ACK, 1, 0, 2, 0), &answer);
        assert_eq!(script.events(), [], "{guess}");
    }
    let answer = ack_payload(1, 0, serial, reason::PING_RESPONSE, &[]);
    script.give(from_client(ACK, 1, 0, 2, 0), &answer);
    script.incoming();
}

#[test]
fn the_oldest_call_without_proof_gives_way_to_a_new_one() {
    let mut config = Config::default();
    config.incoming_calls_max = 8;

    let mut script = checking_server(config);
    for number in 0..100u8 {
        let false_address = SocketAddr::from(([198, 51, 100, number], 7001));
        let header = Header { cid: CID + 64 * u32::from(number), ..from_client(DATA, 1, 1, 1, LAST) };
        script.give_from(false_address, header, b"x");
        script.sent();
    }
    assert_eq!(script.end.holdings().calls, 8);
    let header = Header { cid: CID + 4, ..from_client(DATA, 1, 1, 1, LAST) };
    script.give(header, b"x");
    let ping = script.sent_one();
    let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
    script.give(Header { cid: CID + 4, ..from_client(ACK, 1, 0, 2, 0) }, &answer);
    let call = script.incoming();
    script.reply(call, b"y");
}

#[test]
fn the_first_packet_of_a_new_call_finds_room_among_those_without_proof() {
    let mut config = Config::default();
    config.receive_buffer_total = 1 << 20;

    let mut script = checking_server(config);
    for number in 0..=255u8 {
        let false_address = SocketAddr::from(([198, 51, 100, number], 7001));
        for seq in [1, 2] {
            let header = Header { cid: CID + 64 * u32::from(number), ..from_client(DATA, 1, seq, seq, 0) };
            script.give_from(false_address, header, &[1; 1400]);
        }
        script.sent();
    }
    assert!(script.end.holdings().buffered_bytes <= 256 << 10);
    let header = Header { cid: CID + 4, ..from_client(DATA, 1, 1, 1, LAST) };
    script.give(header, &[2; 1400]);
    let ping = script.sent_one();
    let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
    script.give(Header { cid: CID + 4, ..from_client(ACK, 1, 0, 2, 0) }, &answer);
    let call = script.incoming();
    assert_eq!(script.read_all(call).0, [2; 1400]);
}

#[test]
fn replies_that_one_host_does_not_acknowledge_leave_room_for_others() {
    let mut config = Config::default();
    config.incoming_calls_max = 16;
    config.incoming_calls_per_host = 6;

    let mut script = Script::server_with(config);
    let mut busy = 0;
    for port in 1..=10 {
        let from = SocketAddr::from(([192, 0, 2, 9], port));
        let header = Header { cid: CID + 4 * u32::from(port), ..from_client(DATA, 1, 1, 1, LAST) };
        script.give_from(from, header, b"x");
        for event in script.events() {
            if let Event::IncomingCall { call, .. } = event {
                script.reply(call, b"y");
                script.end.release(script.now, call);
            }
        }
        busy += script.sent().iter().filter(|sent| sent.header.kind == ABORT).count();
    }
    assert_eq!((busy, script.end.holdings().calls), (4, 6));
    script.give_from(SocketAddr::from(([192, 0, 2, 10], 1)), from_client(DATA, 1, 1, 1, LAST), b"x");
    script.incoming();
}

#[test]
fn a_quarter_of_the_calls_is_kept_for_proven_identities() {
    let mut config = Config::default();
    config.incoming_calls_max = 8;
    let mut script = Script::server_with(config);
    let mut admitted = 0;
    for host in 1..=20u8 {
        let from = SocketAddr::from(([198, 51, 100, host], 7001));
        let header = Header { cid: CID + 4 * u32::from(host), ..from_client(DATA, 1, 1, 1, LAST) };
        script.give_from(from, header, b"x");
        script.sent();
        admitted +=
            script.events().iter().filter(|event| matches!(event, Event::IncomingCall { .. })).count();
    }
    assert_eq!(admitted, 6);
}

#[test]
fn the_smallest_request_is_answered_with_a_ping_at_once() {
    let mut script = checking_server(Config::default());
    script.give(from_client(DATA, 1, 1, 1, LAST | flags::REQUEST_ACK), b"");
    let ping = script.sent_one();
    assert_eq!((ping.ack().reason, ping.ack().soft.len()), (reason::PING, 1));
}

/// A client that receives callbacks, whose server has a connection to it. A flood of packets with forged sources, or
/// with the server's own address, stays within its bound of connections, evicts the server's connection neither while
/// that is idle nor while it calls, and is removed soon afterwards.
#[test]
fn a_flood_of_new_connections_evicts_no_address_that_has_answered() {
    for in_the_servers_name in [false, true] {
        let config = Config::of_client();
        let (bound, mut script) = (config.server_connections_max, checking_server(config));
        let server = script.peer;
        let answer = |script: &mut Script, number: u32, reply: &[u8]| {
            script.give(from_client(DATA, number, 1, number, LAST), b"break");
            let sent = script.sent();
            if let Some(ping) = sent.iter().find(|sent| sent.ack().reason == reason::PING) {
                let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
                script.give(from_client(ACK, number, 0, 100, 0), &answer);
            }
            let call = script.incoming();
            script.reply(call, reply);
            script.end.release(script.now, call);
            assert!(script.sent().iter().any(|sent| sent.header.kind == DATA), "no reply to call {number}");
            script.give(from_client(ACK, number, 0, 200, 0), &ack_payload(2, 1, 0, reason::DELAY, &[]));
            script.events();
        };
        answer(&mut script, 1, b"done");
        for round in 0..20 * bound as u32 {
            let from = match in_the_servers_name {
                true => server,
                false => SocketAddr::from(([198, 51, (round >> 8) as u8, round as u8], 7001)),
            };
            let header = Header { cid: 0x10_0000 + 4 * round, ..from_client(DATA, 1, 1, 1, LAST) };
            script.give_from(from, header, b"false");
            let calls: Vec<_> = script.events();
            for event in calls {
                if let Event::IncomingCall { call, .. } = event {
                    script.reply(call, b"done");
                    script.end.release(script.now, call);
                }
            }
            script.sent();
            script.wait_ms(6);
            assert!(script.end.holdings().server_connections <= bound);
        }
        assert_eq!(script.end.stats().drops(afs_rx::DropReason::TooManyConnections), 0);
        assert!(script.end.holdings().server_connections > bound / 2, "a flood");
        // It is the same connection: a completed call is not executed again.
        script.give(from_client(DATA, 1, 1, 9, LAST), b"break");
        assert!(!script.events().iter().any(|event| matches!(event, Event::IncomingCall { .. })));
        script.sent();
        answer(&mut script, 2, b"done");
        script.wait(Duration::from_secs(60));
        assert_eq!(script.end.holdings().server_connections, 1);
        script.wait(Duration::from_secs(700));
        assert_eq!(script.end.holdings().server_connections, 0);
    }
}

/// Sends the reply to a ping, on the connection and call it was about.
fn answer_ping(script: &mut Script, ping: &Sent) {
    let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
    let header = from_client(ACK, ping.header.call, 0, 100, 0);
    script.give(Header { cid: ping.header.cid, ..header }, &answer);
}

#[test]
fn a_ping_whose_reply_is_lost_is_repeated_before_the_caller_gives_up() {
    let mut script = checking_server(Config::default());
    script.give(from_client(DATA, 1, 1, 1, LAST), &[1; 400]);
    let mut pings = vec![script.sent_one()];
    let later = script.wait(Duration::from_millis(1900));
    pings.extend(later.into_iter().map(|(_, sent)| sent).filter(|sent| sent.ack().reason == reason::PING));
    assert_eq!(pings.len(), 4, "at 0, 0.25, 0.75 and 1.75 s");
    answer_ping(&mut script, &pings[3]);
    script.incoming();
}

#[test]
fn the_ping_is_repeated_on_the_newest_connection_and_call_of_the_address() {
    let mut script = checking_server(Config::default());
    // Two callers that gave up, one of them on the same connection; then the one that still waits.
    script.give(from_client(DATA, 1, 1, 1, LAST), &[1; 400]);
    script.wait_ms(2000);
    script.give(Header { cid: CID + 4, ..from_client(DATA, 1, 1, 1, LAST) }, &[1; 400]);
    script.wait_ms(1000);
    script.give(Header { cid: CID + 5, ..from_client(DATA, 1, 1, 2, LAST) }, &[1; 400]);
    let first = script.sent();
    assert!(first.iter().any(|sent| sent.header.cid == CID + 5), "the new call is pinged at once");
    let later: Vec<_> = script.wait(Duration::from_millis(1900)).into_iter().map(|(_, sent)| sent).collect();
    let pings: Vec<_> = later.iter().filter(|sent| sent.ack().reason == reason::PING).collect();
    let (pings, earlier): (Vec<_>, Vec<_>) = pings.into_iter().partition(|ping| ping.header.cid == CID + 5);
    // The other calls have at most their keepalive.
    assert!(pings.len() == 3 && earlier.len() <= 2, "{pings:?} {earlier:?}");
    answer_ping(&mut script, pings[2]);
    let admitted = script.events().iter().filter(|event| matches!(event, Event::IncomingCall { .. })).count();
    assert_eq!(admitted, 2, "all calls of the connection");
}
