//! Decryption outside the endpoint's lock: events of the call meanwhile.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Header, PacketType, flags, reason};
use afs_rx::{
    CallError, CallId, Config, DropReason, Event, Opened, Overhead, PacketContext, PacketSecurity, Read,
    ReadStart, Sealed,
};
use support::script::{SERVICE, Script, from_client};
use support::toy::{INDEX, Toy, ToyClient, ToyServer};

const KEY: u8 = 0x5a;

/// A packet of the client of the call with this number, sealed under a key.
fn data(seq: u32, key: u8, more_flags: u8, text: &[u8]) -> (Header, Vec<u8>) {
    let mut header =
        Header { security_index: INDEX, ..from_client(PacketType::DATA, 1, seq, seq, more_flags) };
    let context = PacketContext {
        epoch: afs_rx::Epoch(header.epoch),
        cid_and_channel: header.cid,
        call: 1,
        seq,
        service: SERVICE,
        security_index: INDEX,
        from_client: true,
        checksum: 0,
    };
    let client = ToyClient(Toy::new(key));
    let Overhead { header: room, .. } = client.overhead();
    let mut payload = [vec![0; room], text.to_vec()].concat();
    header.checksum = client.seal(&context, &mut payload).unwrap();
    (header, payload)
}

/// A call of an authenticated client whose first packet has arrived.
fn call() -> (Script, CallId) {
    let mut script = Script::new(Config::default());
    script.end.listen(SERVICE, vec![Box::new(ToyServer(KEY))]).unwrap();
    give(&mut script, data(1, KEY, 0, b"one "));
    let challenge = script.sent().pop().unwrap();
    let answer = challenge.payload.iter().map(|byte| byte ^ KEY);
    let response: Vec<u8> = answer.chain([1, 0, 0, 0].into_iter().flat_map(u32::to_be_bytes)).collect();
    let header = Header { security_index: INDEX, ..from_client(PacketType::RESPONSE, 0, 0, 90, 0) };
    script.give(header, &response);
    let call = script.incoming();
    (script, call)
}

fn give(script: &mut Script, (header, payload): (Header, Vec<u8>)) {
    script.give(header, &payload);
}

fn take(script: &mut Script, call: CallId) -> Sealed {
    match script.end.begin_read(script.now, call, 1000) {
        Ok(ReadStart::Sealed(sealed)) => sealed,
        _ => panic!("packets to be opened"),
    }
}

fn bring_back(script: &mut Script, opened: Opened) -> Result<Vec<u8>, CallError> {
    script.end.end_read(script.now, opened, 1000).map(|pieces| pieces.concat())
}

#[test]
fn opened_packets_are_read_once_and_in_order() {
    let (mut script, call) = call();
    give(&mut script, data(2, KEY, 0, b"two "));
    let sealed = take(&mut script, call);
    // Both are retransmitted, and the next one arrives: the packets that are out do not change.
    for seq in [1, 2] {
        give(&mut script, data(seq, KEY, 0, b"again "));
    }
    give(&mut script, data(3, KEY, flags::LAST_PACKET, b"three"));
    assert_eq!(script.end.stats().drops(DropReason::Duplicate), 2);
    assert!(matches!(script.end.begin_read(script.now, call, 1000), Ok(ReadStart::Read(Read::WouldBlock))));
    assert_eq!(bring_back(&mut script, sealed.open()).unwrap(), b"one two ");
    assert_eq!(script.read_all(call), (b"three".to_vec(), Read::Eof));
    assert_eq!(script.end.holdings().buffered_bytes, 0);
}

#[test]
fn packets_being_opened_are_not_acknowledged_for_good() {
    let (mut script, call) = call();
    give(&mut script, data(2, KEY, flags::REQUEST_ACK, b"two "));
    let sealed = take(&mut script, call);
    let ack = script.sent().pop().unwrap();
    assert_eq!((ack.ack().first, ack.ack().reason, ack.ack().soft), (1, reason::REQUESTED, &[1, 1][..]));
    assert_eq!(bring_back(&mut script, sealed.open()).unwrap(), b"one two ");
    let acks = script.wait_ms(200);
    assert_eq!(acks.last().unwrap().1.ack().first, 3);
}

#[test]
fn a_forged_packet_among_good_ones_is_asked_for_again() {
    let (mut script, call) = call();
    give(&mut script, data(2, KEY ^ 1, 0, b"evil "));
    give(&mut script, data(3, KEY, flags::LAST_PACKET, b"three"));
    // Every packet that has arrived is acknowledged.
    script.sent();
    let sealed = take(&mut script, call);
    assert_eq!(bring_back(&mut script, sealed.open()).unwrap(), b"one ");
    assert_eq!(script.end.stats().drops(DropReason::NotOpened), 1);
    let ack = script.sent().pop().unwrap();
    assert_eq!((ack.ack().first, ack.ack().soft), (2, &[0, 1][..]));
    assert_eq!(script.read_all(call), (Vec::new(), Read::WouldBlock));
    give(&mut script, data(2, KEY, 0, b"two "));
    assert_eq!(script.read_all(call), (b"two three".to_vec(), Read::Eof));
    assert_eq!(script.end.holdings().buffered_bytes, 0);
}

#[test]
fn a_call_that_ends_meanwhile_takes_nothing_back() {
    let (mut script, call) = call();
    let sealed = take(&mut script, call);
    script.end.abort(script.now, call, 7);
    assert_eq!(script.events(), [Event::Finished(call, Err(CallError::LocalAbort(7)))]);
    assert_eq!(script.end.holdings().buffered_bytes, 0);
    assert_eq!(bring_back(&mut script, sealed.open()), Err(CallError::LocalAbort(7)));
    script.end.release(script.now, call);
    assert_eq!((script.end.holdings().buffered_bytes, script.end.holdings().calls), (0, 0));
}

#[test]
fn a_reply_that_begins_meanwhile_ends_the_reading() {
    let (mut script, call) = call();
    let sealed = take(&mut script, call);
    script.reply(call, b"enough");
    assert_eq!(bring_back(&mut script, sealed.open()), Err(CallError::InvalidOperation));
    assert_eq!(script.end.holdings().buffered_bytes, 0);
}
