//! One address of a file server: its connections, its distance, and whether it replies.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::{CallOptions, Connection, Instant, Rx, sync};
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use crate::identity::{Credentials, TokenId};
use crate::location::Absence;

/// Assumed round-trip time of an unmeasured server: neither near nor far.
const UNMEASURED: Duration = Duration::from_millis(20);

/// Least time between two increases of the penalty on the distance of a server that became unreachable. Each increase
/// doubles it, between [`PENALTY_MIN`] and [`PENALTY_MAX`].
const PENALTY_AGAIN: Duration = Duration::from_secs(30);
const PENALTY_MIN: Duration = Duration::from_millis(50);
const PENALTY_MAX: Duration = Duration::from_secs(10);
/// The penalty is halved each time this has passed.
const PENALTY_HALVES: Duration = Duration::from_secs(60);
/// Dead time of probes, shorter than that of calls.
const PROBE_DEAD: Duration = Duration::from_secs(6);

/// Rank of an address to which none was given: that of a file server in the same subnet of OpenAFS's client (docs/protocol/client.md "4.
/// Choosing servers").
pub(super) const RANK_USUAL: u16 = 20_000;

/// Connections kept per address, one for each token.
const CONNECTIONS_MAX: usize = 256;

/// One address of a file server.
pub(crate) struct Address {
    pub peer: SocketAddr,
    /// Anonymous connection.
    connection: Connection,
    /// Connection for probes, which must not wait for a channel that hanging calls occupy.
    probing: Connection,
    /// Authenticated connections, by token.
    connections: Mutex<BTreeMap<TokenId, Connection>>,
    options: CallOptions,
    /// Serialises the first contact.
    pub contacting: sync::Mutex<()>,
    /// True if first contact was made since the server was last unreachable.
    pub contacted: AtomicBool,
    /// True if a task has begun to measure the round-trip time.
    claimed: AtomicBool,
    /// Smoothed round-trip time in nanoseconds; 0 if not measured.
    round_trip: AtomicU64,
    /// Whether it replies.
    pub absence: Absence,
    /// Penalty on its distance in nanoseconds, and when it was set.
    penalty: Mutex<(u64, Instant)>,
    /// Rank that was given to it; 0: none.
    rank: AtomicU16,
}

impl Address {
    pub fn new(rx: &Rx, peer: SocketAddr, dead: Duration) -> Self {
        let connection = rx.connection(peer, ServiceId::FILE, afs_rpc::Security::null());
        let options = CallOptions { dead: Some(dead), hard: None };
        let probing = CallOptions { dead: Some(dead.min(PROBE_DEAD)), hard: None };
        Address {
            peer,
            connections: Mutex::default(),
            probing: connection.clone().with_options(probing),
            connection: connection.with_options(options),
            options,
            contacting: sync::Mutex::new(()),
            contacted: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
            round_trip: AtomicU64::new(0),
            absence: Absence::default(),
            penalty: Mutex::new((0, Instant::ZERO)),
            rank: AtomicU16::new(0),
        }
    }

    /// The rank that was given to it.
    pub fn given_rank(&self) -> Option<u16> {
        Some(self.rank.load(Ordering::Relaxed)).filter(|rank| *rank != 0)
    }

    /// The rank by which it is chosen.
    pub(super) fn rank(&self) -> u16 {
        self.given_rank().unwrap_or(RANK_USUAL)
    }

    /// Gives it a rank, or takes it away.
    pub(super) fn set_rank(&self, rank: Option<u16>) {
        self.rank.store(rank.unwrap_or(0), Ordering::Relaxed);
    }

    /// Largest packet that is known to arrive there, if larger ones may be swallowed.
    pub fn narrow_path(&self) -> Option<usize> {
        self.connection.rx().narrow_path(self.peer)
    }

    /// Something else than calls has lost its way there.
    pub fn doubt_path(&self) {
        self.connection.rx().doubt_path(self.peer);
    }

    /// Claims the first probe: true if it was not probed yet; the caller must do it.
    pub fn claim_first_probe(&self) -> bool {
        !self.absence.has_replied() && !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// Connection for probes.
    pub fn probing(&self) -> Connection {
        self.probing.clone()
    }

    /// Connection with credentials.
    pub fn connection(&self, rx: &Rx, credentials: &Credentials) -> Connection {
        if credentials.id == TokenId::NONE {
            return self.anonymous();
        }
        let mut connections = self.connections.lock();
        if connections.len() >= CONNECTIONS_MAX && !connections.contains_key(&credentials.id) {
            // That of the oldest token. If the token is still used it gets another one, which shares the same Rx
            // connections.
            connections.pop_first();
        }
        let make = || {
            let connection = rx.connection(self.peer, ServiceId::FILE, credentials.security.clone());
            connection.with_options(self.options)
        };
        connections.entry(credentials.id).or_insert_with(make).clone()
    }

    /// Number of the connections of tokens.
    #[cfg(test)]
    pub fn connections(&self) -> usize {
        self.connections.lock().len()
    }

    /// Drops the connection of a token: its next call makes another one.
    pub fn forget_connection(&self, token: TokenId) {
        self.connections.lock().remove(&token);
    }

    /// Anonymous connection.
    pub fn anonymous(&self) -> Connection {
        self.connection.clone()
    }

    /// True if the last call found it unreachable.
    pub fn is_unreachable(&self) -> bool {
        self.absence.is_unreachable()
    }

    /// Records that a call begun at `begun` got no reply. Returns true if the address was reachable before.
    pub fn became_unreachable(&self, begun: Instant, now: Instant) -> bool {
        self.contacted.store(false, Ordering::SeqCst);
        let is_news = self.absence.began(begun, now);
        self.add_penalty(is_news, now);
        is_news
    }

    fn add_penalty(&self, is_news: bool, now: Instant) {
        let left = self.penalty(now);
        let mut penalty = self.penalty.lock();
        if is_news || now.saturating_since(penalty.1) >= PENALTY_AGAIN {
            *penalty = ((left * 2).clamp(PENALTY_MIN, PENALTY_MAX).as_nanos() as u64, now);
        }
    }

    /// Records the duration of a call without work.
    pub fn measured(&self, took: Duration) {
        let took = took.as_nanos().min(u128::from(u64::MAX)).max(1) as u64;
        let smoothed = match self.round_trip.load(Ordering::Relaxed) {
            0 => took,
            old => old - old / 4 + took / 4,
        };
        self.round_trip.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// Sets the round-trip time measured by the packets of all calls.
    pub fn known_round_trip(&self, smoothed: Duration) {
        let nanos = smoothed.as_nanos().min(u128::from(u64::MAX)).max(1) as u64;
        self.round_trip.store(nanos, Ordering::Relaxed);
    }

    pub fn round_trip(&self) -> Duration {
        self.measured_round_trip().unwrap_or(UNMEASURED)
    }

    /// The round trip, if it was measured.
    pub fn measured_round_trip(&self) -> Option<Duration> {
        match self.round_trip.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// The remaining penalty: a server that failed is not the first choice as soon as it is reachable again.
    pub(super) fn penalty(&self, now: Instant) -> Duration {
        let (nanos, since) = *self.penalty.lock();
        let halvings = now.saturating_since(since).as_secs() / PENALTY_HALVES.as_secs();
        Duration::from_nanos(nanos.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0))
    }
}
