//! Simulated datagram network: latency, loss, duplication and partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;
use std::task::Waker;
use std::time::Duration;

use afs_rpc::Instant;
use bytes::Bytes;

use crate::datagram::{PortId, PortState};
use crate::event_log::{Fate, Head, Line};
use crate::nat::Nat;
use crate::node::NodeId;
use crate::tap::{self, Seen, TapQueue};
use crate::tcp::Streams;
use crate::timeline::Event;
use crate::world::State;

/// Properties of the link in one direction between two nodes. Datagrams overtake each other where the latency varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// Shortest latency. Default 50 us.
    pub latency_min: Duration,
    /// Longest latency. Default 500 us.
    pub latency_max: Duration,
    /// Datagrams lost, per million. Default 0.
    pub loss_per_million: u32,
    /// Datagrams delivered twice, per million. Default 0.
    pub duplicate_per_million: u32,
    /// Datagrams delayed by another `latency_max * 20`, per million. Default 0.
    pub straggle_per_million: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            latency_min: Duration::from_micros(50),
            latency_max: Duration::from_micros(500),
            loss_per_million: 0,
            duplicate_per_million: 0,
            straggle_per_million: 0,
        }
    }
}

/// Counts of datagrams since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetStats {
    /// Handed to the network by ports.
    pub sent: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Delivered once more than sent.
    pub doubled: u64,
    /// Dropped by a partition between two nodes.
    pub cut: u64,
    /// No port was bound to the address.
    pub no_port: u64,
    /// The receiver's queue was full.
    pub overflow: u64,
    /// The receiver was suspended.
    pub asleep: u64,
}

#[derive(Default)]
pub(crate) struct Network {
    pub(crate) ports: BTreeMap<PortId, PortState>,
    pub(crate) bound: BTreeMap<SocketAddr, PortId>,
    pub(crate) owners: BTreeMap<IpAddr, NodeId>,
    pub(crate) cuts: BTreeSet<(NodeId, NodeId)>,
    pub(crate) nats: BTreeMap<NodeId, Nat>,
    pub(crate) link: LinkConfig,
    pub(crate) links: BTreeMap<(NodeId, NodeId), LinkConfig>,
    pub(crate) taps: Vec<Weak<TapQueue>>,
    pub(crate) arrival_taps: Vec<Weak<TapQueue>>,
    pub(crate) stream_taps: Vec<Weak<TapQueue>>,
    pub(crate) stats: NetStats,
    pub(crate) next_port: u64,
    pub(crate) streams: Streams,
}

impl State {
    /// Sends a datagram from a port, or an injected one. Returns the wakers of the taps that saw it.
    pub(crate) fn send(&mut self, from: SocketAddr, to: SocketAddr, data: Bytes) -> Vec<Waker> {
        self.net.stats.sent += 1;
        let from = self.translated(from, to);
        let fate = self.fate(from, to);
        let woken = self.show(from, to, &data, fate == Fate::Doubled);
        self.note_datagram(from, to, &data, fate);
        if matches!(fate, Fate::Lost | Fate::Cut) {
            return woken;
        }
        let copies = if fate == Fate::Doubled { 2 } else { 1 };
        for _ in 0..copies {
            let at = self.now + self.latency(from, to);
            self.timeline.add(at, Event::Arrival { from, to, data: data.clone() });
        }
        woken
    }

    fn show(&mut self, from: SocketAddr, to: SocketAddr, data: &Bytes, doubled: bool) -> Vec<Waker> {
        if self.net.taps.is_empty() || self.net.pair(from, to).is_none() {
            return Vec::new();
        }
        tap::show(&mut self.net.taps, &Seen { at: self.now, from, to, data: data.clone(), doubled })
    }

    fn fate(&mut self, from: SocketAddr, to: SocketAddr) -> Fate {
        let Some(pair) = self.net.pair(from, to) else { return Fate::Sent };
        let link = self.net.link_of(pair);
        let stats = &mut self.net.stats;
        if self.net.cuts.contains(&pair) {
            stats.cut += 1;
            Fate::Cut
        } else if self.rng.chance(link.loss_per_million) {
            stats.lost += 1;
            Fate::Lost
        } else if self.rng.chance(link.duplicate_per_million) {
            stats.doubled += 1;
            Fate::Doubled
        } else {
            Fate::Sent
        }
    }

    pub(crate) fn latency(&mut self, from: SocketAddr, to: SocketAddr) -> Duration {
        let Some(pair) = self.net.pair(from, to) else { return LOOPBACK_LATENCY };
        let link = self.net.link_of(pair);
        let mut latency = self.rng.duration(link.latency_min, link.latency_max);
        if self.rng.chance(link.straggle_per_million) {
            latency += self.rng.duration(Duration::ZERO, link.latency_max * STRAGGLE);
        }
        latency
    }

    /// A datagram arrives at its destination. A partition since it was sent drops it, too.
    pub(crate) fn arrive(&mut self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        if self.net.pair(from, to).is_some_and(|pair| self.net.cuts.contains(&pair)) {
            self.net.stats.cut += 1;
            return self.note_datagram(from, to, &data, Fate::Cut);
        }
        let inside = self.untranslated(from, to);
        let Some(id) = inside.and_then(|to| self.net.bound.get(&to).copied()) else {
            self.net.stats.no_port += 1;
            return self.note_datagram(from, to, &data, Fate::NoPort);
        };
        let asleep = self.net.ports.get(&id).is_some_and(|port| self.is_asleep(port.life.node));
        if asleep {
            self.net.stats.asleep += 1;
            return self.note_datagram(from, to, &data, Fate::Asleep);
        }
        let Some(port) = self.net.ports.get_mut(&id) else { return };
        if port.inbox.len() >= INBOX_MAX {
            self.net.stats.overflow += 1;
            return self.note_datagram(from, to, &data, Fate::Overflow);
        }
        port.inbox.push((from, data.clone()));
        self.make_ready(id);
        if !self.net.arrival_taps.is_empty() && self.net.pair(from, to).is_some() {
            // Nobody waits for arrivals, so that there is nobody to wake.
            tap::show(&mut self.net.arrival_taps, &Seen { at: self.now, from, to, data, doubled: false });
        }
    }

    fn note_datagram(&mut self, from: SocketAddr, to: SocketAddr, data: &Bytes, fate: Fate) {
        let mut head = Head::default();
        let len = data.len().min(head.len());
        head[..len].copy_from_slice(&data[..len]);
        self.event_log.add(self.now, Line::Datagram { from, to, len: data.len(), head, fate });
    }

    pub(crate) fn set_port_timeout(&mut self, id: PortId, at: Option<Instant>) -> Option<Event> {
        let port = self.net.ports.get_mut(&id)?;
        if port.timeout.map(|due| due.at) == at {
            return None;
        }
        let old = port.timeout.take();
        port.timeout = at.map(|at| self.timeline.add(at, Event::PortTimeout(id)));
        self.timeline.cancel(old?)
    }
}

impl Network {
    /// The two nodes of a datagram; `None` inside one node, where nothing is lost unless its link to itself has settings.
    fn pair(&self, from: SocketAddr, to: SocketAddr) -> Option<(NodeId, NodeId)> {
        let owner = |address: SocketAddr| self.owners.get(&address.ip()).copied().unwrap_or(NOBODY);
        let pair = (owner(from), owner(to));
        (pair.0 != pair.1 || self.links.contains_key(&pair)).then_some(pair)
    }

    /// Datagrams lost per million.
    pub(crate) fn loss_between(&self, from: SocketAddr, to: SocketAddr) -> u32 {
        self.pair(from, to).map_or(0, |pair| self.link_of(pair).loss_per_million)
    }

    fn link_of(&self, pair: (NodeId, NodeId)) -> LinkConfig {
        self.links.get(&pair).copied().unwrap_or(self.link)
    }
}

const LOOPBACK_LATENCY: Duration = Duration::from_micros(5);
/// Datagrams queued at one port, about what a socket buffer of 4 MiB holds.
const INBOX_MAX: usize = 4096;
const STRAGGLE: u32 = 20;
/// Stands for every address that belongs to no node.
const NOBODY: NodeId = NodeId(u32::MAX);
