//! What the adversary's hosts answer: they receive what is sent to them, and so their addresses are validated.

use std::net::SocketAddr;

use afs_rx::packet::{Ack, AckTrailer, Header, PacketType, flags, reason};
use afs_sim::{Tap, World};
use bytes::Bytes;

use super::account::Account;
use super::addresses::{FAKE_CLIENTS, is_third};
use super::packet::datagram;

/// Answers for all hosts of the adversary: pings, replies, which are acknowledged, and calls, which are aborted.
pub(super) async fn answer_for_all(world: World, tap: Tap, account: Account) {
    loop {
        for seen in tap.next().await {
            let is_asked = is_third(seen.to) && seen.to.port() < FAKE_CLIENTS && account.has_some();
            if let Some(answer) = is_asked.then(|| answer(&seen.data)).flatten() {
                send(&world, &account, seen.to, seen.from, answer);
            }
        }
    }
}

fn send(world: &World, account: &Account, from: SocketAddr, to: SocketAddr, answer: Bytes) {
    account.sends(world.now(), (from, to), &answer, true);
    world.inject(from, to, answer);
}

fn answer(data: &Bytes) -> Option<Bytes> {
    let header = Header::decode(data)?;
    match header.kind {
        PacketType::ACK => ping_reply(data).map(Bytes::from),
        // A call of the server's.
        PacketType::DATA if header.from_client() => {
            let flags = header.flags & !flags::CLIENT_INITIATED;
            let answer = Header { kind: PacketType::ABORT, flags, seq: 0, ..header };
            Some(datagram(&answer, &(-1_i32).to_be_bytes()))
        }
        PacketType::DATA => {
            let flags = header.flags | flags::CLIENT_INITIATED;
            Some(datagram(&Header { kind: PacketType::ACK_ALL, flags, seq: 0, ..header }, &[]))
        }
        _ => None,
    }
}

/// The reply to a ping, if a datagram is one.
#[must_use]
pub fn ping_reply(datagram: &[u8]) -> Option<Vec<u8>> {
    let header = Header::decode(datagram).filter(|header| header.kind == PacketType::ACK)?;
    let ping = Ack::decode(datagram.get(28..)?).filter(|ack| ack.reason == reason::PING)?;
    let trailer = AckTrailer {
        mtu_max: Some(1444),
        mtu_interface: Some(1444),
        window: Some(32),
        jumbo_packets: Some(1),
    };
    let answer = Ack {
        buffer_space: 0,
        skew_max: 0,
        first: 1,
        previous: 0,
        serial: header.serial,
        reason: reason::PING_RESPONSE,
        soft: &[],
        trailer,
    };
    let ours = Header { flags: header.flags ^ flags::CLIENT_INITIATED, serial: ping.first + 1, ..header };
    let mut out = ours.to_bytes().to_vec();
    answer.encode(&mut out);
    Some(out)
}
