//! Network address translator before a node: its datagrams leave from a public address, each port of the node under a port of its own,
//! and what comes to that port reaches the node as long as the node has sent something there lately.
//!
//! Streams are not translated.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afs_rpc::Instant;

use crate::node::NodeId;
use crate::world::{State, World};

/// First public port that is given out.
const FIRST_PORT: u16 = 20_000;

/// The translator of a node.
pub(crate) struct Nat {
    public: IpAddr,
    lifetime: Duration,
    next_port: u16,
    mappings: Vec<Mapping>,
}

/// A port of the node, the public port that stands for it, and when the node sent to each peer last.
struct Mapping {
    inside: SocketAddr,
    port: u16,
    peers: BTreeMap<SocketAddr, Instant>,
}

impl World {
    /// Puts a node behind a translator with this public address, in place of an earlier one, whose mappings end. A peer reaches the node
    /// for `lifetime` after the node has sent it something; a port that no peer reaches any more is mapped anew, to another one.
    pub fn translate(&self, node: NodeId, public: IpAddr, lifetime: Duration) {
        self.note(format!("{} is behind {public}", self.name(node)));
        self.add_address(node, public);
        let nat = Nat { public, lifetime, next_port: FIRST_PORT, mappings: Vec::new() };
        self.with(|state| state.net.nats.insert(node, nat));
    }
}

impl State {
    /// The source of a datagram behind the translator of its sender.
    pub(crate) fn translated(&mut self, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        if self.net.nats.is_empty() {
            return from;
        }
        let owner = |ip| self.net.owners.get(&ip).copied();
        let node = owner(from.ip()).filter(|node| owner(to.ip()) != Some(*node));
        match node.and_then(|node| self.net.nats.get_mut(&node)) {
            Some(nat) => nat.leaving(from, to, self.now),
            None => from,
        }
    }

    /// The destination of a datagram behind a translator; `None`: the translator lets it not through.
    pub(crate) fn untranslated(&self, from: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
        let owner = |ip| self.net.owners.get(&ip);
        match owner(to.ip())
            .filter(|node| owner(from.ip()) != Some(node))
            .and_then(|node| self.net.nats.get(node))
        {
            Some(nat) if nat.public == to.ip() => nat.arriving(from, to.port(), self.now),
            // An address that the node had before, or has inside: no way leads there.
            Some(_) => None,
            None => Some(to),
        }
    }
}

impl Nat {
    fn leaving(&mut self, inside: SocketAddr, to: SocketAddr, now: Instant) -> SocketAddr {
        let lifetime = self.lifetime;
        self.mappings.retain(|mapping| mapping.peers.values().any(|at| *at + lifetime >= now));
        let at = self.mappings.iter().position(|mapping| mapping.inside == inside).unwrap_or_else(|| {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            self.mappings.push(Mapping { inside, port, peers: BTreeMap::new() });
            self.mappings.len() - 1
        });
        let mapping = &mut self.mappings[at];
        mapping.peers.insert(to, now);
        SocketAddr::new(self.public, mapping.port)
    }

    fn arriving(&self, from: SocketAddr, port: u16, now: Instant) -> Option<SocketAddr> {
        let mapping = self.mappings.iter().find(|mapping| mapping.port == port)?;
        let last = mapping.peers.get(&from)?;
        (*last + self.lifetime >= now).then_some(mapping.inside)
    }
}
