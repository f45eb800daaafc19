//! Which addresses a connection accepts packets from, and what migrates or ends it: docs/protocol/rx.md "3.
//! Connections, ids, epochs".

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Header, PacketType, flags, reason};
use afs_rx::{
    CallError, CallId, Config, Event, NullClient, PacketContext, PacketSecurity, Read, ServerSecurity,
};
use afs_rx::{Cid, Epoch};
use std::net::SocketAddr;
use support::script::{CID, EPOCH, SERVICE, Script, ack_payload, from_client, peer};
use support::toy::{INDEX, Toy, ToyClearServer, ToyClient, ToyServer, ToyServerOfTwo};

const KEY: u8 = 0x5a;
const DATA: PacketType = PacketType::DATA;
const ACK: PacketType = PacketType::ACK;
const ABORT: PacketType = PacketType::ABORT;
const LAST: u8 = flags::LAST_PACKET;

fn elsewhere() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], 7777))
}

fn toy(header: Header) -> Header {
    Header { security_index: INDEX, ..header }
}

/// A request packet sealed with the client's key.
fn sealed(call: u32, seq: u32, flags: u8, data: &[u8]) -> (Header, Vec<u8>) {
    sealed_by(KEY, call, seq, flags, data)
}

fn sealed_by(key: u8, call: u32, seq: u32, flags: u8, data: &[u8]) -> (Header, Vec<u8>) {
    let header = toy(from_client(DATA, call, seq, seq, flags));
    let context = PacketContext {
        epoch: Epoch(EPOCH),
        cid_and_channel: header.cid,
        call,
        seq,
        service: SERVICE,
        security_index: INDEX,
        from_client: true,
        checksum: 0,
    };
    let mut payload = [&[0; 8], data].concat();
    let checksum = ToyClient(Toy::new(key)).seal(&context, &mut payload).unwrap();
    (Header { checksum, ..header }, payload)
}

/// A server whose client has authenticated with this first call.
fn proven(class: Box<dyn ServerSecurity>, (header, payload): (Header, Vec<u8>)) -> (Script, CallId) {
    let mut script = Script::new(Config::default());
    script.end.listen(SERVICE, vec![class]).unwrap();
    script.give(header, &payload);
    let answer = answer_to_challenge(&mut script, peer(), KEY);
    script.give(response(), &answer);
    let call = script.incoming();
    script.sent();
    (script, call)
}

fn response() -> Header {
    toy(from_client(PacketType::RESPONSE, 0, 0, 9, 0))
}

/// The response of a client with this key to the challenge that the server has just sent there.
fn answer_to_challenge(script: &mut Script, to: SocketAddr, key: u8) -> Vec<u8> {
    let challenge = script.sent_one();
    assert_eq!((challenge.header.kind, challenge.to), (PacketType::CHALLENGE, to));
    let answer = challenge.payload.iter().map(|byte| byte ^ key);
    answer.chain([1, 0, 0, 0u32].into_iter().flat_map(u32::to_be_bytes)).collect()
}

/// The client sends from another address, is challenged, responds, and repeats its packet.
fn go_elsewhere(script: &mut Script, (header, payload): &(Header, Vec<u8>)) {
    script.give_from(elsewhere(), *header, payload);
    assert_eq!(script.events(), [], "nothing is done before the answer");
    let answer = answer_to_challenge(script, elsewhere(), KEY);
    script.give_from(elsewhere(), response(), &answer);
    assert_eq!(script.end.stats().moves, 0, "nor before a packet of the client");
    script.give_from(elsewhere(), *header, payload);
}

fn incoming(script: &mut Script) -> Option<CallId> {
    script.events().into_iter().rev().find_map(|event| match event {
        Event::IncomingCall { call, .. } => Some(call),
        _ => None,
    })
}

#[test]
fn a_connection_that_proves_nothing_stays_at_its_address() {
    let mut script = Script::server();
    script.give(from_client(DATA, 1, 1, 1, 0), b"begun");
    let first = script.incoming();
    script.give_from(elsewhere(), from_client(DATA, 1, 2, 2, LAST), b"forged");
    assert_eq!(script.read_all(first), (b"begun".to_vec(), Read::WouldBlock));
    // The same ids from another address are another client.
    script.give_from(elsewhere(), from_client(DATA, 2, 1, 3, LAST), b"another");
    let second = incoming(&mut script).expect("a call of its own");
    assert_eq!(script.end.call(second).map(|call| call.peer), Some(elsewhere()));
    assert_eq!(script.end.call(first).map(|call| call.peer), Some(script.peer));
    script.give(from_client(DATA, 1, 2, 4, LAST), b" and ended");
    assert_eq!(script.read_all(first), (b" and ended".to_vec(), Read::Eof));
    script.sent();
    script.reply(first, b"reply");
    assert_eq!(script.sent_one().to, script.peer);
}

#[test]
fn a_proven_identity_does_not_cover_unprotected_packets_from_elsewhere() {
    let clear = (toy(from_client(DATA, 1, 1, 1, LAST)), b"mine".to_vec());
    let (mut script, first) = proven(Box::new(ToyClearServer(KEY)), clear);
    script.reply(first, b"reply");
    script.sent();
    script.events();
    script.give_from(elsewhere(), toy(from_client(DATA, 2, 1, 2, LAST)), b"not mine");
    assert_eq!(script.events(), [], "no call");
    let asked = script.sent_one();
    assert_eq!((asked.header.kind, asked.to), (PacketType::CHALLENGE, elsewhere()));
    script.give(toy(from_client(DATA, 2, 1, 3, LAST)), b"mine");
    let call = incoming(&mut script).expect("the client goes on undisturbed");
    assert_eq!(script.end.call(call).map(|call| call.peer), Some(script.peer));
}

#[test]
fn a_protected_connection_follows_its_client() {
    let (mut script, first) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"here"));
    script.reply(first, b"reply");
    script.sent();
    script.events();
    go_elsewhere(&mut script, &sealed(2, 1, LAST, b"there"));
    let call = incoming(&mut script).expect("the client's next call");
    assert_eq!(script.read_all(call), (b"there".to_vec(), Read::Eof));
    script.reply(call, b"reply");
    assert!(script.sent().iter().all(|sent| sent.to == elsewhere()));
    assert_eq!(script.end.holdings().server_connections, 1);
    assert_eq!(script.end.stats().moves, 1);
}

#[test]
fn a_protected_request_goes_on_from_another_address() {
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, 0, b"be"));
    go_elsewhere(&mut script, &sealed(1, 2, LAST, b"gun"));
    assert_eq!(script.read_all(call), (b"begun".to_vec(), Read::Eof));
    script.sent();
    script.reply(call, b"reply");
    assert_eq!(script.sent_one().to, elsewhere());
}

#[test]
fn a_reply_that_went_where_the_client_was_is_sent_again_at_once() {
    let request = sealed(1, 1, LAST, b"question");
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), request.clone());
    script.reply(call, b"reply");
    assert_eq!(script.sent_one().to, script.peer);
    go_elsewhere(&mut script, &request);
    let sent = script.wait_ms(1);
    let replies: Vec<_> = sent.iter().filter(|(_, sent)| sent.header.kind == DATA).collect();
    assert!(replies.len() == 1 && replies[0].1.to == elsewhere(), "{sent:?}");
}

#[test]
fn a_copy_that_comes_before_its_original_takes_no_reply_away() {
    let (mut script, first) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    script.reply(first, b"reply");
    script.sent();
    script.events();
    for number in 2..20 {
        let (header, payload) = sealed(number, 1, LAST, b"mine");
        script.give_from(elsewhere(), header, &payload);
        assert_eq!(script.events(), [], "call {number}");
        script.give(header, &payload);
        let call = incoming(&mut script).expect("the client's call, once");
        assert_eq!(script.read_all(call), (b"mine".to_vec(), Read::Eof));
        script.reply(call, b"reply");
        let sent = script.sent();
        let replies = sent.iter().filter(|sent| sent.header.kind == DATA);
        assert!(
            replies.clone().count() == 1 && replies.clone().all(|sent| sent.to == script.peer),
            "{sent:?}"
        );
        // A sender of copies may acknowledge what it did not receive.
        script.give_from(elsewhere(), toy(from_client(PacketType::ACK_ALL, number, 0, 3, 0)), b"");
    }
    assert_eq!(script.end.stats().moves, 0);
}

#[test]
fn a_packet_refused_by_a_busy_channel_moves_no_address() {
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    // The client has given up its call, and the application still works on it.
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    for _ in 0..3 {
        script.give_from(elsewhere(), header, &payload);
    }
    assert_eq!(script.end.stats().moves, 0);
    assert!(script.sent().iter().all(|sent| sent.header.kind == PacketType::CHALLENGE));
    script.reply(call, b"reply");
    assert_eq!(script.sent_one().to, script.peer);
}

#[test]
fn an_answer_from_one_address_proves_no_other() {
    let (mut script, first) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    script.reply(first, b"reply");
    script.sent();
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    let third = SocketAddr::from(([198, 51, 100, 3], 7777));
    script.give_from(third, header, &payload);
    script.sent();
    script.give_from(elsewhere(), header, &payload);
    let answer = answer_to_challenge(&mut script, elsewhere(), KEY);
    script.give_from(third, response(), &answer);
    script.give_from(third, header, &payload);
    assert_eq!(script.end.stats().moves, 0);
    script.give_from(elsewhere(), response(), &answer);
    script.give_from(elsewhere(), header, &payload);
    assert_eq!(script.end.stats().moves, 1);
}

#[test]
fn another_client_of_the_same_server_moves_nothing() {
    let (mut script, first) = proven(Box::new(ToyServerOfTwo(KEY, KEY + 1)), sealed(1, 1, LAST, b"mine"));
    script.reply(first, b"reply");
    script.sent();
    script.events();
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    script.give_from(elsewhere(), header, &payload);
    let answer = answer_to_challenge(&mut script, elsewhere(), KEY + 1);
    script.give_from(elsewhere(), response(), &answer);
    script.give_from(elsewhere(), header, &payload);
    assert_eq!((script.end.stats().moves, script.events().len()), (0, 0), "a copy of the client's packet");
    let (theirs, sealed_by_them) = sealed_by(KEY + 1, 2, 1, LAST, b"theirs");
    script.give_from(elsewhere(), theirs, &sealed_by_them);
    assert_eq!((script.end.stats().moves, script.events().len()), (0, 0), "a packet of their own");
    script.give(header, &payload);
    let call = incoming(&mut script).expect("the client goes on undisturbed");
    assert_eq!(script.end.call(call).map(|call| call.peer), Some(script.peer));
}

#[test]
fn a_packet_that_does_not_open_moves_no_address_and_ends_no_call() {
    let (mut script, first) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    let forged = toy(from_client(DATA, 2, 1, 2, LAST));
    script.give_from(elsewhere(), forged, b"not sealed with any key");
    assert_eq!(script.events(), []);
    assert!(
        script.sent().iter().all(|sent| sent.header.kind == PacketType::CHALLENGE && sent.to == elsewhere())
    );
    script.reply(first, b"reply");
    assert_eq!(script.sent_one().to, script.peer, "what is under way goes on where it went");
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    script.give(header, &payload);
    let call = incoming(&mut script).expect("the connection lives");
    assert_eq!(script.read_all(call), (b"mine".to_vec(), Read::Eof));
}

#[test]
fn recorded_packets_move_nothing() {
    let first = sealed(1, 1, LAST, b"mine");
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), first.clone());
    for _ in 0..3 {
        script.give_from(elsewhere(), first.0, &first.1);
    }
    assert_eq!(script.sent_one().header.kind, PacketType::CHALLENGE);
    script.reply(call, b"reply");
    assert_eq!(script.sent_one().to, script.peer);
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    script.give(header, &payload);
    incoming(&mut script).expect("the client goes on undisturbed");
    script.give_from(elsewhere(), first.0, &first.1);
    assert_eq!((script.events().len(), script.end.stats().moves), (0, 0));
}

#[test]
fn no_packet_from_another_address_acknowledges_aborts_or_challenges_a_call() {
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    script.reply(call, b"reply");
    script.sent();
    script.events();
    let ack = ack_payload(2, 1, 0, reason::DELAY, &[]);
    script.give_from(elsewhere(), toy(from_client(ACK, 1, 0, 2, flags::REQUEST_ACK)), &ack);
    script.give_from(elsewhere(), toy(from_client(PacketType::ACK_ALL, 1, 0, 3, 0)), b"");
    for number in [0, 1] {
        script.give_from(elsewhere(), toy(from_client(ABORT, number, 0, 4, 0)), &[0, 0, 0, 9]);
    }
    script.sent_none();
    assert_eq!(script.events(), []);
    assert_eq!(script.end.holdings().server_connections, 1);
}

#[test]
fn an_abort_of_the_connection_ends_its_calls_and_not_the_connection() {
    let (mut script, call) = proven(Box::new(ToyServer(KEY)), sealed(1, 1, LAST, b"mine"));
    script.give(toy(from_client(ABORT, 0, 0, 2, 0)), &[0, 0, 0, 9]);
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::ConnectionAborted(9)))]);
    script.end.release(script.now, call);
    let (header, payload) = sealed(2, 1, LAST, b"mine");
    script.give(header, &payload);
    let call = incoming(&mut script).expect("the client need not prove itself again");
    assert_eq!(script.read_all(call), (b"mine".to_vec(), Read::Eof));
}

/// A client with a call, and the header of its request.
fn asking() -> (Script, CallId, Header) {
    let mut script = Script::new(Config::default());
    let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    let call = script.call(connection, b"question");
    let request = script.sent_one().header;
    (script, call, request)
}

#[test]
fn a_client_accepts_packets_only_from_the_address_that_has_answered() {
    let (mut script, call, request) = asking();
    let consumed = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    script.give(consumed, &ack_payload(2, 1, 0, reason::DELAY, &[]));
    let reply = script.server_header(&request, DATA, 1, LAST);
    let same_port = SocketAddr::new(elsewhere().ip(), script.peer.port());
    for from in [elsewhere(), same_port] {
        script.give_from(from, reply, b"forged");
        script.give_from(from, Header { kind: ABORT, ..reply }, &[0, 0, 0, 9]);
        script.give_from(from, Header { kind: ABORT, call: 0, ..reply }, &[0, 0, 0, 9]);
    }
    assert_eq!(script.events(), []);
    script.give(reply, b"answer");
    assert_eq!(script.read_all(call).0, b"answer");
}

#[test]
fn a_server_with_several_addresses_may_answer_from_another() {
    let (mut script, call, request) = asking();
    let host = |last| SocketAddr::from(([198, 51, 100, last], 7001));
    let consumed = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give_from(SocketAddr::from(([198, 51, 100, 7], 7002)), reply, b"another port is another program");
    script.give_from(host(7), consumed, &ack_payload(2, 1, 0, reason::DELAY, &[]));
    script.give_from(host(8), reply, b"too late");
    assert_eq!(script.read_all(call), (vec![], Read::WouldBlock));
    script.give_from(host(7), reply, b"answer");
    assert_eq!(script.read_all(call).0, b"answer");
    // The address that was called is always accepted, and then alone.
    script.sent();
    let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
    let call = script.call(connection, b"question");
    let request = script.sent_one().header;
    let consumed = script.server_header(&request, ACK, 0, flags::SLOW_START_OK);
    script.give_from(host(7), consumed, &ack_payload(2, 1, 0, reason::DELAY, &[]));
    script.give(consumed, &ack_payload(2, 1, 0, reason::DELAY, &[]));
    let reply = script.server_header(&request, DATA, 1, LAST);
    script.give_from(host(7), reply, b"forged");
    script.give(reply, b"answer");
    assert_eq!(script.read_all(call).0, b"answer");
}

#[test]
fn the_ids_of_one_connection_tell_nothing_of_the_next() {
    let mut script = Script::new(Config::default());
    let mut ids = Vec::new();
    for _ in 0..200 {
        let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
        ids.push(script.end.connection(connection).unwrap().cid);
    }
    let steps: std::collections::BTreeSet<u32> =
        ids.windows(2).map(|pair| pair[1].0.wrapping_sub(pair[0].0)).collect();
    assert!(steps.len() > 190, "{steps:?}");
    assert!(ids.iter().all(|cid| Cid::of(cid.0) == *cid && *cid != Cid(CID)));
}
