//! Attacks with recorded packets, against the real security classes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use std::net::SocketAddr;
use std::sync::Arc;

use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyKind, KeyRing, SharedKeys, generate};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{Minting, RxgkServer, Variant, mint};
use afs_auth::rxkad;
use afs_rpc::{Level, Terms, UnixTime};
use afs_rx::packet::{PacketType, flags};
use afs_rx::{CallError, ClientSecurity, Config, Endpoint, Event, Instant, Read, ServerSecurity};
use bytes::Bytes;
use cell::support::{CLIENT, SERVER, address};
use cell::{NOW, SERVICE, env};

/// Everything that an endpoint sends now.
fn sent(end: &mut Endpoint, now: Instant) -> Vec<Bytes> {
    let (mut buf, mut all) = (Vec::new(), Vec::new());
    while let Some(transmit) = end.poll_transmit(now, &mut buf) {
        let segment = transmit.segment_size.unwrap_or(transmit.len);
        all.extend(buf[..transmit.len].chunks(segment).map(Bytes::copy_from_slice));
    }
    all
}

fn give(end: &mut Endpoint, now: Instant, from: usize, datagrams: &[Bytes]) {
    datagrams.iter().for_each(|datagram| end.handle_datagram(now, address(from), datagram.clone()));
}

/// Numbers of the calls that reached the server's application.
fn admitted(end: &mut Endpoint) -> Vec<(usize, u32)> {
    let mut calls = Vec::new();
    while let Some(event) = end.poll_event() {
        if let Event::IncomingCall { call, .. } = event {
            calls.extend(end.call(call).map(|call| (call.channel, call.number)));
        }
    }
    calls
}

/// Four calls are recorded and aborted, the server forgets everything, the recorded packets of three of them are
/// replayed, and the client continues with another call.
fn replayed(client: Box<dyn ClientSecurity>, server: Box<dyn ServerSecurity>) {
    let now = Instant::from_nanos(1_000_000_000);
    let mut alice = Endpoint::new(Config::default(), [1; 32]);
    let mut restarted = Endpoint::new(Config::default(), [2; 32]);
    restarted.listen(SERVICE, vec![server]).unwrap();
    let connection = alice.connect(now, address(SERVER), SERVICE, client);
    let mut recorded = Vec::new();
    let calls: Vec<_> = (0..4).map(|_| alice.open_call(now, connection).unwrap()).collect();
    for call in &calls {
        alice.write(now, *call, &mut Bytes::from_static(b"remove the file")).unwrap();
        alice.finish_send(now, *call).unwrap();
        recorded.push(sent(&mut alice, now));
    }
    for call in calls {
        alice.abort(now, call, -6);
        alice.release(now, call);
    }
    sent(&mut alice, now);
    for datagrams in &recorded[1..] {
        assert_eq!(datagrams.len(), 1);
        give(&mut restarted, now, CLIENT, datagrams);
    }
    let call = alice.open_call(now, connection).unwrap();
    alice.write(now, call, &mut Bytes::from_static(b"something else")).unwrap();
    alice.finish_send(now, call).unwrap();
    for _ in 0..3 {
        let from_alice = sent(&mut alice, now);
        give(&mut restarted, now, CLIENT, &from_alice);
        let to_alice = sent(&mut restarted, now);
        give(&mut alice, now, SERVER, &to_alice);
    }
    assert_eq!(admitted(&mut restarted), [(0, 2)], "only the call that the client makes now");
    give(&mut restarted, now, CLIENT, &recorded.concat());
    assert_eq!(admitted(&mut restarted), [], "nor afterwards");
    assert_eq!(restarted.holdings().calls, 1);
}

/// A client authenticates; then a packet with its connection's ids comes from another address.
fn ridden(client: Box<dyn ClientSecurity>, server: Box<dyn ServerSecurity>) {
    let now = Instant::from_nanos(1_000_000_000);
    let mut alice = Endpoint::new(Config::default(), [1; 32]);
    let mut end = Endpoint::new(Config::default(), [2; 32]);
    end.listen(SERVICE, vec![server]).unwrap();
    let connection = alice.connect(now, address(SERVER), SERVICE, client);
    let call = alice.open_call(now, connection).unwrap();
    alice.write(now, call, &mut Bytes::from_static(b"mine")).unwrap();
    alice.finish_send(now, call).unwrap();
    let mut request = Bytes::new();
    for _ in 0..3 {
        let from_alice = sent(&mut alice, now);
        request = from_alice.first().cloned().filter(|_| request.is_empty()).unwrap_or(request);
        give(&mut end, now, CLIENT, &from_alice);
        let to_alice = sent(&mut end, now);
        give(&mut alice, now, SERVER, &to_alice);
    }
    assert_eq!(admitted(&mut end), [(0, 1)]);
    // The recorded packet unchanged, on another channel, and as the next call of the same: all that an eavesdropper
    // could send.
    let stranger = SocketAddr::from(([203, 0, 113, 9], 40000));
    for (channel, number) in [(0, 1), (0, 2), (1, 1), (2, 7)] {
        let mut forged = request.to_vec();
        forged[7] |= channel;
        forged[11] = number;
        end.handle_datagram(now, stranger, forged.into());
    }
    assert_eq!(admitted(&mut end), [], "no call in alice's name");
    let mut buf = Vec::new();
    while let Some(transmit) = end.poll_transmit(now, &mut buf) {
        let kind = PacketType(buf[20]);
        let asks = kind == PacketType::CHALLENGE && transmit.to == stranger;
        assert!(asks || transmit.to == address(CLIENT), "{kind:?} to {}", transmit.to);
    }
    // Nor does any of it end the client's calls.
    let next = alice.open_call(now, connection).unwrap();
    alice.finish_send(now, next).unwrap();
    let from_alice = sent(&mut alice, now);
    give(&mut end, now, CLIENT, &from_alice);
    assert_eq!(admitted(&mut end), [(1, 1)]);
}

/// A client authenticates, moves to another address, and makes its next call from there: its packet is sent twice,
/// with the authentication between.
fn moved(client: Box<dyn ClientSecurity>, server: Box<dyn ServerSecurity>) {
    const ELSEWHERE: usize = 9;
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut alice = Endpoint::new(Config::default(), [1; 32]);
    let mut end = Endpoint::new(Config::default(), [2; 32]);
    end.listen(SERVICE, vec![server]).unwrap();
    let connection = alice.connect(now, address(SERVER), SERVICE, client);
    for (number, from) in [CLIENT, ELSEWHERE].into_iter().enumerate() {
        let call = alice.open_call(now, connection).unwrap();
        alice.finish_send(now, call).unwrap();
        for _ in 0..4 {
            let from_alice = sent(&mut alice, now);
            give(&mut end, now, from, &from_alice);
            let to_alice = sent(&mut end, now);
            give(&mut alice, now, SERVER, &to_alice);
            now = alice.poll_timeout().unwrap().max(now);
            alice.handle_timeout(now);
        }
        assert_eq!(admitted(&mut end), [(number, 1)], "once, from {from}");
        assert_eq!(end.stats().moves, number as u64);
    }
    assert_eq!(end.holdings().server_connections, 1);
}

#[test]
fn a_connection_follows_its_client_when_it_has_proven_itself_again() {
    for (seed, level) in [Level::Auth, Level::Crypt].into_iter().enumerate() {
        for (client, server) in [rxgk(seed as u64, level), rxkad(seed as u64, level)] {
            moved(client, server);
        }
    }
}

/// Result of a client's read of a reply forged without any key, with the server's address and the connection's ids.
fn forged_reply(client: Box<dyn ClientSecurity>) -> Result<Read, CallError> {
    let now = Instant::from_nanos(1_000_000_000);
    let mut alice = Endpoint::new(Config::default(), [1; 32]);
    let connection = alice.connect(now, address(SERVER), SERVICE, client);
    let call = alice.open_call(now, connection).unwrap();
    alice.finish_send(now, call).unwrap();
    let mut forged = sent(&mut alice, now)[0].to_vec();
    forged.truncate(28);
    // The last packet of the server's reply.
    forged[21] = flags::LAST_PACKET;
    forged.extend([b'x'; 100]);
    give(&mut alice, now, SERVER, &[forged.into()]);
    alice.read(now, call, 1000)
}

#[test]
fn rxgk_proves_the_server_where_it_protects_packets_and_not_at_the_level_clear() {
    assert!(matches!(forged_reply(rxgk(1, Level::Clear).0), Ok(Read::Data(_))), "believed");
    for level in [Level::Auth, Level::Crypt] {
        assert_eq!(forged_reply(rxgk(1, level).0), Ok(Read::WouldBlock), "dropped");
    }
}

#[test]
fn a_stranger_cannot_use_a_proven_rxgk_connection() {
    for (seed, level) in [Level::Clear, Level::Auth, Level::Crypt].into_iter().enumerate() {
        let (client, server) = rxgk(seed as u64, level);
        ridden(client, server);
    }
}

#[test]
fn a_stranger_cannot_use_a_proven_rxkad_connection() {
    for (seed, level) in [Level::Clear, Level::Auth, Level::Crypt].into_iter().enumerate() {
        let (client, server) = rxkad(seed as u64, level);
        ridden(client, server);
    }
}

type Ends = (Box<dyn ClientSecurity>, Box<dyn ServerSecurity>);

fn rxgk(seed: u64, level: Level) -> Ends {
    let env = env(seed);
    let mut ring = KeyRing::default();
    ring.add(generate(KeyKind::Rxgk, 18, 3, &env).unwrap()).unwrap();
    let expires = UnixTime { secs: NOW + 3600, nanos: 0 };
    let minting = Minting {
        terms: Terms::default(),
        name: "alice".to_owned(),
        level,
        expires,
        enctype: EncType::DEFAULT,
    };
    let token = mint(&ring, &minting, &env).unwrap();
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let keys = SharedKeys::new(ring);
    let server = RxgkServer::new(Variant::OpenAfs, keys, names, env.clone(), Level::Clear);
    (token.source(env).session(), Box::new(server))
}

fn rxkad(seed: u64, level: Level) -> Ends {
    let env = env(seed);
    let mut ring = KeyRing::default();
    ring.add(generate(KeyKind::RxkadKrb5, 18, 7, &env).unwrap()).unwrap();
    let at = |secs| UnixTime { secs, nanos: 0 };
    let (client, realm) = (vec!["alice".to_owned()], "EXAMPLE.ORG".to_owned());
    let minting = rxkad::Minting { client, realm, begins: at(NOW), expires: at(NOW + 3600), level };
    let token = rxkad::mint(&ring, &minting, &env).unwrap();
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let limits = rxkad::RxkadLimits::default();
    let server = rxkad::RxkadServer::new(SharedKeys::new(ring), names, env.clone(), limits);
    (token.source(env).session(), Box::new(server))
}

#[test]
fn recorded_rxgk_calls_are_not_run_again_by_a_server_that_forgot_the_connection() {
    for (seed, level) in [Level::Auth, Level::Crypt].into_iter().enumerate() {
        let (client, server) = rxgk(seed as u64, level);
        replayed(client, server);
    }
}

#[test]
fn recorded_rxkad_calls_are_not_run_again_by_a_server_that_forgot_the_connection() {
    for (seed, level) in [Level::Auth, Level::Crypt].into_iter().enumerate() {
        let (client, server) = rxkad(seed as u64, level);
        replayed(client, server);
    }
}
