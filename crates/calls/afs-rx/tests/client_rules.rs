//! Tests of the client's side of docs/protocol/rx.md, packet by packet.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Header, PacketType, flags, reason};
use afs_rx::{CallError, CallId, Config, ConnId, DropReason, Event, NullClient, OpenError, Read, code};
use bytes::Bytes;
use core::time::Duration;
use support::script::{SERVICE, Script, Sent, ack_payload};

const DATA: PacketType = PacketType::DATA;
const ACK: PacketType = PacketType::ACK;
const ABORT: PacketType = PacketType::ABORT;
const LAST: u8 = flags::LAST_PACKET;

/// A client that has sent a one-packet request: the call and the request's header.
fn asked(config: Config) -> (Script, ConnId, CallId, Header) {
    let (mut script, connection, call) = Script::client_with(config, b"request");
    let request = script.sent_one();
    (script, connection, call, request.header)
}

#[test]
fn the_request_and_the_numbers_in_it() {
    let (mut script, connection, _, request) = asked(Config::default());
    assert_eq!(request.epoch >> 30, 0b10, "bit 31 set, bit 30 clear");
    assert_eq!(request.cid & 3, 0);
    assert_eq!((request.call, request.seq, request.serial), (1, 1, 1));
    assert_eq!((request.flags, request.service), (flags::CLIENT_INITIATED | LAST, SERVICE));
    script.call(connection, b"second");
    let second = script.sent_one().header;
    assert_eq!((second.cid, second.call, second.seq, second.serial), (request.cid + 1, 1, 1, 2));
    let other = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    script.call(other, b"third");
    let third = script.sent_one().header;
    assert_eq!((third.cid & 3, third.serial), (0, 1));
    assert_ne!(third.cid, request.cid);
}

/// docs/protocol/rx.md "16. How to check", smallest exchange: the final ACK, byte for byte but for the
/// random numbers, the security index and the windows that OpenAFS has.
#[test]
fn the_smallest_exchange() {
    let (mut script, _, call, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, &[0; 24]);
    assert_eq!(script.events(), [Event::Readable(call)]);
    assert_eq!(script.read_all(call), (vec![0; 24], Read::Eof));
    assert_eq!(script.events(), [Event::Finished(call, Ok(()))]);
    let sent = script.wait_ms(1000);
    assert_eq!(sent.len(), 1);
    let (at, ack) = &sent[0];
    assert_eq!((*at, ack.header.flags, ack.header.serial, ack.header.seq), (150, 0x21, 2, 0));
    let expected = [
        0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x05, 0xa4, 0, 0, 5, 0xa4, 0, 0,
        0x0b, 0x58, 0, 0, 0, 1,
    ];
    assert_eq!(&ack.payload[..], expected);
}

#[test]
fn the_next_call_makes_the_final_ack_needless() {
    let (mut script, connection, call, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"x");
    script.read_all(call);
    script.end.release(script.now, call);
    script.call(connection, b"next");
    let next = script.sent_one().header;
    assert_eq!((next.cid, next.call), (request.cid, 2));
    assert!(script.wait_ms(500).iter().all(|(_, sent)| sent.header.kind == DATA));
}

#[test]
fn a_repeated_reply_is_acked_again() {
    let (mut script, _, call, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"x");
    script.read_all(call);
    script.end.release(script.now, call);
    script.give(reply, b"x");
    let sent = script.sent_one();
    assert_eq!((sent.ack().reason, sent.ack().first, sent.ack().serial), (reason::DUPLICATE, 2, 101));
    let mut late = Vec::new();
    late.extend(script.wait_ms(600));
    assert!(late.is_empty(), "that was the final ack");
}

#[test]
fn closing_acks_everything() {
    let (mut script, connection, call, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"x");
    script.read_all(call);
    script.end.close(script.now, connection);
    let sent = script.sent_one();
    assert_eq!((sent.header.kind, sent.header.call, sent.payload.len()), (PacketType::ACK_ALL, 1, 0));
    script.end.release(script.now, call);
    script.give(reply, b"x");
    script.sent_none();
    assert_eq!(script.end.stats().drops(DropReason::NoSuchConnection), 1);
}

/// docs/protocol/rx.md "7. Windows, RTT, ...": 2.600 s, then doubled.
#[test]
fn a_lost_request_is_sent_again() {
    let mut config = Config::default();
    config.initial_rtt = Duration::from_secs(2);
    let (mut script, _, call, _) = asked(config);
    let sent = script.wait(Duration::from_secs(8));
    let data: Vec<_> = sent.iter().filter(|(_, sent)| sent.header.kind == DATA).collect();
    assert_eq!(data.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2600, 2600 + 4800]);
    for (_, again) in &data {
        assert_eq!(again.brief(), (DATA, 1, 1, flags::CLIENT_INITIATED | LAST | flags::REQUEST_ACK));
    }
    let serials: Vec<u32> = sent.iter().map(|(_, sent)| sent.header.serial).collect();
    assert!(serials.windows(2).all(|pair| pair[0] < pair[1]), "{serials:?}");
    let end = script.wait(Duration::from_secs(8));
    assert_eq!(end.last().map(|(_, sent)| sent.abort()), Some(code::CALL_DEAD));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

#[test]
fn the_reply_stops_retransmission() {
    let (mut script, _, call, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, 0);
    script.give(reply, b"x");
    script.read_all(call);
    let sent = script.wait(Duration::from_secs(5));
    assert!(sent.iter().all(|(_, sent)| sent.header.kind == ACK));
}

#[test]
fn an_early_reply_stops_the_request() {
    let mut script = Script::new(Config::default());
    let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    let call = script.end.open_call(script.now, connection).unwrap();
    let mut data = Bytes::from(vec![1; 1 << 20]);
    script.end.write(script.now, call, &mut data).unwrap();
    assert!(!data.is_empty(), "a writer does not run ahead without end");
    let sent = script.sent();
    assert_eq!(sent.len(), 10);
    let reply = script.server_header(&sent[0].header, DATA, 1, LAST);
    script.give(reply, b"no room");
    assert_eq!(script.events(), [Event::Writable(call), Event::Readable(call)]);
    assert_eq!(script.end.write(script.now, call, &mut data.clone()), Ok(data.len()), "into nowhere");
    script.sent_none();
    assert_eq!(script.read_all(call), (b"no room".to_vec(), Read::Eof));
}

#[test]
fn no_writing_after_reading() {
    let (mut script, _, call, request) = asked(Config::default());
    assert_eq!(
        script.end.write(script.now, call, &mut Bytes::from_static(b"x")),
        Err(CallError::InvalidOperation),
        "after the end"
    );
    let reply = script.server_header(&request, DATA, 1, 0);
    script.give(reply, b"x");
    script.read_all(call);
    let late = script.end.write(script.now, call, &mut Bytes::from_static(b"x"));
    assert_eq!(late, Err(CallError::InvalidOperation));
}

#[test]
fn aborts_end_calls_and_are_never_answered() {
    let (mut script, connection, call, request) = asked(Config::default());
    let abort = script.server_header(&request, ABORT, 0, 0);
    script.give(abort, &103i32.to_be_bytes());
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::RemoteAbort(103)))]);
    assert_eq!(script.end.read(script.now, call, 9), Err(CallError::RemoteAbort(103)));
    script.sent_none();
    let call = script.call(connection, b"x");
    let request = script.sent_one().header;
    assert_eq!(request.call, 2);
    let abort = script.server_header(&request, ABORT, 0, 0);
    script.give(abort, &[0; 4]);
    let failed = Event::Finished(call, Err(CallError::RemoteAbort(code::PROTOCOL_ERROR)));
    assert_eq!(script.events(), [failed], "zero is no success");
}

/// docs/protocol/rx.md "Raw abort quirk": the service id lies two bytes too early.
#[test]
fn a_raw_abort_of_openafs_is_understood() {
    let (mut script, _, call, request) = asked(Config::default());
    let mut bytes = Header { kind: ABORT, flags: 0, serial: 0, seq: 0, ..request }.to_bytes().to_vec();
    bytes[24..28].copy_from_slice(&[0x27, 0x0f, 0, 0]);
    bytes.extend((-2i32).to_be_bytes());
    script.end.handle_datagram(script.now, script.peer, bytes.into());
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::RemoteAbort(-2)))]);
}

#[test]
fn a_connection_abort_fails_everything_for_good() {
    let (mut script, connection, first, request) = asked(Config::default());
    let second = script.call(connection, b"second");
    script.sent();
    let abort = Header { call: 0, ..script.server_header(&request, ABORT, 0, 0) };
    script.give(abort, &19270407i32.to_be_bytes());
    let error = CallError::ConnectionAborted(19270407);
    assert_eq!(
        script.events(),
        [
            Event::Finished(first, Err(error)),
            Event::Finished(second, Err(error)),
            Event::ConnectionFailed(connection, 19270407),
        ]
    );
    assert_eq!(script.end.open_call(script.now, connection), Err(OpenError::ConnectionFailed(19270407)));
    script.sent_none();
}

#[test]
fn a_late_packet_of_an_aborted_call_is_answered_with_the_abort() {
    let (mut script, _, call, request) = asked(Config::default());
    script.end.abort(script.now, call, code::USER_ABORT);
    assert_eq!(script.sent_one().abort(), -6);
    script.end.release(script.now, call);
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"x");
    assert_eq!(script.sent_one().abort(), -6);
}

#[test]
fn busy_counts_as_life_and_another_channel_is_preferred() {
    let (mut script, connection, call, request) = asked(Config::default());
    script.wait(Duration::from_secs(11));
    let busy = Header { call: 7, ..script.server_header(&request, PacketType::BUSY, 0, 0) };
    script.give(busy, b"");
    script.sent_none();
    script.wait(Duration::from_secs(11));
    assert_eq!(script.events(), [], "it would be dead otherwise");
    script.end.abort(script.now, call, -6);
    script.end.release(script.now, call);
    script.sent();
    script.call(connection, b"next");
    assert_eq!(script.sent_one().header.cid, request.cid + 1);
}

#[test]
fn four_calls_at_once() {
    let (mut script, connection, first, request) = asked(Config::default());
    for _ in 0..3 {
        script.call(connection, b"x");
    }
    assert_eq!(script.end.open_call(script.now, connection), Err(OpenError::NoChannel));
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"x");
    script.read_all(first);
    assert_eq!(script.events().last(), Some(&Event::Finished(first, Ok(()))));
    assert!(script.end.open_call(script.now, connection).is_ok());
}

#[test]
fn a_freed_channel_is_told_to_who_asked() {
    let (mut script, connection, first, request) = asked(Config::default());
    for _ in 0..3 {
        script.call(connection, b"x");
    }
    assert_eq!(script.end.open_call(script.now, connection), Err(OpenError::NoChannel));
    let abort = script.server_header(&request, ABORT, 0, 0);
    script.give(abort, &[0, 0, 0, 9]);
    let failed = Event::Finished(first, Err(CallError::RemoteAbort(9)));
    assert_eq!(script.events(), [Event::ChannelFree(connection), failed]);
}

#[test]
fn strangers_are_ignored_in_silence() {
    let (mut script, _, _, request) = asked(Config::default());
    let reply = script.server_header(&request, DATA, 1, LAST);
    for header in [
        Header { cid: reply.cid.wrapping_add(4), ..reply },
        Header { epoch: reply.epoch ^ 1, ..reply },
        Header { call: 0, kind: PacketType::CHALLENGE, ..reply },
        Header { call: 2, ..reply },
        Header { security_index: 2, ..reply },
    ] {
        script.give(header, b"x");
        script.sent_none();
        assert_eq!(script.events(), []);
    }
}

#[test]
fn a_living_server_keeps_a_slow_call_alive() {
    let (mut script, _, call, request) = asked(Config::default());
    let consumed = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    script.give(consumed, &ack_payload(2, 1, 0, reason::DELAY, &[]));
    for _ in 0..30 {
        let pings: Vec<_> = script.wait(Duration::from_secs(4)).into_iter().map(|(_, sent)| sent).collect();
        assert!(!pings.is_empty());
        for ping in pings {
            assert_eq!((ping.ack().reason, ping.header.flags), (reason::PING, 0x23));
            let answer = Header { serial: 900, ..consumed };
            script.give(answer, &ack_payload(2, 1, ping.header.serial, reason::PING_RESPONSE, &[]));
        }
    }
    assert_eq!(script.events(), []);
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give(reply, b"at last");
    assert_eq!(script.read_all(call).0, b"at last");
}

#[test]
fn delayed_acks_do_not_teach_the_round_trip() {
    let (mut script, _, _, request) = asked(Config::default());
    let ack = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    script.wait_ms(100);
    script.give(ack, &ack_payload(2, 1, 1, reason::DELAY, &[]));
    assert_eq!(script.end.stats().rtt_samples, 0);
    let (mut script, _, _, request) = asked(Config::default());
    script.wait_ms(100);
    script.give(Header { epoch: request.epoch, ..ack }, &ack_payload(2, 1, 1, reason::REQUESTED, &[]));
    assert_eq!(script.end.stats().rtt_samples, 1);
}

#[test]
fn limits_on_time() {
    let (mut script, _, call, _) = asked(Config::default());
    script.end.set_deadline(call, script.now + Duration::from_secs(3));
    let sent = script.wait(Duration::from_secs(4));
    assert_eq!(sent.last().map(|(at, sent)| (*at, sent.abort())), Some((3000, code::CALL_TIMEOUT)));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Timeout))]);

    let (mut script, connection, call, _) = asked(Config::default());
    script.end.abort(script.now, call, -6);
    script.end.set_dead_time(connection, Duration::from_secs(50));
    let call = script.call(connection, b"x");
    script.sent();
    script.events();
    script.wait(Duration::from_secs(49));
    assert_eq!(script.events(), []);
    script.wait(Duration::from_secs(3));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

#[test]
fn a_call_that_has_sent_nothing_waits_for_its_application() {
    let mut script = Script::new(Config::default());
    let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    let call = script.end.open_call(script.now, connection).unwrap();
    assert!(script.wait(Duration::from_secs(100)).is_empty(), "no pings for what no one knows of");
    assert_eq!(script.events(), []);
    script.end.finish_send(script.now, call).unwrap();
    assert_eq!(script.sent().len(), 1);
    script.wait(Duration::from_secs(12));
    assert_eq!(script.events(), []);
    script.wait(Duration::from_secs(2));
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

fn is_ping(sent: &Sent) -> bool {
    sent.header.kind == ACK && sent.header.has(flags::REQUEST_ACK)
}

#[test]
fn an_unreachable_peer_is_asked_and_given_up_soon() {
    let (mut script, _, call, _) = asked(Config::default());
    script.wait_ms(10);
    script.end.handle_unreachable(script.now, script.peer);
    assert_eq!(script.events(), [], "a hint, and no more");
    assert!(is_ping(&script.sent_one()), "asked at once");
    let sent = script.wait(Duration::from_secs(5));
    assert!(sent.iter().filter(|(_, sent)| is_ping(sent)).count() >= 3);
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::Unreachable))]);
}

#[test]
fn false_icmp_errors_fail_no_call_whose_server_answers() {
    let (mut script, _, _, request) = asked(Config::default());
    let mut pings = 0;
    for _ in 0..30 {
        for _ in 0..100 {
            script.end.handle_unreachable(script.now, script.peer);
        }
        for (_, sent) in script.wait_ms(1000) {
            pings += usize::from(is_ping(&sent));
            let answer = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
            script.give(answer, &ack_payload(2, 1, sent.header.serial, reason::PING_RESPONSE, &[]));
        }
    }
    assert_eq!(script.events(), []);
    assert!(pings < 100, "{pings} pings for 3000 errors");
}

#[test]
fn icmp_errors_concern_the_calls_to_that_address_alone() {
    let (mut script, _, _, _) = asked(Config::default());
    script.wait_ms(10);
    let elsewhere = std::net::SocketAddr::from(([198, 51, 100, 7], 7001));
    let other = script.end.connect(script.now, elsewhere, SERVICE, Box::new(NullClient));
    script.call(other, b"x");
    script.sent();
    script.end.handle_unreachable(script.now, script.peer);
    assert_eq!(script.sent_one().to, script.peer);
    script.end.close(script.now, other);
    script.sent();
    script.wait_ms(2000);
    script.end.handle_unreachable(script.now, elsewhere);
    assert!(script.sent().iter().all(|sent| sent.to == script.peer));
}

#[test]
fn stale_handles_are_harmless() {
    let (mut script, connection, call, _) = asked(Config::default());
    script.end.release(script.now, call);
    script.end.close(script.now, connection);
    script.sent();
    let now = script.now;
    assert_eq!(script.end.read(now, call, 9), Err(CallError::Unknown));
    assert_eq!(script.end.write(now, call, &mut Bytes::from_static(b"x")), Err(CallError::Unknown));
    assert_eq!(script.end.finish_send(now, call), Err(CallError::Unknown));
    assert_eq!(script.end.flush(now, call), Err(CallError::Unknown));
    assert_eq!(script.end.open_call(now, connection), Err(OpenError::Unknown));
    script.end.abort(now, call, 1);
    script.end.release(now, call);
    script.end.close(now, connection);
    assert!(script.end.call(call).is_none() && script.end.connection(connection).is_none());
    script.sent_none();
}

#[test]
fn acks_beyond_what_was_sent_are_refused() {
    let (mut script, _, _, request) = asked(Config::default());
    let ack = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    script.give(ack, &ack_payload(3, 2, 0, reason::DELAY, &[]));
    script.give(ack, &ack_payload(u32::MAX, 2, 0, reason::DELAY, &[1; 255]));
    assert_eq!(script.end.stats().drops(DropReason::AckBeyondSent), 2);
    assert!(!script.wait(Duration::from_secs(3)).is_empty(), "still unacknowledged");
}
