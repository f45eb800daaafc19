//! File servers and their addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::{CallOptions, Connection, Instant, Rx, sync};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use crate::identity::{Credentials, TokenId};
use crate::key::CellIndex;
use crate::promise::ServerReset;

/// What is assumed of a server nobody has measured: neither near nor far.
const UNMEASURED: Duration = Duration::from_millis(20);

/// What a silence adds to a server's distance at first; each further one, at most one in this time, doubles it.
const PENALTY_AGAIN: Duration = Duration::from_secs(30);
const PENALTY_MIN: Duration = Duration::from_millis(50);
const PENALTY_MAX: Duration = Duration::from_secs(10);
/// After this long half of it is forgotten.
const PENALTY_HALVES: Duration = Duration::from_secs(60);
/// A probe must not take as long as a call may.
const PROBE_DEAD: Duration = Duration::from_secs(6);

/// People whose connections to one address are kept at hand.
const CONNECTIONS_MAX: usize = 256;

/// One address of a file server.
pub(crate) struct Address {
    pub peer: SocketAddr,
    /// As nobody in particular.
    connection: Connection,
    /// For probes, which must not wait until calls that hang leave a channel free.
    probing: Connection,
    /// As the others who have called lately.
    connections: Mutex<BTreeMap<TokenId, Connection>>,
    options: CallOptions,
    /// Serialises the first contact.
    pub contacting: sync::Mutex<()>,
    /// Whether the server has met us at this address since it was last silent.
    pub contacted: AtomicBool,
    /// Somebody has begun to find out how near it is.
    claimed: AtomicBool,
    /// Nanoseconds of a round trip, smoothed; 0 is not measured.
    round_trip: AtomicU64,
    /// When it was last found silent, 0 if it is up.
    unreachable_at: AtomicU64,
    /// When it last answered.
    heard_at: AtomicU64,
    /// When the first call began that it did not answer; of use while it is silent.
    unreachable_since: AtomicU64,
    /// Somebody asks it again and again whether it is back.
    watched: AtomicBool,
    /// Nanoseconds added to its distance for being silent, and since when they wear off.
    penalty: Mutex<(u64, Instant)>,
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
            unreachable_at: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            unreachable_since: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            penalty: Mutex::new((0, Instant::ZERO)),
        }
    }

    /// Whether nobody has probed it yet. He who is told so does it.
    pub fn claim_first_probe(&self) -> bool {
        self.heard_at.load(Ordering::Relaxed) == 0 && !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// What to probe it through.
    pub fn probing(&self) -> Connection {
        self.probing.clone()
    }

    /// What to call it through with a proof.
    pub fn connection(&self, rx: &Rx, credentials: &Credentials) -> Connection {
        if credentials.id == TokenId::NONE {
            return self.anonymous();
        }
        let mut connections = self.connections.lock();
        if connections.len() >= CONNECTIONS_MAX && !connections.contains_key(&credentials.id) {
            // The oldest token's. Whoever still has it gets another, which shares the same Rx connections.
            connections.pop_first();
        }
        let make = || {
            let connection = rx.connection(self.peer, ServiceId::FILE, credentials.security.clone());
            connection.with_options(self.options)
        };
        connections.entry(credentials.id).or_insert_with(make).clone()
    }

    /// What to call it through as nobody in particular.
    pub fn anonymous(&self) -> Connection {
        self.connection.clone()
    }

    /// Whether it was silent when last called.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable_at.load(Ordering::Relaxed) != 0
    }

    /// It did not answer a call that began at `begun`. Says whether that is news.
    pub fn became_unreachable(&self, begun: Instant, now: Instant) -> bool {
        self.contacted.store(false, Ordering::SeqCst);
        let is_news = !self.is_unreachable();
        if is_news {
            self.unreachable_since.store(begun.as_nanos(), Ordering::Relaxed);
        }
        self.add_penalty(is_news, now);
        self.unreachable_at.swap(now.as_nanos().max(1), Ordering::Relaxed) == 0
    }

    fn add_penalty(&self, is_news: bool, now: Instant) {
        let left = self.penalty(now);
        let mut penalty = self.penalty.lock();
        if is_news || now.saturating_since(penalty.1) >= PENALTY_AGAIN {
            *penalty = ((left * 2).clamp(PENALTY_MIN, PENALTY_MAX).as_nanos() as u64, now);
        }
    }

    /// Whether nobody asks yet, while it is away, if it is back. He who is told so does it.
    pub fn claim_watch(&self) -> bool {
        self.is_unreachable() && !self.watched.swap(true, Ordering::SeqCst)
    }

    /// Nobody asks any more.
    pub fn end_watch(&self) {
        self.watched.store(false, Ordering::SeqCst);
    }

    /// How much longer an answer is worth waiting for, of a server that has answered before and is waited for `most` in all.
    fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        if self.heard_at.load(Ordering::Relaxed) == 0 {
            return Duration::ZERO;
        }
        let since = Instant::from_nanos(self.unreachable_since.load(Ordering::Relaxed));
        most.saturating_sub(now.saturating_since(since))
    }

    /// It answered. Says whether it had been silent.
    pub fn answered(&self, now: Instant) -> bool {
        self.heard_at.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.unreachable_at.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether it has answered anything since `then`.
    pub fn heard_since(&self, then: Instant) -> bool {
        Instant::from_nanos(self.heard_at.load(Ordering::Relaxed)) > then
    }

    /// How long ago it last answered; `None` if never.
    pub fn idle_for(&self, now: Instant) -> Option<Duration> {
        match self.heard_at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.saturating_since(Instant::from_nanos(at))),
        }
    }

    /// A call without work took this long.
    pub fn measured(&self, took: Duration) {
        let took = took.as_nanos().min(u128::from(u64::MAX)).max(1) as u64;
        let smoothed = match self.round_trip.load(Ordering::Relaxed) {
            0 => took,
            old => old - old / 4 + took / 4,
        };
        self.round_trip.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// The packets of all calls say that a round trip takes so long.
    pub fn known_round_trip(&self, smoothed: Duration) {
        let nanos = smoothed.as_nanos().min(u128::from(u64::MAX)).max(1) as u64;
        self.round_trip.store(nanos, Ordering::Relaxed);
    }

    pub fn round_trip(&self) -> Duration {
        match self.round_trip.load(Ordering::Relaxed) {
            0 => UNMEASURED,
            nanos => Duration::from_nanos(nanos),
        }
    }

    /// What is left of the penalty for having been silent: whoever failed is not the first choice as soon as it is back.
    fn penalty(&self, now: Instant) -> Duration {
        let (nanos, since) = *self.penalty.lock();
        let halvings = now.saturating_since(since).as_secs() / PENALTY_HALVES.as_secs();
        Duration::from_nanos(nanos.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0))
    }
}

/// One file server.
pub(crate) struct Server {
    pub uuid: Option<Uuid>,
    /// The number of the last break that touched everything from this server.
    pub reset: ServerReset,
    /// It does not know the calls with 64-bit lengths.
    pub small_files_only: AtomicBool,
    /// It does not know InlineBulkStatus.
    pub plain_bulk_only: AtomicBool,
    /// It stores one range of a file in one call.
    pub single_ranges_only: AtomicBool,
    /// It does not know StoreACL by its new number.
    pub old_store_acl: AtomicBool,
    /// A random number: who is asked first of servers that are equally near.
    pub draw: u64,
    unique: AtomicU32,
    addresses: Mutex<Vec<Arc<Address>>>,
}

impl Server {
    fn new(uuid: Option<Uuid>, draw: u64) -> Self {
        Server {
            uuid,
            draw,
            reset: ServerReset::default(),
            small_files_only: AtomicBool::new(false),
            plain_bulk_only: AtomicBool::new(false),
            single_ranges_only: AtomicBool::new(false),
            old_store_acl: AtomicBool::new(false),
            unique: AtomicU32::new(0),
            addresses: Mutex::new(Vec::new()),
        }
    }

    /// Its addresses, nearest first.
    pub fn addresses(&self) -> Vec<Arc<Address>> {
        let mut addresses = self.addresses.lock().clone();
        addresses.sort_by_key(|address| address.round_trip());
        addresses
    }

    /// The shortest round trip to any of its addresses, with what is added for having been silent.
    pub fn distance(&self, now: Instant) -> Duration {
        let addresses = self.addresses.lock();
        let distances = addresses.iter().map(|address| address.round_trip() + address.penalty(now));
        distances.min().unwrap_or(Duration::MAX)
    }

    /// How much longer its silence is worth waiting out; see [`Address::remaining_wait`].
    pub fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        let addresses = self.addresses.lock();
        addresses.iter().map(|address| address.remaining_wait(now, most)).max().unwrap_or_default()
    }

    /// Whether none of its addresses answered when last called.
    pub fn is_unreachable(&self) -> bool {
        self.addresses.lock().iter().all(|address| address.is_unreachable())
    }
}

/// All file servers met so far. As many as the cells have: nothing is dropped. Each cell has its own, so that no cell can
/// say where the servers of another one are.
#[derive(Default)]
pub(crate) struct ServerTable(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_uuid: BTreeMap<(CellIndex, Uuid), Arc<Server>>,
    by_address: BTreeMap<(CellIndex, SocketAddr), Arc<Server>>,
}

impl ServerTable {
    /// The server of a UUID if the addresses we have are of this version of its list.
    pub fn current(&self, cell: CellIndex, uuid: Uuid, unique: u32) -> Option<Arc<Server>> {
        let inner = self.0.lock();
        inner
            .by_uuid
            .get(&(cell, uuid))
            .filter(|server| server.unique.load(Ordering::SeqCst) == unique)
            .cloned()
    }

    /// The servers of a UUID, of whichever cell and whatever their addresses.
    pub fn by_uuid(&self, uuid: Uuid) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        inner.by_uuid.iter().filter(|((_, of), _)| *of == uuid).map(|(_, server)| server.clone()).collect()
    }

    /// The servers at an address, of whichever cell.
    pub fn by_address(&self, peer: SocketAddr) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        inner.by_address.iter().filter(|((_, at), _)| *at == peer).map(|(_, server)| server.clone()).collect()
    }

    /// A server and its addresses, as the location service says. Addresses that stay keep what is known of them.
    pub fn learn(
        &self,
        cell: CellIndex,
        uuid: Option<Uuid>,
        unique: u32,
        peers: &[SocketAddr],
        draw: u64,
        make: impl Fn(SocketAddr) -> Address,
    ) -> Option<Arc<Server>> {
        let first = *peers.first()?;
        let mut inner = self.0.lock();
        let server = match uuid {
            Some(uuid) => {
                let make = || Arc::new(Server::new(Some(uuid), draw));
                inner.by_uuid.entry((cell, uuid)).or_insert_with(make).clone()
            }
            None => {
                let make = || Arc::new(Server::new(None, draw));
                inner.by_address.entry((cell, first)).or_insert_with(make).clone()
            }
        };
        let mut addresses = server.addresses.lock();
        let old = std::mem::take(&mut *addresses);
        for peer in peers {
            let kept = old.iter().find(|address| address.peer == *peer).cloned();
            addresses.push(kept.unwrap_or_else(|| Arc::new(make(*peer))));
            inner.by_address.insert((cell, *peer), server.clone());
        }
        drop(addresses);
        server.unique.store(unique, Ordering::SeqCst);
        Some(server)
    }

    /// All servers, in a fixed order.
    pub fn all(&self) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        let mut all: Vec<Arc<Server>> = inner.by_uuid.values().cloned().collect();
        all.extend(inner.by_address.values().filter(|server| server.uuid.is_none()).cloned());
        all
    }
}
