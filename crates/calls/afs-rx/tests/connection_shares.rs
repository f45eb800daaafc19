//! Floods from addresses that an attacker has: it takes replies there, so that no address of it is forged.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::field_reassign_with_default)]

use crate::support;

use afs_rx::packet::{Header, PacketType, flags, reason};
use afs_rx::{Config, ConnId, Event, NullServer, ServiceOptions};
use core::time::Duration;
use std::net::SocketAddr;
use support::script::{SERVICE, Script, ack_payload, from_client};
use support::toy::{INDEX, ToyServer};

const DATA: PacketType = PacketType::DATA;
const LAST: u8 = flags::LAST_PACKET;
const MAX: usize = 64;
const KEY: u8 = 0x5a;

fn server() -> Script {
    let mut config = Config::default();
    config.server_connections_max = MAX;
    let mut script = Script::new(config);
    script.end.listen(SERVICE, vec![Box::new(NullServer), Box::new(ToyServer(KEY))]).unwrap();
    script
}

fn v4(host: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], 7001))
}

/// Makes a call on a new connection, and takes its reply.
fn take_reply(script: &mut Script, from: SocketAddr, cid: u32) -> ConnId {
    let header = |kind, serial, flags| Header { cid: 4 * cid, ..from_client(kind, 1, 0, serial, flags) };
    script.give_from(from, Header { seq: 1, ..header(DATA, 1, LAST) }, b"x");
    let (call, connection) = arrived(script).expect("it reaches the server");
    script.reply(call, b"y");
    script.end.release(script.now, call);
    script.sent();
    script.give_from(from, header(PacketType::ACK, 2, 0), &ack_payload(2, 1, 1, reason::DELAY, &[]));
    script.sent();
    script.wait_ms(2);
    connection
}

fn arrived(script: &mut Script) -> Option<(afs_rx::CallId, ConnId)> {
    script.events().into_iter().find_map(|event| match event {
        Event::IncomingCall { call, connection, .. } => Some((call, connection)),
        _ => None,
    })
}

/// A connection of a client with a key.
fn authenticated(script: &mut Script) -> ConnId {
    let header = |kind, seq| Header { security_index: INDEX, ..from_client(kind, 0, seq, 1, LAST) };
    script.give(Header { call: 1, ..header(DATA, 1) }, b"sealed");
    let challenge = script.sent_one().payload;
    let answer = challenge.iter().map(|byte| byte ^ KEY).chain([0; 16]).collect::<Vec<u8>>();
    script.give(header(PacketType::RESPONSE, 0), &answer);
    let (call, connection) = arrived(script).expect("an authenticated call");
    assert!(script.end.connection(connection).unwrap().identity.is_some());
    script.end.abort(script.now, call, 1);
    script.end.release(script.now, call);
    script.sent();
    connection
}

#[test]
fn who_takes_replies_at_many_addresses_evicts_its_own_connections() {
    let mut script = server();
    let proven = authenticated(&mut script);
    let early = [1, 2].map(|cid| take_reply(&mut script, v4(200), cid));
    let mut reached = 0;
    let mut flood = |script: &mut Script, count: u32| {
        for number in 0..count {
            take_reply(script, v4((number % 8) as u8), 100_000 + reached);
            reached += 1;
            assert!(script.end.holdings().server_connections <= MAX);
        }
    };
    flood(&mut script, 400);
    let late = take_reply(&mut script, v4(201), 9);
    flood(&mut script, 400);
    for honest in [proven, early[0], early[1], late] {
        assert!(script.end.connection(honest).is_some(), "{honest:?} was evicted");
    }
    assert_eq!((script.end.holdings().server_connections, reached), (MAX, 800));
    script.wait(Duration::from_secs(800));
    assert_eq!(script.end.holdings().server_connections, 0);
}

#[test]
fn forged_addresses_and_real_ones_together_leave_those_with_few_connections_alone() {
    let mut script = server();
    let proven = authenticated(&mut script);
    let honest = take_reply(&mut script, v4(200), 1);
    for number in 0..800u32 {
        take_reply(&mut script, v4((number % 8) as u8), 100_000 + number);
        let forged = SocketAddr::from(([203, 0, 113, number as u8], 7001));
        script.give_from(
            forged,
            Header { cid: 4 * (200_000 + number), ..from_client(DATA, 1, 1, 1, 0) },
            b"x",
        );
        script.sent();
        let Some((call, _)) = arrived(&mut script) else { continue };
        script.end.abort(script.now, call, 1);
        script.end.release(script.now, call);
    }
    assert!(script.end.connection(proven).is_some() && script.end.connection(honest).is_some());
    assert!(script.end.holdings().server_connections <= MAX);
}

#[test]
fn a_host_of_ipv6_has_the_calls_of_one_host_whatever_address_of_its_network_it_uses() {
    let mut config = Config::default();
    config.incoming_calls_max = 64;
    config.incoming_calls_per_host = 4;
    let mut script = Script::server_with(config);
    let mut admitted = |network: u16, hosts: u16| {
        for host in 1..=hosts {
            let from = SocketAddr::from(([0x2001, 0xdb8, 7, network, 0, 0, 0, host], 7001));
            let cid = 4 * (u32::from(network) << 8 | u32::from(host));
            script.give_from(from, Header { cid, ..from_client(DATA, 1, 1, 1, LAST) }, b"x");
        }
        script.sent();
        script.events().iter().filter(|event| matches!(event, Event::IncomingCall { .. })).count()
    };
    assert_eq!(admitted(1, 20), 4, "a /64");
    assert_eq!([2, 3, 4].map(|network| admitted(network, 20)), [4; 3]);
    assert_eq!(admitted(5, 20), 0, "a /48");
}

/// A forger chooses its sources, and with one connection from each of them a newcomer with two would have most.
#[test]
fn a_newcomer_with_two_connections_goes_in_its_turn_among_forged_addresses_with_one_each() {
    let mut config = Config::default();
    config.server_connections_max = MAX;
    let mut script = Script::new(config);
    let options = ServiceOptions { reachability_check: true };
    script.end.listen_with(SERVICE, vec![Box::new(NullServer)], options).unwrap();
    let mut forged = 0;
    let mut flood = |script: &mut Script, count: usize| {
        for _ in 0..count {
            forged += 1;
            let from = SocketAddr::from(([203, 0, (forged >> 8) as u8, forged as u8], 7001));
            script.give_from(
                from,
                Header { cid: 4 * (1000 + forged), ..from_client(DATA, 1, 1, 1, LAST) },
                b"x",
            );
            script.sent();
        }
    };
    flood(&mut script, 2 * MAX);
    let pings = [1, 2].map(|cid| {
        script.give(Header { cid: 4 * cid, ..from_client(DATA, 1, 1, 1, LAST) }, b"x");
        (cid, script.sent())
    });
    flood(&mut script, MAX / 2);
    let (cid, ping) = (pings[0].0, &pings[0].1[0]);
    assert_eq!(ping.ack().reason, reason::PING);
    let answer = ack_payload(1, 0, ping.header.serial, reason::PING_RESPONSE, &[]);
    script.give(Header { cid: 4 * cid, ..from_client(PacketType::ACK, 1, 0, 2, 0) }, &answer);
    script.wait_ms(300);
    let calls = script.events().iter().filter(|event| matches!(event, Event::IncomingCall { .. })).count();
    assert_eq!(calls, 2, "both are there, and served");
}
