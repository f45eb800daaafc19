//! Adversary on the network: it hears every packet and every byte of a stream between machines, sends from any address,
//! and keeps to a budget.
//!
//! It has no key and no token. The seed chooses its moves from the list that it is given; each move is one method of
//! this actor, in the file of its kind. `invariants` checks what must hold whatever it does.

mod connection_moves;
mod floods;
mod impersonation;
mod knowledge;
mod moves;
pub mod packet;
mod stream_moves;
mod streams_heard;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_env::ByteStream;
use afs_rpc::{EnvExt, EnvRef, Rx};
use afs_rx::packet::{Header, PacketType, flags};
use afs_sim::{NodeId, SimRng, Tap, World};
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::cell::{Cell, SERVER, client_address};
use super::faults::AtWork;
use super::invariants::Invariants;
use super::ledger::Ledger;
use super::user::User;
use knowledge::Knowledge;
pub use moves::Move;
use streams_heard::StreamsHeard;

/// The actor.
pub struct Adversary {
    world: World,
    env: EnvRef,
    node: NodeId,
    server: NodeId,
    tap: Tap,
    stream_tap: Tap,
    rng: SimRng,
    moves: Vec<Move>,
    knowledge: Knowledge,
    streams: StreamsHeard,
    /// Numbers of files are not secret: cache managers show them to everyone.
    ledger: Ledger,
    /// Gets a violation if the adversary learns a secret.
    invariants: Invariants,
    root: Fid,
    /// Callback addresses of the clients, and their machines.
    victims: Vec<SocketAddr>,
    machines: Vec<NodeId>,
    /// Endpoints as which it plays clients; they reply as long as it exists.
    fake_clients: Vec<Rx>,
    /// Streams on which it says nothing.
    open_streams: VecDeque<Box<dyn ByteStream>>,
    next_port: u16,
    next_source: u32,
    owed: Duration,
}

impl Adversary {
    /// Adds an adversary to a cell, for as long as its users work.
    pub fn spawn(
        cell: &Cell,
        moves: Vec<Move>,
        victims: &[User],
        invariants: Invariants,
        working: AtWork,
        rng: SimRng,
    ) {
        let world = cell.sim.world();
        let node = world.node("adversary", IpAddr::V4(THIRD));
        let env = world.env(node);
        let adversary = Adversary {
            tap: world.tap(),
            stream_tap: world.tap_streams(),
            node,
            server: cell.server,
            env: env.clone(),
            rng,
            moves,
            knowledge: Knowledge::default(),
            streams: StreamsHeard::default(),
            ledger: cell.machine.ledger.clone(),
            invariants,
            root: Fid::root(cell.volume()),
            victims: victims.iter().map(|user| client_address(user.number)).collect(),
            machines: victims.iter().map(|user| user.node).collect(),
            fake_clients: Vec::new(),
            open_streams: VecDeque::new(),
            next_port: 20_000,
            next_source: 1,
            owed: Duration::ZERO,
            world,
        };
        if adversary.moves.iter().any(|one| !one.is_of_the_world()) {
            env.spawn(Box::pin(adversary.work(working)));
        }
    }

    async fn work(mut self, working: AtWork) {
        while working.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            self.listen();
            if let Some(one) = self.rng.pick(&self.moves).copied() {
                self.world.note(format!("adversary: {one:?}"));
                self.play(one).await;
            }
            self.env.sleep(self.rng.duration(Duration::from_millis(5), Duration::from_millis(150))).await;
        }
    }

    async fn play(&mut self, one: Move) {
        match one {
            Move::Hijack => self.hijack().await,
            Move::Replay => self.replay().await,
            Move::ReplayEvicted => {
                self.make_connections().await;
                self.replay().await;
            }
            Move::Overtake => self.overtake().await,
            Move::Disturb => self.disturb().await,
            Move::SequenceGaps => self.leave_gaps().await,
            Move::IncompleteCalls => self.begin_calls().await,
            Move::UnackedReplies => self.leave_replies().await,
            Move::UnknownHosts => self.say_nothing().await,
            Move::Questions if self.rng.chance(250_000) => self.ask_client().await,
            Move::Questions => self.ask_questions().await,
            Move::Amplify => self.amplify().await,
            Move::Divert => self.divert().await,
            Move::IgnoreBreaks => self.take_promises().await,
            Move::FalseBreaks => self.break_promises().await,
            Move::SilentStreams => self.open_streams().await,
            Move::ReplayedStreams => self.replay_stream().await,
            Move::ForgedCapabilities => self.forge_capability().await,
            Move::CutStreams => self.cut_streams().await,
            one => debug_assert!(one.is_of_the_world()),
        }
    }

    /// Reports that the adversary knows a secret.
    fn learned(&self, what: &str) {
        self.invariants.complain(format!("the adversary has learned: {what}"));
    }

    /// Learns from heard packets, receives replies at third addresses, and aborts calls that arrive there.
    fn listen(&mut self) {
        for seen in self.tap.take() {
            if is_third(seen.to) {
                self.refuse(seen.to, seen.from, &seen.data);
            } else if !is_third(seen.from) && !is_false(seen.from) && !is_false(seen.to) {
                self.knowledge.learn(&seen);
            }
        }
        for seen in self.stream_tap.take() {
            if seen.to == stream_moves::drive() && !is_third(seen.from) {
                self.streams.learn(&seen);
            }
        }
    }

    fn refuse(&self, us: SocketAddr, from: SocketAddr, data: &Bytes) {
        let Some(header) = Header::decode(data) else { return };
        if us.port() >= FAKE_CLIENTS || header.kind != PacketType::DATA {
            return;
        }
        if !header.from_client() {
            // A reply: only its connection matters.
            let flags = header.flags | flags::CLIENT_INITIATED;
            let taken = Header { kind: PacketType::ACK_ALL, flags, seq: 0, ..header };
            self.world.inject(us, from, packet::datagram(&taken, &[]));
            return;
        }
        let flags = header.flags & !flags::CLIENT_INITIATED;
        let answer = Header { kind: PacketType::ABORT, flags, seq: 0, ..header };
        self.world.inject(us, from, packet::datagram(&answer, &(-1_i32).to_be_bytes()));
    }

    /// Sends a packet, within the budget.
    async fn send(&mut self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.owed += Duration::from_secs(1) / PACKETS_PER_SECOND
            + Duration::from_secs(u64::from(bytes)) / BYTES_PER_SECOND;
        self.world.inject(from, to, data);
        if self.owed > Duration::from_millis(50) {
            let owed = std::mem::take(&mut self.owed);
            self.env.sleep(owed).await;
        }
    }

    /// An unused port of the adversary's own address.
    fn third(&mut self) -> SocketAddr {
        self.next_port = if self.next_port < FAKE_CLIENTS - 1 { self.next_port + 1 } else { 20_000 };
        SocketAddr::new(IpAddr::V4(THIRD), self.next_port)
    }

    /// An address without a machine, which never replies.
    fn false_source(&mut self) -> SocketAddr {
        self.next_source += 1;
        let [_, b, c, d] = self.next_source.to_be_bytes();
        SocketAddr::from(([FALSE_NET, b, c, d], 7001))
    }
}

/// Whether the address is the adversary's own.
#[must_use]
pub fn is_third(address: SocketAddr) -> bool {
    address.ip() == IpAddr::V4(THIRD)
}

/// Whether the address is a false source.
#[must_use]
pub fn is_false(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[0] == FALSE_NET)
}

/// The server's address with this port.
fn server(port: u16) -> SocketAddr {
    SocketAddr::new(SERVER.into(), port)
}

const THIRD: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
const FALSE_NET: u8 = 99;
/// From this port on, the adversary's address has endpoints of Rx.
const FAKE_CLIENTS: u16 = 40_000;
const PACKETS_PER_SECOND: u32 = 150;
const BYTES_PER_SECOND: u32 = 64 << 10;
