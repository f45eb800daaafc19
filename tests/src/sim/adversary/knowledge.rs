//! What the adversary knows from the packets that it hears: connections and requests.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use afs_rpc::Instant;
use afs_rx::packet::{Header, PacketType};
use afs_sim::Seen;
use bytes::Bytes;

use super::packet::Wire;

/// A connection between two honest machines.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The fields of its packets.
    pub wire: Wire,
    /// Its client.
    pub client: SocketAddr,
    /// Its server.
    pub server: SocketAddr,
    /// The highest call number seen on each channel.
    pub calls: [u32; 4],
    /// The last complete request of one packet on each channel.
    requests: [Option<(Instant, Bytes)>; 4],
}

/// Time, source, destination and packet.
pub type Request = (Instant, SocketAddr, SocketAddr, Bytes);

/// Connections by epoch and id, and requests in the order in which they were heard.
#[derive(Default)]
pub struct Knowledge {
    connections: BTreeMap<(u32, u32), Connection>,
    requests: VecDeque<Request>,
}

impl Knowledge {
    /// Records a datagram between honest machines.
    pub fn learn(&mut self, seen: &Seen) {
        let Some(header) = Header::decode(&seen.data) else { return };
        if header.kind != PacketType::DATA || !header.from_client() {
            return;
        }
        let (cid, channel) = (header.cid & !3, (header.cid & 3) as usize);
        let wire =
            Wire { epoch: header.epoch, cid, security: header.security_index, service: header.service };
        let known = self.connections.entry((wire.epoch, cid)).or_insert_with(|| Connection {
            wire,
            client: seen.from,
            server: seen.to,
            calls: [0; 4],
            requests: [const { None }; 4],
        });
        known.calls[channel] = known.calls[channel].max(header.call);
        if header.seq == 1 {
            known.requests[channel] = Some((seen.at, seen.data.clone()));
            if self.requests.len() == REQUESTS_MAX {
                self.requests.pop_front();
            }
            self.requests.push_back((seen.at, seen.from, seen.to, seen.data.clone()));
        }
        if self.connections.len() > CONNECTIONS_MAX {
            self.connections.pop_first();
        }
    }

    /// All connections to a port.
    pub fn connections(&self, port: u16) -> Vec<Connection> {
        self.connections.values().filter(|known| known.server.port() == port).cloned().collect()
    }

    /// The last request on each channel of each connection whose packets are protected.
    pub fn last_requests(&self) -> Vec<Request> {
        let protected = self.connections.values().filter(|known| known.wire.security != 0);
        let of = |known: &Connection| {
            let (client, server) = (known.client, known.server);
            let requests = known.requests.iter().flatten();
            requests.map(move |(at, data)| (*at, client, server, data.clone())).collect::<Vec<_>>()
        };
        protected.flat_map(of).collect()
    }

    /// The latest protected requests of all, newest last.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.requests.iter().filter(|(_, _, _, data)| data.get(23).is_some_and(|security| *security != 0))
    }
}

const REQUESTS_MAX: usize = 256;
const CONNECTIONS_MAX: usize = 256;
