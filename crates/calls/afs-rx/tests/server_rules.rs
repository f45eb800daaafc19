//! Tests of the server's side of docs/protocol/rx.md, packet by packet.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{PacketType, flags, reason};
use afs_rx::{CallError, Config, DropReason, Event, Instant, Read, ServiceOptions, code};
use core::time::Duration;
use support::script::{CID, SERVICE, Script, ack_payload, from_client};

const DATA: PacketType = PacketType::DATA;
const ACK: PacketType = PacketType::ACK;
const ABORT: PacketType = PacketType::ABORT;
const LAST: u8 = flags::LAST_PACKET;

/// A server that has accepted a call with a one-packet request.
fn with_call(config: Config) -> (Script, afs_rx::CallId) {
    let mut script = Script::server_with(config);
    script.give(from_client(DATA, 1, 1, 1, LAST), b"request");
    let call = script.incoming();
    (script, call)
}

#[test]
fn an_unknown_service_is_refused_without_state() {
    let mut script = Script::server();
    let header = afs_rx::packet::Header { service: 9999, ..from_client(DATA, 1, 1, 1, LAST) };
    script.give(header, b"x");
    let sent = script.sent_one();
    let bytes = [&sent.header.to_bytes()[..], &sent.payload].concat();
    // docs/protocol/rx.md "Raw abort quirk", but with the service id in its proper field.
    let expected = [
        0x81, 0x23, 0x45, 0x67, 0, 0, 0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x27,
        0x0f, 0xff, 0xff, 0xff, 0xfe,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(script.end.holdings().server_connections, 0);
    script.give(afs_rx::packet::Header { kind: ABORT, ..header }, &[0; 4]);
    script.sent_none();
}

/// A killed server that starts again has its socket before it has opened its stores.
#[test]
fn a_server_that_offers_nothing_yet_is_silent() {
    let mut config = Config::default();
    config.silent_until_offering = true;
    let mut script = Script::new(config);
    script.give(from_client(DATA, 1, 1, 1, LAST), b"request");
    script.sent_none();
    script.end.listen(SERVICE, vec![Box::new(afs_rx::NullServer)]).unwrap();
    script.give(from_client(DATA, 1, 1, 2, LAST), b"request");
    script.incoming();
}

/// A server that calls back to a program that is a client only must not wait for it.
#[test]
fn a_client_that_offers_nothing_refuses_at_once() {
    let mut script = Script::new(Config::default());
    script.give(from_client(DATA, 1, 1, 1, LAST), b"request");
    assert_eq!(script.sent_one().abort(), code::INVALID_OPERATION);
}

#[test]
fn an_index_not_offered_is_refused_and_a_changed_one_ignored() {
    let mut script = Script::server();
    script.give(afs_rx::packet::Header { security_index: 2, ..from_client(DATA, 1, 1, 1, LAST) }, b"x");
    assert_eq!(script.sent_one().abort(), code::INVALID_OPERATION);
    script.give(from_client(DATA, 1, 1, 1, LAST), b"x");
    script.incoming();
    script.give(afs_rx::packet::Header { security_index: 2, ..from_client(DATA, 2, 1, 2, LAST) }, b"x");
    script.sent_none();
    assert_eq!(script.end.stats().drops(DropReason::WrongSecurityIndex), 1);
}

#[test]
fn an_unknown_type_aborts_the_call() {
    let (mut script, call) = with_call(Config::default());
    script.give(from_client(PacketType(12), 1, 0, 2, 0), b"");
    assert_eq!(script.sent_one().abort(), code::PROTOCOL_ERROR);
    assert_eq!(script.events().last(), Some(&Event::Finished(call, Err(CallError::LocalAbort(-5)))));
    script.give(from_client(DATA, 1, 2, 3, LAST), b"x");
    let sent = script.sent_one();
    assert_eq!((sent.abort(), sent.header.call), (-5, 1));
    script.give(from_client(ABORT, 1, 0, 4, 0), &[0; 4]);
    script.sent_none();
}

/// OpenAFS ends the connection after one; here no unauthenticated packet does.
#[test]
fn packets_of_call_zero_are_dropped() {
    let (mut script, call) = with_call(Config::default());
    for (serial, kind) in [DATA, ACK, PacketType::ACK_ALL, PacketType::BUSY].into_iter().enumerate() {
        script.give(from_client(kind, 0, 1, 2 + serial as u32, 0), &[0; 18]);
        script.sent_none();
    }
    assert_eq!(script.end.stats().drops(DropReason::CallNumberZero), 4);
    assert_eq!(script.read_all(call), (b"request".to_vec(), Read::Eof));
}

#[test]
fn reserved_types_on_call_zero_are_ignored() {
    let (mut script, _) = with_call(Config::default());
    for kind in 9..=11 {
        script.give(from_client(PacketType(kind), 0, 0, 2, 0), b"anything");
        script.sent_none();
    }
}

#[test]
fn only_data_opens_a_call() {
    let mut script = Script::server();
    for kind in [ACK, ABORT, PacketType::ACK_ALL, PacketType::BUSY] {
        script.give(from_client(kind, 1, 0, 1, flags::REQUEST_ACK), &ack_payload(1, 0, 0, reason::PING, &[]));
        script.sent_none();
    }
    script.give(from_client(DATA, 1, 33, 1, 0), b"left over");
    assert_eq!(script.end.stats().drops(DropReason::NewCallTooFar), 1);
    script.give(from_client(DATA, 1, 0, 1, 0), b"no sequence");
    script.sent_none();
    assert_eq!(script.events(), []);
}

#[test]
fn a_repeated_request_is_acked_not_executed() {
    let (mut script, call) = with_call(Config::default());
    script.give(from_client(DATA, 1, 1, 2, LAST | flags::REQUEST_ACK), b"request");
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().serial), (reason::DUPLICATE, 2));
    assert_eq!(script.read_all(call), (b"request".to_vec(), Read::Eof));
    script.reply(call, b"reply");
    assert_eq!(script.sent_one().brief(), (DATA, 1, 1, LAST));
    script.give(from_client(ACK, 1, 0, 3, 0), &ack_payload(2, 1, 0, reason::DELAY, &[]));
    assert_eq!(script.events(), [Event::Finished(call, Ok(()))]);
    script.end.release(script.now, call);
    // The call is complete and freed, yet its number is remembered.
    script.give(from_client(DATA, 1, 1, 4, LAST), b"request");
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().first, sent.ack().serial), (reason::DUPLICATE, 2, 4));
    assert_eq!(script.events(), []);
}

#[test]
fn old_calls_are_dropped() {
    let mut script = Script::server();
    script.give(from_client(DATA, 7, 1, 1, LAST), b"x");
    script.incoming();
    script.give(from_client(DATA, 6, 1, 2, LAST), b"x");
    script.sent_none();
    assert_eq!(script.end.stats().drops(DropReason::OldCall), 1);
}

#[test]
fn the_next_call_acknowledges_the_reply() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, b"reply");
    script.sent();
    script.events();
    script.give(from_client(DATA, 2, 1, 2, LAST), b"next");
    let events = script.events();
    assert_eq!(events[0], Event::Finished(call, Ok(())));
    assert!(matches!(events[1], Event::IncomingCall { service: SERVICE, .. }));
    assert!(script.wait_ms(90).is_empty(), "nothing of the old call is sent again");
}

#[test]
fn an_empty_reply_is_one_empty_packet() {
    let (mut script, call) = with_call(Config::default());
    assert_eq!(script.end.finish_send(script.now, call), Ok(()));
    let sent = script.sent_one();
    assert_eq!((sent.brief(), sent.payload.len()), ((DATA, 1, 1, LAST), 0));
}

/// docs/protocol/rx.md "16. How to check", out-of-order.
#[test]
fn the_last_packet_first() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 2, 1, LAST), b"st");
    let sent = script.sent_one();
    let ack = sent.ack();
    assert_eq!((ack.first, ack.previous, ack.serial), (1, 2, 1));
    assert_eq!((ack.reason, ack.soft), (reason::OUT_OF_SEQUENCE, &[0u8, 1][..]));
    assert_eq!(sent.header.flags, flags::SLOW_START_OK);
    script.give(from_client(DATA, 1, 1, 2, 0), b"reque");
    let call = script.incoming();
    assert_eq!(script.read_all(call), (b"request".to_vec(), Read::Eof));
}

#[test]
fn negative_acks_are_counted_out_to_the_peer() {
    let mut script = Script::server();
    for seq in 2..=5 {
        script.give(from_client(DATA, 1, seq, seq, 0), b"x");
    }
    let sent = script.sent();
    assert_eq!(sent.len(), 3, "an old peer resends at the third");
    assert!(sent.iter().all(|sent| sent.ack().reason == reason::OUT_OF_SEQUENCE));
    assert_eq!(sent[0].ack().soft, [0, 1, 1, 1, 1]);
}

#[test]
fn a_slow_call_acks_its_request_after_100_ms() {
    let (mut script, call) = with_call(Config::default());
    script.read_all(call);
    let sent = script.wait_ms(150);
    assert_eq!(sent.len(), 1);
    let (at, ack) = &sent[0];
    assert_eq!((*at, ack.ack().reason, ack.ack().first, ack.ack().serial), (100, reason::DELAY, 2, 0));
}

#[test]
fn every_second_packet_is_acked_at_once_when_packets_come_one_by_one() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 1, 1, 0), b"x");
    script.sent_none();
    script.give(from_client(DATA, 1, 2, 2, 0), b"x");
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().serial, sent.ack().soft), (reason::IDLE, 2, &[1u8, 1][..]));
    script.give(from_client(DATA, 1, 3, 3, flags::REQUEST_ACK), b"x");
    assert_eq!(script.sent_one().ack().reason, reason::REQUESTED);
}

#[test]
fn beyond_the_window() {
    let mut config = Config::default();
    config.receive_buffer = 0;
    let mut script = Script::server_with(config);
    for seq in 1..=32 {
        script.give(from_client(DATA, 1, seq, seq, 0), b"x");
    }
    let call = script.incoming();
    script.sent();
    script.give(from_client(DATA, 1, 33, 33, 0), b"x");
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().first), (reason::EXCEEDS_WINDOW, 1));
    assert_eq!(sent.ack().trailer.window, Some(32));
    for _ in 0..3 {
        assert!(matches!(script.end.read(script.now, call, 9), Ok(Read::Data(_))));
    }
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().first), (reason::DELAY, 4), "reading is told");
}

#[test]
fn a_request_has_a_small_window_until_it_begins_in_order() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 32, 1, 0), b"x");
    script.sent();
    script.give(from_client(DATA, 1, 33, 2, 0), b"x");
    let refused = script.sent_one();
    assert_eq!((refused.ack().reason, refused.ack().trailer.window), (reason::EXCEEDS_WINDOW, Some(32)));
    script.give(from_client(DATA, 1, 1, 3, 0), b"x");
    script.sent();
    script.give(from_client(DATA, 1, 2900, 4, 0), b"x");
    let taken = script.sent_one();
    assert_eq!(taken.ack().reason, reason::OUT_OF_SEQUENCE);
    assert!(taken.ack().trailer.window > Some(2900), "{taken:?}");
}

#[test]
fn pings_are_answered_in_every_state() {
    let (mut script, call) = with_call(Config::default());
    let ping = ack_payload(1, 0, 0, reason::PING, &[]);
    for serial in [20, 21] {
        script.give(from_client(ACK, 1, 0, serial, flags::REQUEST_ACK | 0x20), &ping);
        let sent = script.sent_one();
        assert_eq!((sent.ack().reason, sent.ack().serial), (reason::PING_RESPONSE, serial));
        assert!(sent.header.flags & flags::REQUEST_ACK == 0);
        script.read_all(call);
    }
    script.reply(call, b"reply");
    script.sent();
    script.give(from_client(ACK, 1, 0, 22, flags::REQUEST_ACK), &ping);
    assert_eq!(script.sent_one().ack().reason, reason::PING_RESPONSE);
    script.give(from_client(ACK, 1, 0, 23, 0), &ack_payload(2, 1, 0, reason::DELAY, &[]));
    script.give(from_client(ACK, 1, 0, 24, flags::REQUEST_ACK), &ping);
    assert_eq!(script.sent_one().ack().reason, reason::PING_RESPONSE);
    script.give(from_client(ACK, 9, 0, 25, flags::REQUEST_ACK), &ping);
    script.sent_none();
}

#[test]
fn a_channel_at_work_is_busy() {
    let (mut script, call) = with_call(Config::default());
    script.give(from_client(DATA, 5, 1, 2, LAST), b"impatient");
    let sent = script.sent_one();
    assert_eq!((sent.header.kind, sent.header.call, sent.payload.len()), (PacketType::BUSY, 2, 0));
    assert_eq!(script.events().last(), Some(&Event::Finished(call, Err(CallError::Superseded))));
    script.give(from_client(DATA, 5, 1, 3, LAST), b"impatient");
    assert_eq!(script.sent_one().header.kind, PacketType::BUSY);
    script.end.release(script.now, call);
    script.give(from_client(DATA, 5, 1, 4, LAST), b"impatient");
    let call = script.incoming();
    assert_eq!(script.end.call(call).unwrap().number, 5);
}

#[test]
fn an_aborted_call_answers_with_its_abort() {
    let (mut script, call) = with_call(Config::default());
    script.end.abort(script.now, call, 103);
    let sent = script.sent_one();
    assert_eq!((sent.abort(), sent.header.call, sent.header.flags), (103, 1, 0));
    script.end.release(script.now, call);
    script.give(from_client(DATA, 1, 1, 2, LAST), b"request");
    assert_eq!(script.sent_one().abort(), 103);
    script.give(from_client(ABORT, 1, 0, 3, 0), &103i32.to_be_bytes());
    script.sent_none();
}

#[test]
fn a_reply_is_delivered_by_soft_acks_too() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, &[5; 3000]);
    assert_eq!(script.sent().len(), 3);
    script.events();
    script.give(from_client(ACK, 1, 0, 2, 0), &ack_payload(1, 3, 3, reason::IDLE, &[1, 1, 1]));
    assert_eq!(script.events(), [Event::Finished(call, Ok(()))]);
}

#[test]
fn ackall_ends_a_reply() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, b"reply");
    script.sent();
    script.events();
    script.give(from_client(PacketType::ACK_ALL, 1, 0, 2, 0), b"");
    assert_eq!(script.events(), [Event::Finished(call, Ok(()))]);
}

#[test]
fn old_peers_get_sixteen_packets_then_what_they_offer() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, &vec![1; 60_000]);
    let sent = script.sent();
    assert_eq!(sent.len(), 10, "slow start");
    assert!(sent.iter().all(|sent| sent.payload.len() == 1416));
    script.give(from_client(ACK, 1, 0, 2, 0), &ack_payload(11, 10, 10, reason::IDLE, &[]));
    assert_eq!(script.sent().len(), 20);
    script.give(from_client(ACK, 1, 0, 3, 0), &ack_payload(11, 30, 30, reason::IDLE, &[1; 20]));
    assert_eq!(script.sent().len(), 12, "thirty-two from the first that is not acked hard");
}

#[test]
fn a_smaller_packet_size_and_a_window_of_zero_are_obeyed() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, &vec![1; 60_000]);
    script.sent();
    let mut payload = ack_payload(11, 10, 10, reason::IDLE, &[]);
    let end = payload.len();
    payload[end - 12..end - 8].copy_from_slice(&600u32.to_be_bytes());
    payload[end - 8..end - 4].copy_from_slice(&0u32.to_be_bytes());
    script.give(from_client(ACK, 1, 0, 2, 0), &payload);
    let sent = script.sent_one();
    assert_eq!(sent.payload.len(), 600 - 28);
}

#[test]
fn an_ack_may_end_anywhere() {
    let whole = ack_payload(11, 10, 10, reason::IDLE, &[0, 1]);
    for len in 0..whole.len() {
        let (mut script, call) = with_call(Config::default());
        script.reply(call, &vec![1; 60_000]);
        script.sent();
        script.give(from_client(ACK, 1, 0, 2, 0), &whole[..len]);
        assert_eq!(script.sent().is_empty(), len < 18, "{len}");
    }
}

#[test]
fn calls_are_refused_above_the_limit() {
    let mut config = Config::default();
    config.incoming_calls_max = 1;
    let (mut script, call) = with_call(config);
    let other = |serial| afs_rx::packet::Header { cid: CID + 1, ..from_client(DATA, 1, 1, serial, LAST) };
    script.give(other(2), b"x");
    let sent = script.sent_one();
    assert_eq!((sent.abort(), sent.header.cid, sent.header.call), (code::BUSY, CID + 1, 1));
    script.end.abort(script.now, call, 1);
    script.end.release(script.now, call);
    script.sent();
    script.events();
    script.give(other(3), b"x");
    script.incoming();
}

#[test]
fn connections_give_way_above_the_limit() {
    let mut config = Config::default();
    config.server_connections_max = 2;
    let mut script = Script::server_with(config);
    for index in 0..2 {
        let header = afs_rx::packet::Header { cid: 0x2000 + 4 * index, ..from_client(DATA, 1, 1, 1, LAST) };
        script.give(header, b"x");
    }
    script.give(from_client(DATA, 1, 1, 1, LAST), b"x");
    assert_eq!(script.end.stats().drops(DropReason::TooManyConnections), 1);
    let Event::IncomingCall { call, .. } = script.events()[0] else { panic!("a call") };
    script.end.abort(script.now, call, 1);
    script.end.release(script.now, call);
    script.events();
    script.give(from_client(DATA, 1, 1, 1, LAST), b"x");
    assert!(matches!(script.events()[..], [Event::ConnectionGone(_), Event::IncomingCall { .. }, _]));
    assert_eq!(script.end.holdings().server_connections, 2);
}

#[test]
fn peers_without_connections_are_limited() {
    let mut config = Config::default();
    config.server_connections_max = 4;
    config.idle_peers_max = 3;
    let mut script = Script::server_with(config);
    for host in 1..100 {
        let from = std::net::SocketAddr::from(([198, 51, 100, host], 7001));
        let header = afs_rx::packet::Header { cid: 4 * u32::from(host), ..from_client(DATA, 1, 1, 1, LAST) };
        script.give_from(from, header, b"x");
        let call = script.events().iter().find_map(|event| match event {
            Event::IncomingCall { call, .. } => Some(*call),
            _ => None,
        });
        script.end.abort(script.now, call.expect("room was made"), 1);
        script.end.release(script.now, call.expect("room was made"));
    }
    assert_eq!(script.end.holdings().peers, 4 + 3);
    script.sent();
    script.wait(Duration::from_secs(800));
    assert_eq!(script.end.holdings().peers, 0);
}

#[test]
fn memory_for_payloads_is_bounded_but_no_call_starves() {
    let mut config = Config::default();
    config.receive_buffer_total = 1000;
    let mut script = Script::server_with(config);
    for seq in 1..=3 {
        script.give(from_client(DATA, 1, seq, seq, 0), &[1; 900]);
    }
    assert_eq!(script.end.stats().drops(DropReason::BufferFull), 2);
    let header = afs_rx::packet::Header { cid: CID + 1, ..from_client(DATA, 1, 1, 4, 0) };
    script.give(header, &[1; 900]);
    assert_eq!(script.end.holdings().buffered_bytes, 2 * (900 + 96));
    for event in script.events() {
        if let Event::IncomingCall { call, .. } = event {
            script.end.abort(script.now, call, 1);
        }
    }
    assert_eq!(script.end.holdings().buffered_bytes, 0);
}

#[test]
fn a_silent_client_is_given_up_after_pings() {
    let (mut script, call) = with_call(Config::default());
    script.read_all(call);
    script.events();
    let sent = script.wait(Duration::from_secs(20));
    let pings = sent.iter().filter(|(_, sent)| sent.header.flags & flags::REQUEST_ACK != 0);
    let at: Vec<u64> = pings.map(|(at, sent)| (sent.ack().reason == reason::PING, *at).1).collect();
    assert_eq!(at, [2100, 4100, 6100, 8100, 10100, 12100]);
    assert_eq!(sent.last().map(|(at, sent)| (*at, sent.abort())), Some((13_000, code::CALL_DEAD)));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

#[test]
fn a_client_that_pings_but_never_sends_is_idle() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 1, 1, 0), b"beginning");
    let call = script.incoming();
    assert_eq!(script.read_all(call).1, Read::WouldBlock);
    for second in 0..61 {
        script.wait_ms(1000);
        let ping = ack_payload(1, 0, 0, reason::PING, &[]);
        script.give(from_client(ACK, 1, 0, 10 + second, flags::REQUEST_ACK), &ping);
    }
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Timeout))]);
    assert_eq!(script.sent().last().unwrap().abort(), code::CALL_TIMEOUT);
}

#[test]
fn writing_ends_reading() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 1, 1, 0), b"beginning");
    let call = script.incoming();
    script.reply(call, b"enough");
    assert_eq!(script.sent_one().brief(), (DATA, 1, 1, LAST));
    assert_eq!(script.end.read(script.now, call, 9), Err(CallError::InvalidOperation));
    script.give(from_client(DATA, 1, 2, 2, LAST), b"more");
    script.sent_none();
    assert_eq!(script.end.stats().drops(DropReason::RequestAfterReply), 1);
    assert_eq!(script.end.holdings().buffered_bytes, 0);
}

#[test]
fn a_released_call_without_reply_is_aborted_and_with_reply_delivered() {
    let (mut script, call) = with_call(Config::default());
    script.end.release(script.now, call);
    assert_eq!(script.sent_one().abort(), code::USER_ABORT);
    script.events();
    script.give(from_client(DATA, 2, 1, 2, LAST), b"again");
    let call = script.incoming();
    script.reply(call, b"reply");
    script.end.release(script.now, call);
    script.sent();
    script.events();
    let again = script.wait_ms(2000);
    let (_, first) = &again[0];
    assert_eq!(first.brief(), (DATA, 2, 1, LAST | flags::REQUEST_ACK), "sent again without the application");
    script.give(from_client(ACK, 2, 0, 3, 0), &ack_payload(2, 1, 0, reason::DELAY, &[]));
    assert_eq!(script.events(), []);
    assert_eq!(script.end.holdings().calls, 0);
}

#[test]
fn the_first_call_waits_for_a_ping_where_reachability_is_checked() {
    let mut script = Script::new(Config::default());
    let options = ServiceOptions { reachability_check: true };
    script.end.listen_with(SERVICE, vec![Box::new(afs_rx::NullServer)], options).unwrap();
    script.give(from_client(DATA, 1, 1, 1, LAST), &[b'x'; 100]);
    assert_eq!(script.events(), []);
    let ping = script.sent_one();
    assert_eq!((ping.ack().reason, ping.header.flags), (reason::PING, 0x22));
    let again = script.wait_ms(3500);
    let pings = again.iter().filter(|(_, sent)| sent.ack().reason == reason::PING);
    assert_eq!(pings.map(|(at, _)| *at).collect::<Vec<_>>(), [250, 750, 1750]);
    let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
    script.give(from_client(ACK, 1, 0, 2, 0), &answer);
    let call = script.incoming();
    script.reply(call, b"y");
    script.sent();
    script.give(from_client(DATA, 2, 1, 3, LAST), b"x");
    assert!(script.events().len() > 1, "the second call does not wait");
    script.wait(Duration::from_secs(1));
}

#[test]
fn idle_connections_and_peers_are_forgotten() {
    let (mut script, call) = with_call(Config::default());
    script.reply(call, b"y");
    script.end.release(script.now, call);
    script.sent();
    script.give(from_client(ACK, 1, 0, 2, 0), &ack_payload(2, 1, 0, reason::DELAY, &[]));
    script.wait(Duration::from_secs(690));
    assert_eq!(script.end.holdings().server_connections, 1);
    script.wait(Duration::from_secs(20));
    assert_eq!(script.end.holdings().server_connections, 0);
    assert_eq!(script.end.holdings().peers, 1);
    script.wait(Duration::from_secs(61));
    assert_eq!(script.end.holdings().peers, 0);
    assert_eq!(script.end.poll_timeout(), None::<Instant>);
    assert!(script.events().iter().any(|event| matches!(event, Event::ConnectionGone(_))));
}

#[test]
fn a_jumbogram_is_taken_whole_and_acked_once() {
    let mut script = Script::server();
    let mut payload = vec![1; 1412];
    payload.extend([0x20, 0, 0, 0]);
    payload.extend(vec![2; 1412]);
    payload.extend([LAST, 0, 0, 0]);
    payload.extend(vec![3; 100]);
    script.give(from_client(DATA, 1, 1, 1, flags::JUMBO_PACKET), &payload);
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().previous, sent.ack().soft.len()), (reason::IDLE, 3, 3));
    let call = script.incoming();
    let (data, end) = script.read_all(call);
    assert_eq!((data.len(), end), (1412 * 2 + 100, Read::Eof));
}
