//! Moves on the connections of honest users.

use std::net::SocketAddr;
use std::time::Duration;

use afs_rx::packet::{DEBUG_CONNECTION_LEN, Header, PacketType};
use afs_wire::fs::{self, Name, SetStatus};
use afs_wire::rpc::{Request, encode_call};
use bytes::Bytes;

use super::knowledge::Connection;
use super::packet::{Wire, datagram, question};
use super::{Adversary, is_third, server};

impl Adversary {
    /// Makes calls on connections known from packets or rxdebug.
    pub(super) async fn hijack(&mut self) {
        let us = self.third();
        for index in 0..8 {
            self.send(us, server(7000), question(ALL_CONNECTIONS, index)).await;
        }
        let told = self.told_by_rxdebug();
        let known = self.knowledge.connections(7000).into_iter().map(|known| (known.wire, known.calls));
        let targets: Vec<_> = known.chain(told).collect();
        let Some((wire, calls)) = self.rng.pick(&targets).copied() else { return };
        for channel in 0..4 {
            let us = self.third();
            let ahead = u32::try_from(self.rng.between(1, 2)).unwrap_or(1);
            let call = self.request();
            let number = calls[channel as usize].wrapping_add(ahead);
            let header = wire.client(PacketType::DATA, channel, number, 1, true);
            self.send(us, server(7000), datagram(&header, &call)).await;
        }
    }

    /// Connections in replies of rxdebug: an old server shows epochs, ids and call numbers to everyone.
    pub(super) fn told_by_rxdebug(&mut self) -> Vec<(Wire, [u32; 4])> {
        let seen = self.tap.take();
        let mut told = Vec::new();
        for seen in seen {
            if let Some(answer) = seen.data.get(28..28 + DEBUG_CONNECTION_LEN).filter(|_| is_third(seen.to)) {
                told.extend(described(answer));
            } else if !is_third(seen.to) && !is_third(seen.from) {
                self.knowledge.learn(&seen);
            }
        }
        told
    }

    /// A request that would return a secret or change something; or any opcode without arguments.
    fn request(&mut self) -> Vec<u8> {
        let files = self.ledger.files();
        let fid = self.rng.pick(&files).copied().unwrap_or(self.root);
        let name = Name::new(&b"stolen"[..]).unwrap_or_default();
        let status = SetStatus::default();
        match self.rng.below(6) {
            0 => encode_call(&fs::FetchData64 { fid, position: 0, length: 4096 }),
            1 => encode_call(&fs::MakeDir { dir: self.root, name, status }),
            2 => {
                let (position, length, file_length) = (0, 4, 4);
                let call = fs::StoreData64 { fid, status, position, length, file_length };
                [&encode_call(&call)[..], b"torn"].concat()
            }
            3 => encode_call(&fs::RemoveFile { dir: self.root, name }),
            4 => encode_call(&fs::GiveUpAllCallBacks {}),
            _ => {
                let (opcode, _) = fs::OPCODES[self.rng.index(fs::OPCODES.len())];
                [&opcode.to_be_bytes()[..], &[0; 64]].concat()
            }
        }
    }

    /// Sends requests from another address a moment after they were heard: some arrive before the original.
    pub(super) async fn overtake(&mut self) {
        for _ in 0..50 {
            let seen = self.tap.next().await;
            let us = self.third();
            for seen in seen {
                let is_request = Header::decode(&seen.data).is_some_and(|header| {
                    header.kind == PacketType::DATA && header.from_client() && header.security_index != 0
                });
                if is_request && !is_third(seen.from) && !is_third(seen.to) {
                    self.send(us, seen.to, seen.data).await;
                }
            }
        }
    }

    /// Sends requests again, some seconds later: the last of each channel, and a few older ones.
    pub(super) async fn replay(&mut self) {
        let mut packets = self.knowledge.last_requests();
        let older: Vec<_> = self.knowledge.requests().rev().take(32).cloned().collect();
        packets.extend((0..4).filter_map(|_| self.rng.pick(&older).cloned()));
        let (us, now) = (self.third(), self.env.now());
        packets.retain(|(at, ..)| now - *at > Duration::from_secs(2));
        for (_, client, to, data) in packets.into_iter().rev().take(24) {
            let from = if self.rng.chance(250_000) { client } else { us };
            self.send(from, to, data).await;
        }
    }

    /// Sends aborts and garbage to both ends.
    pub(super) async fn disturb(&mut self) {
        let known = self.knowledge.connections(7000);
        let Some(connection) = self.rng.pick(&known).cloned() else { return };
        let us = self.third();
        for _ in 0..4 {
            let (to, data) = self.disturbance(&connection);
            self.send(us, to, data).await;
        }
    }

    fn disturbance(&mut self, connection: &Connection) -> (SocketAddr, Bytes) {
        let Connection { wire, client, server, calls, .. } = connection;
        let channel = u32::try_from(self.rng.below(4)).unwrap_or(0);
        let current = calls[channel as usize];
        let mut garbage = vec![0; 40];
        self.rng.fill(&mut garbage);
        let code = (-3_i32).to_be_bytes();
        match self.rng.below(7) {
            0 => (*server, datagram(&wire.client(PacketType::ABORT, 0, 0, 0, false), &code)),
            1 => (*server, datagram(&wire.client(PacketType::ABORT, channel, current, 0, false), &code)),
            2 => (*server, datagram(&wire.client(PacketType::DATA, channel, current + 1, 1, true), &garbage)),
            3 => (*server, datagram(&wire.client(PacketType::RESPONSE, 0, 0, 0, false), &garbage)),
            4 => (*client, datagram(&wire.server(PacketType::ABORT, 0, 0, 0), &code)),
            5 => (*client, datagram(&wire.server(PacketType::ABORT, channel, current, 0), &code)),
            _ => (*client, datagram(&wire.server(PacketType::DATA, channel, current, 1), &garbage)),
        }
    }

    /// Sends breaks and resets to a client: from a false source, or from its server, whose address the client has
    /// validated.
    pub(super) async fn break_promises(&mut self) {
        let Some(victim) = self.rng.pick(&self.victims).copied() else { return };
        let in_its_name = self.rng.chance(700_000);
        for _ in 0..16 {
            let from = if in_its_name { server(7000) } else { self.third() };
            let wire =
                Wire { epoch: 0x8000_0000 | self.number(), cid: self.number() & !3, security: 0, service: 1 };
            let header = wire.client(PacketType::DATA, 0, 1, 1, true);
            let call = self.false_break();
            self.send(from, victim, datagram(&header, &call)).await;
        }
    }

    fn false_break(&mut self) -> Vec<u8> {
        let whole = afs_wire::ids::Fid::whole_volume(self.root.volume);
        let files = self.ledger.files();
        let fids = match self.rng.below(2) {
            0 => fs::Fids::first_of((0..50).map(|_| whole)),
            _ => fs::Fids::first_of(files.into_iter().chain([self.root])),
        };
        match self.rng.below(4) {
            0 => encode_call(&afs_wire::cb::InitCallBackState {}),
            1 => afs_wire::cb::GetCe64::OPCODE.to_be_bytes().iter().chain(&[0; 4]).copied().collect(),
            _ => encode_call(&afs_wire::cb::CallBack { fids, callbacks: fs::Promises::new() }),
        }
    }

    /// 32 random bits.
    pub(super) fn number(&mut self) -> u32 {
        u32::try_from(self.rng.u64() >> 32).unwrap_or(0)
    }
}

/// A server connection in a reply of rxdebug: docs/protocol/rx.md "13. DEBUG and VERSION".
fn described(answer: &[u8]) -> Option<(Wire, [u32; 4])> {
    let word = |at: usize| {
        answer.get(at..at + 4).and_then(|four| Some(u32::from_be_bytes(four.try_into().ok()?))).unwrap_or(0)
    };
    let (cid, epoch) = (word(4), word(132));
    let is_server = answer.get(35) == Some(&1);
    let security = *answer.get(36)?;
    let wire = Wire { epoch, cid: cid & !3, security, service: 1 };
    (is_server && security != 0 && cid != u32::MAX && epoch != 0)
        .then(|| (wire, [word(12), word(16), word(20), word(24)]))
}

const ALL_CONNECTIONS: u32 = 3;
