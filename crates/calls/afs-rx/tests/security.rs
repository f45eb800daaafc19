//! Tests of the security framework, with a class made for tests: docs/protocol/rx.md "11. Security framework".

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Header, PacketType, flags, reason};
use afs_rx::{
    CallError, CallId, Config, DropReason, Epoch, Event, NullServer, PacketContext, PacketSecurity, Read,
    code,
};
use bytes::Bytes;
use core::time::Duration;
use support::script::{SERVICE, Script, from_client};
use support::toy::{BROKEN, INDEX, Toy, ToyClient, ToyServer};
use support::{CLIENT, SERVER, Weather, World, address, pattern};

const KEY: u8 = 0x5a;
const DATA: PacketType = PacketType::DATA;

fn secured_server() -> Script {
    let mut script = Script::new(Config::default());
    script.end.listen(SERVICE, vec![Box::new(NullServer), Box::new(ToyServer(KEY))]).unwrap();
    script
}

fn sealed(kind: PacketType, call: u32, seq: u32, serial: u32, flags: u8) -> Header {
    Header { security_index: INDEX, ..from_client(kind, call, seq, serial, flags) }
}

/// A response to a challenge, naming these call numbers.
fn response(challenge: &[u8], key: u8, numbers: [u32; 4]) -> Vec<u8> {
    let answer = challenge.iter().map(|byte| byte ^ key);
    answer.chain(numbers.into_iter().flat_map(u32::to_be_bytes)).collect()
}

#[test]
fn whole_calls_both_ways() {
    let mut world = World::new(1, Weather { loss: 50, ..Weather::FAIR }, &Config::default());
    world.ends[SERVER].listen(SERVICE, vec![Box::new(ToyServer(KEY))]).unwrap();
    let security = Box::new(ToyClient(Toy::new(KEY)));
    let connection = world.ends[CLIENT].connect(world.now, address(SERVER), SERVICE, security);
    let call = world.ends[CLIENT].open_call(world.now, connection).unwrap();
    let request = pattern(1, 0, 20_000);
    world.ends[CLIENT].write(world.now, call, &mut request.clone()).unwrap();
    world.ends[CLIENT].finish_send(world.now, call).unwrap();
    let (mut got, mut answered, mut echo) = (Vec::new(), Vec::new(), None);
    loop {
        world.transmit();
        while let Some(event) = world.ends[SERVER].poll_event() {
            if let Event::IncomingCall { call, connection, .. } = event {
                let identity = world.ends[SERVER].connection(connection).unwrap().identity.unwrap();
                assert_eq!(identity.downcast_ref::<&str>(), Some(&"friend"));
                echo = Some(call);
            }
        }
        if let Some(call) = echo {
            while let Ok(Read::Data(data)) = world.ends[SERVER].read(world.now, call, 999) {
                got.extend_from_slice(&data);
            }
            if got.len() == request.len() {
                world.ends[SERVER].write(world.now, call, &mut Bytes::from(got.clone())).unwrap();
                world.ends[SERVER].finish_send(world.now, call).unwrap();
                echo = None;
                got.push(0);
            }
        }
        while let Ok(Read::Data(data)) = world.ends[CLIENT].read(world.now, call, 999) {
            answered.extend_from_slice(&data);
        }
        if world.ends[CLIENT].poll_event() == Some(Event::Finished(call, Ok(()))) {
            break;
        }
        let next = world.next().expect("the call goes on");
        world.advance(next);
    }
    assert_eq!(answered, request);
}

#[test]
fn calls_wait_for_the_response() {
    let mut script = secured_server();
    script.give(sealed(DATA, 5, 1, 1, flags::LAST_PACKET), b"sealed");
    assert_eq!(script.events(), []);
    let challenge = script.sent_one();
    assert_eq!((challenge.header.kind, challenge.header.call), (PacketType::CHALLENGE, 0));
    assert_eq!(challenge.header.cid & 3, 0);
    let again: Vec<u64> = script
        .wait_ms(6500)
        .iter()
        .filter(|(_, sent)| sent.header.kind == PacketType::CHALLENGE)
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(again, [2000, 4000, 6000]);
    // Only the response to the latest challenge is accepted.
    script.give(sealed(DATA, 5, 1, 2, flags::LAST_PACKET), b"sealed");
    let last = script
        .wait_ms(1600)
        .into_iter()
        .map(|(_, sent)| sent)
        .find(|sent| sent.header.kind == PacketType::CHALLENGE)
        .unwrap();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 3, 0), &response(&last.payload, KEY, [5, 9, 0, 0]));
    let call = script.incoming();
    assert_eq!(script.end.call(call).unwrap().number, 5);
    // The other channels' numbers were adopted: what is older cannot be replayed.
    script.give(Header { cid: sealed(DATA, 0, 0, 0, 0).cid + 1, ..sealed(DATA, 7, 1, 4, 0) }, b"replayed");
    assert_eq!(script.end.stats().drops(DropReason::OldCall), 1);
    assert_eq!(script.events(), []);
}

#[test]
fn a_call_that_waits_for_the_response_has_a_small_window() {
    let mut script = secured_server();
    let data = |seq| sealed(DATA, 5, seq, seq, 0);
    script.give(data(1), b"sealed");
    let challenge = script.sent_one();
    for seq in [2, 32, 33, 2900] {
        script.give(data(seq), b"sealed");
    }
    assert_eq!(script.end.stats().drops(DropReason::ExceedsWindow), 2);
    script.give(sealed(PacketType::RESPONSE, 0, 0, 50, 0), &response(&challenge.payload, KEY, [5, 0, 0, 0]));
    script.incoming();
    script.give(data(3), b"sealed");
    script.give(data(2900), b"sealed");
    assert_eq!(script.end.stats().drops(DropReason::ExceedsWindow), 2);
}

#[test]
fn a_client_that_never_responds_is_given_up() {
    let mut script = secured_server();
    let mut challenges = 0;
    let mut aborted = None;
    for serial in 0..60 {
        let ack = support::script::ack_payload(1, 0, 0, 6, &[]);
        script.give(sealed(DATA, 5, 1, 2 * serial + 1, flags::LAST_PACKET), b"sealed");
        script.give(sealed(PacketType::ACK, 5, 0, 2 * serial + 2, flags::REQUEST_ACK), &ack);
        for (_, sent) in script.wait_ms(2000) {
            challenges += u32::from(sent.header.kind == PacketType::CHALLENGE);
            if sent.header.kind == PacketType::ABORT && aborted.is_none() {
                aborted = Some((sent.abort(), sent.header.call));
            }
        }
    }
    assert_eq!((challenges, aborted), (50, Some((code::CALL_DEAD, 5))));
    assert_eq!(script.events(), [], "the application never saw it");
    assert_eq!(script.end.holdings().calls, 0);
}

#[test]
fn a_wrong_response_fails_the_connection_after_a_second() {
    let mut script = secured_server();
    script.give(sealed(DATA, 1, 1, 1, flags::LAST_PACKET), b"sealed");
    let challenge = script.sent_one();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 2, 0), &response(&challenge.payload, KEY ^ 1, [1; 4]));
    script.sent_none();
    script.give(sealed(DATA, 1, 1, 3, flags::LAST_PACKET), b"sealed");
    script.sent_none();
    let sent = script.wait_ms(1500);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].0, sent[0].1.abort(), sent[0].1.header.call), (1000, BROKEN.code, 0));
}

#[test]
fn responses_nobody_asked_for_are_dropped() {
    let mut script = secured_server();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 1, 0), &[0; 20]);
    assert_eq!(script.end.stats().drops(DropReason::NoSuchConnection), 1);
    script.give(sealed(DATA, 1, 1, 1, flags::LAST_PACKET), b"sealed");
    let challenge = script.sent_one();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 2, 0), &response(&challenge.payload, KEY, [1, 0, 0, 0]));
    script.incoming();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 3, 0), &response(&challenge.payload, KEY ^ 1, [1; 4]));
    assert_eq!(script.end.stats().drops(DropReason::UnwantedResponse), 1);
    script.give(from_client(PacketType::RESPONSE, 0, 0, 3, 0), &[0; 20]);
    assert_eq!(script.end.stats().drops(DropReason::WrongSecurityIndex), 1);
}

/// A request packet sealed with the client's key.
fn genuine(call: u32, seq: u32, serial: u32, flags: u8, data: &[u8]) -> (Header, Vec<u8>) {
    let header = sealed(DATA, call, seq, serial, flags);
    let context = PacketContext {
        epoch: Epoch(header.epoch),
        cid_and_channel: header.cid,
        call,
        seq,
        service: SERVICE,
        security_index: INDEX,
        from_client: true,
        checksum: 0,
    };
    let mut payload = [&[0; 8], data].concat();
    let checksum = ToyClient(Toy::new(KEY)).seal(&context, &mut payload).unwrap();
    (Header { checksum, ..header }, payload)
}

/// A server that has admitted a call whose first packet is forged.
fn with_forged_packet() -> (Script, CallId) {
    let mut script = secured_server();
    script.give(sealed(DATA, 1, 1, 1, flags::LAST_PACKET), b"not sealed at all");
    let challenge = script.sent_one();
    script.give(sealed(PacketType::RESPONSE, 0, 0, 2, 0), &response(&challenge.payload, KEY, [1, 0, 0, 0]));
    let call = script.incoming();
    (script, call)
}

#[test]
fn a_packet_that_does_not_open_is_dropped_and_asked_for_again() {
    let (mut script, call) = with_forged_packet();
    assert_eq!(script.read_all(call), (vec![], Read::WouldBlock));
    assert_eq!(script.end.holdings().buffered_bytes, 0);
    let asked = script.sent_one();
    assert_eq!(
        (asked.ack().reason, asked.ack().first, asked.ack().soft),
        (reason::OUT_OF_SEQUENCE, 1, &[][..])
    );
    for (seq, flag, data) in [(1, 0, &b"reque"[..]), (2, flags::LAST_PACKET, &b"st"[..])] {
        let (header, payload) = genuine(1, seq, 2 + seq, flag, data);
        script.give(header, &payload);
    }
    assert_eq!(script.read_all(call), (b"request".to_vec(), Read::Eof));
    script.wait(Duration::from_secs(8));
    script.reply(call, b"reply");
    assert!(script.events().iter().all(|event| !matches!(event, Event::Finished(..))), "nothing has ended");
}

#[test]
fn a_call_whose_packets_never_open_fails_and_the_connection_does_not() {
    let (mut script, call) = with_forged_packet();
    let mut forged = 1;
    let failed = CallError::LocalAbort(BROKEN.code);
    loop {
        match script.end.read(script.now, call, 99) {
            Ok(read) => assert_eq!(read, Read::WouldBlock),
            Err(error) => break assert_eq!(error, failed),
        }
        forged += 1;
        script.give(sealed(DATA, 1, 1, 2 + forged, flags::LAST_PACKET), b"not sealed at all");
        assert!(forged < 50);
    }
    let abort = script.sent().pop().expect("an abort");
    assert_eq!((abort.abort(), abort.header.call), (BROKEN.code, 1));
    assert_eq!(script.events().last(), Some(&Event::Finished(call, Err(failed))));
    assert_eq!(script.end.holdings().buffered_bytes, 0);
    script.end.release(script.now, call);
    let (header, payload) = genuine(2, 1, 99, flags::LAST_PACKET, b"request");
    script.give(header, &payload);
    let call = script.incoming();
    assert_eq!(script.read_all(call), (b"request".to_vec(), Read::Eof));
}

#[test]
fn a_packet_that_does_not_come_again_ends_its_call_in_bounded_time() {
    let (mut script, call) = with_forged_packet();
    assert_eq!(script.read_all(call).1, Read::WouldBlock);
    for serial in 0..20 {
        script.wait_ms(1000);
        let ping = support::script::ack_payload(1, 0, 0, reason::PING, &[]);
        script.give(sealed(PacketType::ACK, 1, 0, 10 + serial, flags::REQUEST_ACK), &ping);
    }
    assert_eq!(
        script.events(),
        [Event::Finished(call, Err(CallError::Unreachable))],
        "though the client answers"
    );
}

#[test]
fn a_client_answers_every_challenge_while_it_calls_and_none_otherwise() {
    let mut script = Script::new(Config::default());
    let security = Box::new(ToyClient(Toy::new(KEY)));
    let connection = script.end.connect(script.now, script.peer, SERVICE, security);
    let call = script.call(connection, b"request");
    let request = script.sent_one();
    assert_eq!(request.payload.len(), 16, "header, data, padding");
    let challenge = Header {
        call: 0,
        cid: request.header.cid & !3,
        ..script.server_header(&request.header, PacketType::CHALLENGE, 0, 0)
    };
    for _ in 0..2 {
        script.give(challenge, &[1, 2, 3, 4]);
        let sent = script.sent_one();
        assert_eq!((sent.header.kind, sent.header.call), (PacketType::RESPONSE, 0));
        assert_eq!(&sent.payload[..], response(&[1, 2, 3, 4], KEY, [1, 0, 0, 0]));
    }
    script.end.abort(script.now, call, -6);
    script.end.release(script.now, call);
    script.sent();
    script.give(challenge, &[1, 2, 3, 4]);
    script.sent_none();
    assert_eq!(script.end.stats().drops(DropReason::UnwantedChallenge), 1);
    script.call(connection, b"request");
    script.sent();
    script.give(challenge, &[1, 2, 3, 4]);
    assert_eq!(&script.sent_one().payload[4..8], [0, 0, 0, 2], "the number of the active call");
    script.wait(Duration::from_secs(1));
}

#[test]
fn one_source_has_so_many_responses_verified_and_no_other_waits_for_it() {
    let mut config = Config::default();
    config.responses_per_source = 3;
    let mut script = Script::new(config);
    script.end.listen(SERVICE, vec![Box::new(ToyServer(KEY))]).unwrap();
    let host = |index: u32| match index {
        9 => std::net::SocketAddr::from(([198, 51, 100, 1], 7001)),
        // Ports are free to choose.
        _ => std::net::SocketAddr::from(([192, 0, 2, 1], 7000 + index as u16)),
    };
    let begin = |script: &mut Script, index| {
        let header = Header { cid: 0x2000 + 4 * index, ..sealed(DATA, 1, 1, 1, flags::LAST_PACKET) };
        script.give_from(host(index), header, b"sealed");
    };
    let answer = |script: &mut Script, challenges: Vec<support::script::Sent>| {
        for challenge in challenges {
            if challenge.header.kind == PacketType::CHALLENGE {
                let header = Header { cid: challenge.header.cid, ..sealed(PacketType::RESPONSE, 0, 0, 2, 0) };
                script.give_from(challenge.to, header, &response(&challenge.payload, KEY, [1, 0, 0, 0]));
            }
        }
        let calls = script.events().into_iter().filter(|event| matches!(event, Event::IncomingCall { .. }));
        calls.count()
    };
    for index in 0..10 {
        begin(&mut script, index);
    }
    let challenges = script.sent();
    assert_eq!(answer(&mut script, challenges), 3 + 1, "three of the nine, and the other host's");
    assert_eq!(script.end.stats().drops(DropReason::TooManyResponses), 6);
    let challenges = script.wait_ms(2000).into_iter().map(|(_, sent)| sent).collect();
    assert_eq!(answer(&mut script, challenges), 3, "the next challenges bring the next");
}

#[test]
fn full_sealed_packets_leave_in_trains() {
    let mut script = Script::new(Config::default());
    let security = Box::new(ToyClient(Toy::new(KEY)));
    let connection = script.end.connect(script.now, script.peer, SERVICE, security);
    script.call(connection, &[7; 7000]);
    let mut buf = Vec::new();
    let transmit = script.end.poll_transmit(script.now, &mut buf).unwrap();
    // As docs/protocol/rx.md has it for rxkad crypt: 1400 bytes of data in packets of 1436.
    assert_eq!(transmit.segment_size, Some(1436));
    assert_eq!(transmit.len, 5 * 1436);
}

/// The header of a request packet by hand on another channel.
fn on_channel(channel: u32, header: Header) -> Header {
    Header { cid: header.cid + channel, ..header }
}

#[test]
fn waiting_calls_older_than_the_reported_numbers_are_dropped_with_their_data() {
    let mut script = secured_server();
    // Recorded earlier and sent again to a server that has forgotten the connection.
    for channel in 1..4 {
        script.give(on_channel(channel, sealed(DATA, 5, 1, channel, flags::LAST_PACKET)), b"recorded");
    }
    script.give(sealed(DATA, 9, 1, 7, flags::LAST_PACKET), b"the client's own");
    let challenge = script.sent().into_iter().find(|sent| sent.header.kind == PacketType::CHALLENGE).unwrap();
    let answer = response(&challenge.payload, KEY, [9, 6, 6, 6]);
    script.give(sealed(PacketType::RESPONSE, 0, 0, 8, 0), &answer);
    let call = script.incoming();
    assert_eq!(script.end.call(call).map(|call| (call.channel, call.number)), Some((0, 9)));
    assert_eq!(script.end.holdings().calls, 1, "the recorded calls are gone");
    assert_eq!(script.end.stats().drops(DropReason::OldCall), 3);
    script.give(on_channel(1, sealed(DATA, 5, 1, 9, flags::LAST_PACKET)), b"recorded");
    assert_eq!(script.end.stats().drops(DropReason::NoSuchCall), 1);
    assert_eq!(script.events(), []);
    script.give(on_channel(1, sealed(DATA, 6, 1, 10, flags::LAST_PACKET)), b"the next");
    let call = script.incoming();
    assert_eq!(script.end.call(call).unwrap().number, 6);
}
