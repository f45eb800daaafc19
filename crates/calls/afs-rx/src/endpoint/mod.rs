//! Rx endpoint of one UDP socket: its tables of connections, calls and peers, its timers and queues.

mod acks;
mod admission;
mod commands;

mod address_validation;
mod amplification;
mod call_limits;
mod client_packets;
mod control;
mod data;
mod datagram;
mod ending;
mod eviction;
mod handshake;
mod info;
mod migration;
mod opening;
mod packet_builder;
mod queries;
mod response_limit;
mod sealing;
mod server_packets;
mod services;
mod stream;
mod timeout;
mod transmit;

pub use info::{CallInfo, ConnectionInfo};
pub use opening::{Opened, Sealed};
pub use sealing::{Sealing, Turn};
pub use services::ServiceOptions;
pub use stream::ReadStart;
pub use transmit::Output;

use crate::Instant;
use crate::call::Call;
use crate::config::{Config, PACKET_SIZE_MIN};
use crate::connection::{Connection, ConnectionTable};
use crate::event::Event;
use crate::hash::HashSeed;
use crate::ids::Epoch;
use crate::packet::HEADER_LEN;
use crate::peer::Peer;
use crate::slab::{Key, Slab};
use crate::stats::Stats;
use crate::timer::{Owner, Timers};
use afs_env::admission::Admission;
use amplification::AmplificationLimit;
use control::ControlQueue;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use response_limit::ResponseLimit;
use services::ServiceList;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// One datagram to send, or a GSO batch of equal-sized ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Destination.
    pub to: SocketAddr,
    /// Bytes in the buffer.
    pub len: usize,
    /// When set, the buffer is a GSO batch of datagrams of this size, the last of which may be shorter.
    pub segment_size: Option<usize>,
}

/// Rx endpoint of one UDP socket: see the crate's documentation for how to drive it.
pub struct Endpoint {
    config: Config,
    random: ChaCha12Rng,
    epoch: Epoch,
    services: ServiceList,
    peers: Slab<Peer>,
    peers_by_address: HashMap<SocketAddr, Key, HashSeed>,
    connections: ConnectionTable,
    calls: Slab<Box<Call>>,
    /// Bytes held for calls that wait for admission; part of `Stats::buffered_bytes`.
    waiting_bytes: usize,
    /// Counts of calls begun by clients.
    call_limits: Admission<Key>,
    /// Structures of freed calls, ready for the next.
    // Boxed, since they move to and from the table as they are.
    #[allow(clippy::vec_box)]
    spare_calls: Vec<Box<Call>>,
    timers: Timers,
    /// Calls with something to transmit, each at most once.
    sending: VecDeque<Key>,
    control: ControlQueue,
    /// Packets that `poll_transmit` has not sealed yet.
    sealing: Option<Sealing>,
    /// Number of peers without a connection.
    idle_peers: usize,
    /// Start of the current second of answered queries, and their count.
    queries: (Instant, u32),
    responses: ResponseLimit,
    /// The connections that clients have opened, by what these have shown.
    admitted: Admission<Key>,
    amplification: AmplificationLimit,
    events: VecDeque<Event>,
    stats: Stats,
}

impl Endpoint {
    /// An endpoint that offers no service yet. The seed determines its epoch, its first connection id, its tables'
    /// hashing and its challenges: 32 bytes of real randomness, or of a simulator's.
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let hash = HashSeed(random.next_u64());
        let config = config.bounded();
        Endpoint {
            // docs/protocol/rx.md "3. Connections, ids, epochs": bit 31 set, bit 30 clear.
            epoch: Epoch(random.next_u32() & 0x3fff_ffff | 0x8000_0000),
            random,
            services: ServiceList::default(),
            peers: Slab::new(),
            peers_by_address: HashMap::with_hasher(hash),
            connections: ConnectionTable::new(hash),
            calls: Slab::new(),
            waiting_bytes: 0,
            call_limits: call_limits::incoming(&config),
            spare_calls: Vec::new(),
            timers: Timers::default(),
            sending: VecDeque::new(),
            control: ControlQueue::default(),
            sealing: None,
            idle_peers: 0,
            queries: (Instant::ZERO, 0),
            responses: ResponseLimit::new(hash),
            admitted: eviction::server_connections(config.server_connections_max),
            amplification: AmplificationLimit::new(hash),
            events: VecDeque::new(),
            stats: Stats::default(),
            config,
        }
    }

    /// When `handle_timeout` must be called next. May be earlier than needed, never later.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    fn connection_mut(&mut self, key: Key) -> Option<&mut Connection> {
        self.connections.slab.get_mut(key)
    }

    /// Updates a call's entries in the transmit queue and the timer heap after a change.
    fn reschedule(&mut self, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let Some(connection) = self.connections.slab.get(call.connection) else { return };
        let Some(peer) = self.peers.get(connection.peer) else { return };
        if !call.queued && !call.in_turn && call.has_output(capacity(connection, peer)) {
            call.queued = true;
            self.sending.push_back(key);
        }
        self.timers.arm(Owner::Connection(call.connection), call.deadline());
    }

    /// Arms the timer of a connection's own deadlines.
    fn arm_connection(&mut self, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        self.timers.arm(Owner::Connection(key), connection.own_deadline());
    }

    /// The peer at an address, created when unknown.
    fn peer(&mut self, now: Instant, address: SocketAddr) -> Key {
        if let Some(key) = self.peers_by_address.get(&address) {
            return *key;
        }
        let key = self.peers.insert_with(|_| Peer::new(address, &self.config, now));
        self.peers_by_address.insert(address, key);
        key
    }

    fn join_peer(&mut self, key: Key) {
        if let Some(peer) = self.peers.get_mut(key) {
            peer.connections += 1;
            self.idle_peers -= usize::from(std::mem::take(&mut peer.is_idle));
        }
    }

    fn leave_peer(&mut self, now: Instant, key: Key) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.connections = peer.connections.saturating_sub(1);
        if peer.connections > 0 {
            return;
        }
        if self.idle_peers >= self.config.idle_peers_max {
            self.remove_peer(key);
            return;
        }
        peer.idle_since = now;
        peer.is_idle = true;
        self.idle_peers += 1;
        self.timers.arm(Owner::Peer(key), now + self.config.peer_idle);
    }

    fn remove_peer(&mut self, key: Key) {
        let Some(peer) = self.peers.remove(key) else { return };
        self.amplification.forget(&peer);
        self.idle_peers -= usize::from(peer.is_idle);
        self.peers_by_address.remove(&peer.address);
        self.timers.disarm(Owner::Peer(key));
    }
}

/// Bytes of data that one packet to this peer holds.
fn capacity(connection: &Connection, peer: &Peer) -> usize {
    data_in(connection, peer.packet_size())
}

/// Bytes of data in a packet of this size.
fn data_in(connection: &Connection, packet_size: usize) -> usize {
    let overhead = connection.overhead();
    let room = packet_size.max(PACKET_SIZE_MIN) - HEADER_LEN;
    room.saturating_sub(overhead.header + overhead.trailer).max(1)
}
