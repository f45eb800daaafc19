//! Moves that make a server use memory, table entries and bandwidth.

use std::net::SocketAddr;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rx::packet::PacketType;
use afs_wire::fs;
use afs_wire::rpc::{ServiceId, encode_call};
use afs_wire::vl;
use bytes::Bytes;

use super::packet::{Wire, datagram, question};
use super::{Adversary, server};

impl Adversary {
    /// A connection that never existed before, without security.
    fn fresh(&mut self, service: ServiceId) -> Wire {
        // Half of them are bound to their address.
        Wire { epoch: self.number(), cid: self.number() & !3, security: 0, service: service.0 }
    }

    /// Sends the first packet of a call, and one far after it.
    pub(super) async fn leave_gaps(&mut self) {
        let (from, wire) = (self.false_source(), self.fresh(ServiceId::FILE));
        for channel in 0..4 {
            let far = 2890 + u32::try_from(self.rng.below(14)).unwrap_or(0);
            for seq in [1, far] {
                let header = wire.client(PacketType::DATA, channel, 1, seq, false);
                self.send(from, server(7000), datagram(&header, b"x")).await;
            }
        }
    }

    /// Sends only the first packet of calls.
    pub(super) async fn begin_calls(&mut self) {
        let from = self.false_source();
        for _ in 0..8 {
            let (port, service) =
                if self.rng.chance(700_000) { (7000, ServiceId::FILE) } else { (7003, ServiceId::LOCATION) };
            let wire = self.fresh(service);
            for channel in 0..4 {
                let header = wire.client(PacketType::DATA, channel, 1, 1, false);
                self.send(from, server(port), datagram(&header, b"x")).await;
            }
        }
    }

    /// Makes complete calls that anonymous users may make, and does not acknowledge the replies.
    pub(super) async fn leave_replies(&mut self) {
        let from = self.false_source();
        for _ in 0..4 {
            let wire = self.fresh(ServiceId::FILE);
            for channel in 0..4 {
                self.call(from, wire, channel, &encode_call(&fs::GetTime {})).await;
            }
        }
    }

    /// Makes connections, each with a complete call, from the adversary's own addresses.
    pub(super) async fn make_connections(&mut self) {
        for _ in 0..16 {
            let from = self.third();
            let wire = self.fresh(ServiceId::FILE);
            self.call(from, wire, 0, &encode_call(&fs::GetTime {})).await;
        }
    }

    /// Makes first contacts from callers that do not reply.
    pub(super) async fn say_nothing(&mut self) {
        let (from, wire) = (self.false_source(), self.fresh(ServiceId::FILE));
        self.call(from, wire, 0, &encode_call(&fs::FetchStatus { fid: self.root })).await;
    }

    /// Sends rxdebug requests to the server and to clients: about connections and peers, beyond the end of the list,
    /// and about the program; some of them with a source address that never replies.
    pub(super) async fn ask_questions(&mut self) {
        let from = if self.rng.chance(300_000) { self.false_source() } else { self.third() };
        let client = self.rng.pick(&self.victims).copied();
        let whom = client.filter(|_| self.rng.chance(300_000)).unwrap_or(server(7000));
        for _ in 0..16 {
            let kind = u32::try_from(self.rng.between(1, 6)).unwrap_or(1);
            let most = if self.rng.chance(700_000) { 12 } else { 70_000 };
            let index = u32::try_from(self.rng.below(most)).unwrap_or(0);
            self.send(from, whom, question(kind, index)).await;
        }
        self.env.sleep(Duration::from_millis(20)).await;
        if let Some((wire, _)) = self.told_by_rxdebug().first() {
            self.learned(&format!("rxdebug tells strangers the numbers of {wire:?}"));
        }
    }

    /// Sends single packets that have long replies, with one false source.
    pub(super) async fn amplify(&mut self) {
        let from = SocketAddr::from(([super::FALSE_NET, 0, 0, 1], 7001));
        let (files, locations) = (self.fresh(ServiceId::FILE), self.fresh(ServiceId::LOCATION));
        let status = encode_call(&fs::FetchStatus { fid: self.root });
        let name = vl::NameText::new(&b"root.cell"[..]).unwrap_or_default();
        let entry = encode_call(&vl::GetEntryByNameN { name });
        match self.rng.below(6) {
            0 => self.call(from, files, 0, &status).await,
            1 => self.call(from, Wire { security: 4, ..files }, 0, &status).await,
            2 => self.call(from, files, 0, &encode_call(&fs::GetStatistics64 { version: 16 })).await,
            3 => self.call_at(7003, from, locations, 0, &entry).await,
            4 => self.call_at(7003, from, Wire { security: 4, ..locations }, 0, &entry).await,
            _ => {
                let index = u32::try_from(self.rng.below(4)).unwrap_or(0);
                self.send(from, server(7000), question(1 + index, index)).await;
            }
        }
    }

    async fn call(&mut self, from: SocketAddr, wire: Wire, channel: u32, request: &[u8]) {
        self.call_at(7000, from, wire, channel, request).await;
    }

    async fn call_at(&mut self, port: u16, from: SocketAddr, wire: Wire, channel: u32, request: &[u8]) {
        let data: Bytes = datagram(&wire.client(PacketType::DATA, channel, 1, 1, true), request);
        self.send(from, server(port), data).await;
    }
}
