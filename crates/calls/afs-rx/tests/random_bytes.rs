//! Endpoints in many states against random bytes, and against packets with parts changed.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::packet::{Header, PacketType};
use afs_rx::{Config, DropReason, Epoch, Event, PacketContext, PacketSecurity, Read};
use bytes::Bytes;
use core::time::Duration;
use std::net::SocketAddr;
use support::Dice;
use support::script::{CID, EPOCH, SERVICE, Script};
use support::toy::{Toy, ToyClient, ToyServer};

/// A header that passes the first checks, with the rest at random.
fn likely_header(dice: &mut Dice, ours: (u32, u32)) -> Header {
    let small = |dice: &mut Dice| match dice.per_mille(10) {
        true => u32::MAX - dice.below(3) as u32,
        false => dice.below(5) as u32,
    };
    let (epoch, cid) = if dice.per_mille(500) { ours } else { (EPOCH, CID) };
    Header {
        epoch,
        cid: cid | dice.below(4) as u32,
        call: small(dice),
        seq: if dice.per_mille(50) { dice.next() as u32 } else { small(dice) },
        serial: dice.next() as u32,
        kind: PacketType(dice.below(14) as u8),
        flags: dice.next() as u8,
        user_status: 0,
        security_index: 2 * dice.below(2) as u8,
        checksum: dice.next() as u16,
        service: SERVICE,
    }
}

/// A packet that is sometimes sealed as an authenticated client's would be.
fn likely_packet(dice: &mut Dice, ours: (u32, u32)) -> Vec<u8> {
    let (header, payload) = (likely_header(dice, ours), payload(dice));
    match header.security_index == 2 && dice.per_mille(500) {
        true => sealed(header, payload),
        false => [&header.to_bytes()[..], &payload].concat(),
    }
}

fn sealed(mut header: Header, mut payload: Vec<u8>) -> Vec<u8> {
    let context = PacketContext {
        epoch: Epoch(header.epoch),
        cid_and_channel: header.cid,
        call: header.call,
        seq: header.seq,
        service: SERVICE,
        security_index: 2,
        from_client: header.flags & 1 == 1,
        checksum: 0,
    };
    payload.splice(0..0, [0; 8]);
    header.checksum = ToyClient(Toy::new(1)).seal(&context, &mut payload).unwrap();
    [&header.to_bytes()[..], &payload].concat()
}

fn payload(dice: &mut Dice) -> Vec<u8> {
    let len = match dice.below(4) {
        0 => dice.below(8),
        1 => dice.below(64),
        2 => 1412 + dice.below(20),
        _ => dice.below(3000),
    };
    let small_words = dice.per_mille(500);
    (0..len).map(|at| if small_words && at % 4 != 3 { 0 } else { dice.next() as u8 }).collect()
}

fn endpoint(dice: &mut Dice) -> (Script, (u32, u32)) {
    let mut script = Script::new(Config::default());
    script.end.listen(SERVICE, vec![Box::new(afs_rx::NullServer), Box::new(ToyServer(1))]).unwrap();
    let security: Box<dyn afs_rx::ClientSecurity> = match dice.per_mille(500) {
        true => Box::new(ToyClient(Toy::new(1))),
        false => Box::new(afs_rx::NullClient),
    };
    let connection = script.end.connect(script.now, script.peer, SERVICE, security);
    for _ in 0..dice.below(4) {
        script.call(connection, &vec![1; dice.below(9000) as usize]);
    }
    let info = script.end.connection(connection).unwrap();
    (script, (info.epoch.0, info.cid.0))
}

/// The peer's address, the same port of another host, another port, or an unrelated one.
fn address(dice: &mut Dice) -> SocketAddr {
    let (host, port) = match dice.below(8) {
        0 => (1, 7001),
        1 => (9, 7002),
        2 => (3, 7777),
        _ => (9, 7001),
    };
    SocketAddr::from(([192, 0, 2, host], port))
}

/// Mostly responds to challenges and pings, so that some clients are validated.
fn prove(script: &mut Script, dice: &mut Dice) {
    for sent in script.sent() {
        if sent.header.kind == PacketType::CHALLENGE && dice.per_mille(700) {
            let mut payload: Vec<u8> = sent.payload.iter().map(|byte| byte ^ 1).collect();
            payload.extend((0..4).flat_map(|_| (dice.below(4) as u32).to_be_bytes()));
            let header = Header { kind: PacketType::RESPONSE, flags: 1, ..sent.header };
            script.give_from(sent.to, header, &payload);
            // An authenticated client continues.
            let header = Header { kind: PacketType::DATA, call: 1 + dice.below(3) as u32, seq: 1, ..header };
            script.end.handle_datagram(script.now, sent.to, sealed(header, vec![5; 40]).into());
        }
    }
}

/// Commands of the application on every call reported to it.
fn act(script: &mut Script, dice: &mut Dice) {
    for event in script.events() {
        let (Event::IncomingCall { call, .. } | Event::Readable(call) | Event::Finished(call, _)) = event
        else {
            continue;
        };
        match dice.below(5) {
            0 => while let Ok(Read::Data(_)) = script.end.read(script.now, call, 100) {},
            1 => {
                let _ = script.end.write(script.now, call, &mut Bytes::from_static(&[7; 3000]));
                let _ = script.end.finish_send(script.now, call);
            }
            2 => script.end.abort(script.now, call, 5),
            3 => script.end.release(script.now, call),
            _ => {}
        }
    }
}

#[test]
fn no_packet_makes_an_endpoint_panic() {
    let (mut moves, mut not_opened) = (0, 0);
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let (mut script, ours) = endpoint(&mut dice);
        for _ in 0..150 {
            let from = address(&mut dice);
            let datagram = match dice.per_mille(900) {
                true => likely_packet(&mut dice, ours),
                false => payload(&mut dice),
            };
            script.end.handle_datagram(script.now, from, datagram.into());
            if dice.per_mille(20) {
                script.end.handle_unreachable(script.now, from);
            }
            act(&mut script, &mut dice);
            prove(&mut script, &mut dice);
            if dice.per_mille(200) {
                script.wait_ms(dice.below(1500));
            }
        }
        // Unread, unreleased calls may remain, but time and memory stay bounded.
        script.wait(Duration::from_secs(100));
        let holdings = script.end.holdings();
        assert!(holdings.timers < 200 && holdings.calls < 200, "seed {seed}: {holdings:?}");
        moves += script.end.stats().moves;
        not_opened += script.end.stats().drops(DropReason::NotOpened);
    }
    assert!(moves > 0 && not_opened > 0, "the dice reach what they are for: {moves}, {not_opened}");
}

#[test]
fn no_input_makes_a_decoder_panic() {
    let mut dice = Dice::new(77);
    for _ in 0..20_000 {
        let bytes = payload(&mut dice);
        let _ = afs_rx::packet::Ack::decode(&bytes);
        let _ = afs_rx::packet::DebugQuery::decode(&bytes);
        if let Some(packets) = afs_rx::packet::Packets::new(bytes.into()) {
            assert!(packets.count() <= 3);
        }
    }
}

#[test]
fn seeded_scripts_pass_through_the_fuzz_target() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut script = Vec::new();
        for _ in 0..100 {
            let step = dice.next() as u8;
            script.push(step);
            if step & 7 < 4 {
                let header =
                    Header { service: 1, security_index: 0, ..likely_header(&mut dice, (EPOCH, CID)) };
                let datagram = [&header.to_bytes()[..], &payload(&mut dice)].concat();
                script.extend((datagram.len() as u16).to_be_bytes());
                script.extend(datagram);
            }
        }
        afs_rx::fuzzing::endpoint(&script);
    }
}
