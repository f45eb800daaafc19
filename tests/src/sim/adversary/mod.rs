//! Adversary on the network: it hears every packet and every byte of a stream between machines, sends from any address, has
//! hundreds of addresses of its own, and keeps to one budget for them all.
//!
//! It has no key and no token. The seed chooses its moves from the list that it is given; each move is one method of
//! this actor, in the file of its kind. `invariants` checks what must hold whatever it does.

mod account;
mod addresses;
pub mod answers;
mod connection_moves;
mod floods;
mod impersonation;
mod knowledge;
mod moves;
pub mod packet;
mod stream_moves;
mod streams_heard;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use afs_env::ByteStream;
use afs_rpc::{EnvExt, EnvRef, Rx};
use afs_sim::{Arrivals, NodeId, Seen, SimRng, Tap, World};
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::cell::{Cell, SERVER, client_address};
use super::faults::AtWork;
use super::invariants::Invariants;
use super::ledger::Ledger;
use super::user::User;
pub use account::{Account, Spent};
use addresses::{Addresses, FAKE_CLIENTS, FALSE_NET};
pub use addresses::{is_false, is_third};
use knowledge::Knowledge;
pub use moves::Move;
use streams_heard::StreamsHeard;

/// The actor.
pub struct Adversary {
    world: World,
    env: EnvRef,
    addresses: Addresses,
    account: Account,
    arrivals: Arrivals,
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
    ) -> Account {
        let world = cell.sim.world();
        let addresses = Addresses::new(&world);
        let (env, account) = (addresses.first().env.clone(), Account::default());
        let adversary = Adversary {
            tap: world.tap(),
            stream_tap: world.tap_streams(),
            arrivals: world.arrivals(),
            addresses,
            account: account.clone(),
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
            owed: Duration::ZERO,
            world,
        };
        if adversary.moves.iter().any(|one| !one.is_of_the_world()) {
            let answering =
                answers::answer_for_all(adversary.world.clone(), adversary.world.tap(), account.clone());
            env.spawn(Box::pin(answering));
            env.spawn(Box::pin(adversary.work(working)));
        }
        account
    }

    async fn work(mut self, working: AtWork) {
        while working.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            self.listen();
            if !self.account.has_some() {
                break;
            }
            if let Some(one) = self.rng.pick(&self.moves).copied() {
                self.world.note(format!("adversary: {one:?}"));
                self.account.plays(one);
                self.play(one).await;
            }
            self.env.sleep(self.rng.duration(Duration::from_millis(5), Duration::from_millis(150))).await;
        }
        self.listen();
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
            Move::ManyAddresses => self.make_connections().await,
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

    /// Learns from heard packets, and counts those of its own that have arrived.
    fn listen(&mut self) {
        for seen in self.tap.take() {
            if !is_third(seen.to) && !is_third(seen.from) && !is_false(seen.from) && !is_false(seen.to) {
                self.knowledge.learn(&seen);
            }
        }
        self.arrivals.take().iter().for_each(|seen| self.account.arrived(seen));
        self.account.forget_lost(self.env.now());
        self.listen_to_streams();
    }

    /// Learns from the bytes of streams, and returns them.
    fn listen_to_streams(&mut self) -> Vec<Seen> {
        let seen = self.stream_tap.take();
        let to_drive = seen.iter().filter(|seen| seen.to == stream_moves::drive() && !is_third(seen.from));
        to_drive.for_each(|seen| self.streams.learn(seen));
        seen
    }

    /// Sends a packet, within the budget.
    async fn send(&mut self, from: SocketAddr, to: SocketAddr, data: Bytes) {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.owed += Duration::from_secs(1) / PACKETS_PER_SECOND
            + Duration::from_secs(u64::from(bytes)) / BYTES_PER_SECOND;
        self.account.sends(self.env.now(), (from, to), &data, false);
        self.world.inject(from, to, data);
        if self.owed > Duration::from_millis(50) {
            let owed = std::mem::take(&mut self.owed);
            self.env.sleep(owed).await;
        }
    }

    /// An unused port of one of the adversary's own addresses.
    fn third(&mut self) -> SocketAddr {
        self.addresses.third()
    }

    /// An address without a machine, which never replies.
    fn false_source(&mut self) -> SocketAddr {
        self.addresses.false_source()
    }
}

/// The server's address with this port.
fn server(port: u16) -> SocketAddr {
    SocketAddr::new(SERVER.into(), port)
}

const PACKETS_PER_SECOND: u32 = 150;
const BYTES_PER_SECOND: u32 = 64 << 10;
