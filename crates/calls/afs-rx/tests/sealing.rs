//! Encryption outside the endpoint's lock: turns, order, and ends of calls meanwhile.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use std::sync::{Arc, Mutex};

use afs_rx::packet::{Header, PacketType, Packets};
use afs_rx::{
    CallError, CallId, Challenge, ClientSecurity, Config, ConnId, Event, Output, PacketContext,
    PacketSecurity, Response, Sealing, SecurityError,
};
use bytes::Bytes;
use support::script::{SERVICE, Script};
use support::toy::{Toy, ToyClient};

/// Ten packets.
const TEN: usize = 10 * 1400;

fn client(security: Box<dyn ClientSecurity>) -> (Script, ConnId) {
    let mut config = Config::default();
    config.batch_packets = 4;
    let mut script = Script::new(config);
    let connection = script.end.connect(script.now, script.peer, SERVICE, security);
    (script, connection)
}

fn take(script: &mut Script) -> Option<Sealing> {
    match script.end.poll_output(script.now, &mut Vec::new())? {
        Output::Sealing(sealing) => Some(sealing),
        Output::Ready(transmit, _) => panic!("nothing is ready: {transmit:?}"),
    }
}

/// The headers of the sealed packets.
fn seal(sealing: &mut Sealing) -> Vec<Header> {
    let (mut headers, mut buf) = (Vec::new(), Vec::new());
    while let Some(transmit) = sealing.next(&mut buf) {
        for datagram in buf[..transmit.len].chunks(transmit.segment_size.unwrap_or(transmit.len)) {
            headers.extend(Packets::new(Bytes::copy_from_slice(datagram)).unwrap().map(|(header, _)| header));
        }
    }
    headers
}

fn seqs(headers: &[Header], call: u32) -> Vec<u32> {
    let of_call = headers.iter().filter(|header| header.cid & 3 == call);
    of_call.map(|header| header.seq).collect()
}

#[test]
fn a_call_has_one_turn_at_a_time_and_others_have_theirs() {
    let (mut script, connection) = client(Box::new(ToyClient(Toy::new(9))));
    let calls = [0, 1].map(|_| script.call(connection, &[1; TEN]));
    let mut first = [take(&mut script).unwrap(), take(&mut script).unwrap()];
    assert!(take(&mut script).is_none(), "both calls are out");
    // The second to be taken is the first to be returned: it alone continues.
    let mut sent = seal(&mut first[1]);
    let [one, two] = first;
    script.end.end_sealing(script.now, two);
    let mut next = take(&mut script).unwrap();
    assert!(take(&mut script).is_none());
    sent.extend(seal(&mut next));
    assert_eq!(seqs(&sent, 1), [1, 2, 3, 4, 5, 6, 7, 8]);
    script.end.end_sealing(script.now, next);
    let mut one = one;
    assert_eq!(seqs(&seal(&mut one), 0), [1, 2, 3, 4]);
    script.end.end_sealing(script.now, one);
    let rest = script.sent();
    assert_eq!(rest.iter().filter(|sent| sent.header.kind == PacketType::DATA).count(), 20 - 12);
    assert!(calls.iter().all(|call| script.end.call(*call).is_some()));
}

#[test]
fn a_lost_packet_is_sealed_again() {
    let (mut script, connection) = client(Box::new(ToyClient(Toy::new(9))));
    script.call(connection, b"short");
    let first = script.sent_one();
    let again = script.wait_ms(3000).into_iter().map(|(_, sent)| sent).next().unwrap();
    assert_eq!((first.header.seq, &first.payload), (again.header.seq, &again.payload));
    assert_eq!(first.header.checksum, again.header.checksum);
    assert!(first.header.serial < again.header.serial);
}

#[test]
fn a_call_that_ends_meanwhile_gives_its_turn_back() {
    let (mut script, connection) = client(Box::new(ToyClient(Toy::new(9))));
    let call = script.call(connection, &[1; TEN]);
    let sealing = take(&mut script).unwrap();
    script.end.abort(script.now, call, 7);
    script.end.release(script.now, call);
    let next = script.call(connection, b"next");
    let mut other = take_after_control(&mut script);
    // The late end of a turn does not end that of the call which has the structure now.
    script.end.end_sealing(script.now, sealing);
    assert!(take(&mut script).is_none());
    assert_eq!(seqs(&seal(&mut other), 0), [1]);
    script.end.end_sealing(script.now, other);
    assert!(script.end.call(next).is_some());
}

/// As above, where the call that has the structure now has more to send than one turn sends.
#[test]
fn the_late_end_of_a_turn_gives_the_next_call_none() {
    let (mut script, connection) = client(Box::new(ToyClient(Toy::new(9))));
    let call = script.call(connection, &[1; TEN]);
    let late = take(&mut script).unwrap();
    script.end.abort(script.now, call, 7);
    script.end.release(script.now, call);
    script.call(connection, &[2; TEN]);
    let mut sealing = take_after_control(&mut script);
    script.end.end_sealing(script.now, late);
    assert!(take(&mut script).is_none(), "its first packets are on their way");
    assert_eq!(seqs(&seal(&mut sealing), 0), [1, 2, 3, 4]);
    script.end.end_sealing(script.now, sealing);
    assert_eq!(seqs(&seal(&mut take(&mut script).unwrap()), 0), [5, 6, 7, 8]);
}

fn take_after_control(script: &mut Script) -> Sealing {
    loop {
        match script.end.poll_output(script.now, &mut Vec::new()).expect("something leaves") {
            Output::Sealing(sealing) => return sealing,
            Output::Ready(_, turn) => assert!(turn.is_none(), "an abort has no turn"),
        }
    }
}

/// In the middle of its second packet, seals what is there for another connection.
struct Within {
    other: Arc<Mutex<Option<Sealing>>>,
    sealed: Arc<Mutex<Vec<Header>>>,
}

impl PacketSecurity for Within {
    fn index(&self) -> u8 {
        2
    }
    fn seal(&self, packet: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        let other = if packet.seq == 2 { self.other.lock().unwrap().take() } else { None };
        if let Some(mut other) = other {
            *self.sealed.lock().unwrap() = seal(&mut other);
            *self.other.lock().unwrap() = Some(other);
        }
        Ok(1)
    }
    fn open(&self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
}

impl ClientSecurity for Within {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Err(OVER)
    }
}

/// One thread holds the ciphers of the first connection meanwhile: a lock that both need would never be free.
#[test]
fn a_connection_seals_while_another_to_the_same_server_is_in_the_middle_of_a_packet() {
    let (other, sealed) = (Arc::default(), Arc::default());
    let within = Within { other: Arc::clone(&other), sealed: Arc::clone(&sealed) };
    let (mut script, first) = client(Box::new(within));
    let toy = Box::new(ToyClient(Toy::new(9)));
    let second = script.end.connect(script.now, script.peer, SERVICE, toy);
    script.call(first, &[1; TEN]);
    script.call(second, &[1; TEN]);
    let mut held = take(&mut script).unwrap();
    *other.lock().unwrap() = take(&mut script);
    assert_eq!(seqs(&seal(&mut held), 0), [1, 2, 3, 4]);
    assert_eq!(seqs(&sealed.lock().unwrap(), 0), [1, 2, 3, 4]);
    let other = other.lock().unwrap().take().unwrap();
    script.end.end_sealing(script.now, other);
    script.end.end_sealing(script.now, held);
    assert!(take(&mut script).is_some() && take(&mut script).is_some(), "both go on");
}

#[test]
fn a_call_seals_while_another_of_its_connection_is_in_the_middle_of_a_packet() {
    let (other, sealed) = (Arc::default(), Arc::default());
    let within = Within { other: Arc::clone(&other), sealed: Arc::clone(&sealed) };
    let (mut script, connection) = client(Box::new(within));
    script.call(connection, &[1; TEN]);
    script.call(connection, &[1; TEN]);
    let mut held = take(&mut script).unwrap();
    *other.lock().unwrap() = take(&mut script);
    assert_eq!(seqs(&seal(&mut held), 0), [1, 2, 3, 4]);
    assert_eq!(seqs(&sealed.lock().unwrap(), 1), [1, 2, 3, 4]);
}

/// Fails to seal from the third packet on.
struct Ends;

const OVER: SecurityError = SecurityError { code: 77 };

impl PacketSecurity for Ends {
    fn index(&self) -> u8 {
        2
    }
    fn seal(&self, packet: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        if packet.seq < 3 { Ok(1) } else { Err(OVER) }
    }
    fn open(&self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
}

impl ClientSecurity for Ends {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Err(OVER)
    }
}

#[test]
fn a_class_that_refuses_to_seal_ends_the_connection() {
    let (mut script, connection) = client(Box::new(Ends));
    let calls: [CallId; 2] = [script.call(connection, &[1; TEN]), script.call(connection, b"short")];
    let mut sealing = take(&mut script).unwrap();
    assert_eq!(seqs(&seal(&mut sealing), 0), [1, 2]);
    script.end.end_sealing(script.now, sealing);
    let failed = Err(CallError::ConnectionFailed(77));
    let events = script.events();
    assert!(calls.iter().all(|call| events.contains(&Event::Finished(*call, failed))), "{events:?}");
    assert!(events.contains(&Event::ConnectionFailed(connection, 77)));
    assert_eq!(script.sent_one().abort(), 77);
}
