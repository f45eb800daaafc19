//! File servers and their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::{CallOptions, Connection, Instant, Rx, sync};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use super::unknown_call::UnknownCall;
use crate::identity::{Credentials, TokenId};
use crate::key::CellIndex;
use crate::location::errors::ServerErrors;
use crate::promise::ServerReset;

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
pub(crate) const RANK_USUAL: u16 = 20_000;
/// Limit of the addresses to which ranks are given.
const RANKS_MAX: usize = 1024;

/// Connections kept per address, one for each token.
const CONNECTIONS_MAX: usize = 256;

/// Most calls in progress at one server that fetch ahead of readers. All of them may be one user's, and more calls than a user's
/// connection has channels wait for each other: this is half of the channels ([`afs_rpc::Limits::connections`], of four each).
const AHEAD_MAX: usize = 16;

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
    /// When it was last found unreachable; 0 if it is reachable.
    unreachable_at: AtomicU64,
    /// When it last replied.
    heard_at: AtomicU64,
    /// Start of the first call without a reply; valid while it is unreachable.
    unreachable_since: AtomicU64,
    /// True if a task watches it.
    watched: AtomicBool,
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
            unreachable_at: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            unreachable_since: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            penalty: Mutex::new((0, Instant::ZERO)),
            rank: AtomicU16::new(0),
        }
    }

    /// The rank that was given to it.
    pub fn given_rank(&self) -> Option<u16> {
        Some(self.rank.load(Ordering::Relaxed)).filter(|rank| *rank != 0)
    }

    fn rank(&self) -> u16 {
        self.given_rank().unwrap_or(RANK_USUAL)
    }

    /// Claims the first probe: true if it was not probed yet; the caller must do it.
    pub fn claim_first_probe(&self) -> bool {
        self.heard_at.load(Ordering::Relaxed) == 0 && !self.claimed.swap(true, Ordering::Relaxed)
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

    /// Anonymous connection.
    pub fn anonymous(&self) -> Connection {
        self.connection.clone()
    }

    /// True if the last call found it unreachable.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable_at.load(Ordering::Relaxed) != 0
    }

    /// Records that a call begun at `begun` got no reply. Returns true if the address was reachable before.
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

    /// Claims the watch of an unreachable address: true if no task watches it; the caller must do it.
    pub fn claim_watch(&self) -> bool {
        self.is_unreachable() && !self.watched.swap(true, Ordering::SeqCst)
    }

    /// Ends the watch.
    pub fn end_watch(&self) {
        self.watched.store(false, Ordering::SeqCst);
    }

    /// Remaining time for which waiting is worthwhile, if the server has replied before; `most` in all.
    fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        if self.heard_at.load(Ordering::Relaxed) == 0 {
            return Duration::ZERO;
        }
        let since = Instant::from_nanos(self.unreachable_since.load(Ordering::Relaxed));
        most.saturating_sub(now.saturating_since(since))
    }

    /// Records a reply. Returns true if the address was unreachable before.
    pub fn answered(&self, now: Instant) -> bool {
        self.heard_at.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.unreachable_at.swap(0, Ordering::Relaxed) != 0
    }

    /// True if it has replied since `then`.
    pub fn heard_since(&self, then: Instant) -> bool {
        Instant::from_nanos(self.heard_at.load(Ordering::Relaxed)) > then
    }

    /// Time since its last reply; `None` if it never replied.
    pub fn idle_for(&self, now: Instant) -> Option<Duration> {
        match self.heard_at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.saturating_since(Instant::from_nanos(at))),
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
    fn penalty(&self, now: Instant) -> Duration {
        let (nanos, since) = *self.penalty.lock();
        let halvings = now.saturating_since(since).as_secs() / PENALTY_HALVES.as_secs();
        Duration::from_nanos(nanos.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0))
    }
}

/// A file server.
pub(crate) struct Server {
    pub cell: CellIndex,
    pub uuid: Option<Uuid>,
    /// Number of the last break of all promises of this server.
    pub reset: ServerReset,
    /// True if it does not know the calls with 64-bit lengths.
    pub small_files_only: AtomicBool,
    /// True if it does not know InlineBulkStatus.
    pub plain_bulk_only: AtomicBool,
    /// True if it stores one range of a file per call.
    pub single_ranges_only: AtomicBool,
    /// Whether it has no data path.
    pub no_data_path: UnknownCall,
    /// Whether it tells no layouts.
    pub no_layouts: UnknownCall,
    /// Whether it renews no layouts.
    pub no_renewals: UnknownCall,
    /// Whether it gives one layout per call.
    pub single_layouts_only: UnknownCall,
    /// Whether it tells no lists of chunks.
    pub no_layout_lists: UnknownCall,
    /// Whether it gives no rooms at drives.
    pub no_rooms: UnknownCall,
    /// Whether it gives no rooms whose chunks it commands.
    pub no_commanded_stores: UnknownCall,
    /// Whether it gives rooms at one drive alone.
    pub single_rooms_only: UnknownCall,
    /// Whether it takes no room back before its time.
    pub no_room_ends: UnknownCall,
    /// Whether it gives one capability of the data path per call, and none with statuses.
    pub single_capabilities_only: UnknownCall,
    /// Whether it takes one change per call.
    pub single_changes_only: UnknownCall,
    /// Whether it lends no directories.
    pub no_leases: UnknownCall,
    /// Whether it lends a new directory after as many changes as any other.
    pub lends_no_new: UnknownCall,
    /// Whether it lends nothing with a lease later.
    pub lends_once: UnknownCall,
    /// True if it does not know StoreACL by its new number.
    pub old_store_acl: AtomicBool,
    /// Random number that determines the order of equally near servers.
    pub draw: u64,
    /// Calls in progress that fetch ahead of readers.
    ahead: Arc<sync::Semaphore>,
    /// Its last errors.
    pub errors: ServerErrors,
    unique: AtomicU32,
    addresses: Mutex<Vec<Arc<Address>>>,
}

impl Server {
    fn new(cell: CellIndex, uuid: Option<Uuid>, draw: u64) -> Self {
        Server {
            cell,
            uuid,
            draw,
            ahead: Arc::new(sync::Semaphore::new(AHEAD_MAX)),
            errors: ServerErrors::default(),
            reset: ServerReset::default(),
            small_files_only: AtomicBool::new(false),
            plain_bulk_only: AtomicBool::new(false),
            single_ranges_only: AtomicBool::new(false),
            no_data_path: UnknownCall::default(),
            no_layouts: UnknownCall::default(),
            no_renewals: UnknownCall::default(),
            single_layouts_only: UnknownCall::default(),
            no_layout_lists: UnknownCall::default(),
            no_rooms: UnknownCall::default(),
            no_commanded_stores: UnknownCall::default(),
            single_rooms_only: UnknownCall::default(),
            no_room_ends: UnknownCall::default(),
            single_capabilities_only: UnknownCall::default(),
            single_changes_only: UnknownCall::default(),
            no_leases: UnknownCall::default(),
            lends_no_new: UnknownCall::default(),
            lends_once: UnknownCall::default(),
            old_store_acl: AtomicBool::new(false),
            unique: AtomicU32::new(0),
            addresses: Mutex::new(Vec::new()),
        }
    }

    /// Permits one more call that fetches ahead of a reader; `None` if there are enough of them.
    pub fn permit_ahead(&self) -> Option<sync::OwnedSemaphorePermit> {
        self.ahead.clone().try_acquire_owned().ok()
    }

    /// Whether it has said that it has no data path, and is not asked again yet.
    pub fn has_no_data_path(&self, now: Instant) -> bool {
        self.no_data_path.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it tells no layouts of files, and is not asked again yet.
    pub fn has_no_layouts(&self, now: Instant) -> bool {
        self.no_layouts.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the capabilities of several layouts again in one call.
    pub fn may_renew_layouts(&self, now: Instant) -> bool {
        !self.no_renewals.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the layouts of several files in one call.
    pub fn may_give_layouts_in_bulk(&self, now: Instant) -> bool {
        !self.single_layouts_only.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the layout of a long range as a list.
    pub fn may_list_layouts(&self, now: Instant) -> bool {
        !self.no_layout_lists.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it gives no rooms at drives, and is not asked again yet.
    pub fn has_no_rooms(&self, now: Instant) -> bool {
        self.no_rooms.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it commands no stores, and is not asked again yet.
    pub fn commands_no_stores(&self, now: Instant) -> bool {
        self.no_commanded_stores.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it gives rooms at one drive alone, and is not asked again yet.
    pub fn gives_rooms_at_one_drive(&self, now: Instant) -> bool {
        self.single_rooms_only.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it takes no room back, and is not asked again yet.
    pub fn keeps_rooms(&self, now: Instant) -> bool {
        self.no_room_ends.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for several capabilities in one call, or for one together with statuses.
    pub fn may_give_capabilities_in_bulk(&self, now: Instant) -> bool {
        !self.single_capabilities_only.is_noted(now, self.reset.get())
    }

    /// Whether it is worth sending several changes in one call.
    pub fn may_take_lists(&self, now: Instant) -> bool {
        !self.single_changes_only.is_noted(now, self.reset.get())
    }

    /// Its addresses, by rank, and in each rank the nearest first.
    pub fn addresses(&self) -> Vec<Arc<Address>> {
        let mut addresses = self.addresses.lock().clone();
        addresses.sort_by_key(|address| (address.rank(), address.round_trip()));
        addresses
    }

    /// The lowest rank of its addresses.
    pub fn rank(&self) -> u16 {
        self.addresses.lock().iter().map(|address| address.rank()).min().unwrap_or(RANK_USUAL)
    }

    /// Shortest round-trip time that was measured to any of its addresses.
    pub fn round_trip(&self) -> Option<Duration> {
        self.addresses.lock().iter().filter_map(|address| address.measured_round_trip()).min()
    }

    /// Shortest round-trip time to any of its addresses, including penalties.
    pub fn distance(&self, now: Instant) -> Duration {
        let addresses = self.addresses.lock();
        let distances = addresses.iter().map(|address| address.round_trip() + address.penalty(now));
        distances.min().unwrap_or(Duration::MAX)
    }

    /// How long it has not replied, if all of its addresses are unreachable.
    pub fn unreachable_for(&self, now: Instant) -> Option<Duration> {
        let addresses = self.addresses.lock();
        let since = |address: &Arc<Address>| address.unreachable_since.load(Ordering::Relaxed);
        let first = addresses.iter().map(since).min()?;
        let is_unreachable = addresses.iter().all(|address| address.is_unreachable());
        is_unreachable.then(|| now.saturating_since(Instant::from_nanos(first)))
    }

    /// Remaining time for which waiting is worthwhile; see [`Address::remaining_wait`].
    pub fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        let addresses = self.addresses.lock();
        addresses.iter().map(|address| address.remaining_wait(now, most)).max().unwrap_or_default()
    }

    /// True if all of its addresses are unreachable.
    pub fn is_unreachable(&self) -> bool {
        self.addresses.lock().iter().all(|address| address.is_unreachable())
    }
}

/// All known file servers, never removed: their number is bounded by the cells. Each cell has its own, so that no cell
/// can redirect the servers of another one.
#[derive(Default)]
pub(crate) struct ServerTable(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    by_uuid: BTreeMap<(CellIndex, Uuid), Arc<Server>>,
    by_address: BTreeMap<(CellIndex, SocketAddr), Arc<Server>>,
    /// Ranks that were given to addresses, whether or not a server is known there.
    ranks: BTreeMap<IpAddr, u16>,
}

impl ServerTable {
    /// The server of a UUID, if its addresses are of this version of the list.
    pub fn current(&self, cell: CellIndex, uuid: Uuid, unique: u32) -> Option<Arc<Server>> {
        let inner = self.0.lock();
        inner
            .by_uuid
            .get(&(cell, uuid))
            .filter(|server| server.unique.load(Ordering::SeqCst) == unique)
            .cloned()
    }

    /// The servers of a UUID in all cells.
    pub fn by_uuid(&self, uuid: Uuid) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        inner.by_uuid.iter().filter(|((_, of), _)| *of == uuid).map(|(_, server)| server.clone()).collect()
    }

    /// The servers at an address, in all cells.
    pub fn by_address(&self, peer: SocketAddr) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        inner.by_address.iter().filter(|((_, at), _)| *at == peer).map(|(_, server)| server.clone()).collect()
    }

    /// Adds or updates a server from the location service. Addresses that stay keep their state.
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
                let make = || Arc::new(Server::new(cell, Some(uuid), draw));
                inner.by_uuid.entry((cell, uuid)).or_insert_with(make).clone()
            }
            None => {
                let make = || Arc::new(Server::new(cell, None, draw));
                inner.by_address.entry((cell, first)).or_insert_with(make).clone()
            }
        };
        let mut addresses = server.addresses.lock();
        let old = std::mem::take(&mut *addresses);
        for peer in peers {
            let kept = old.iter().find(|address| address.peer == *peer).cloned();
            let address = kept.unwrap_or_else(|| Arc::new(make(*peer)));
            address.rank.store(inner.ranks.get(&peer.ip()).copied().unwrap_or(0), Ordering::Relaxed);
            addresses.push(address);
            inner.by_address.insert((cell, *peer), server.clone());
        }
        drop(addresses);
        server.unique.store(unique, Ordering::SeqCst);
        Some(server)
    }

    /// Gives a rank to an address; `None` takes it away. False if 1024 addresses have one.
    pub fn set_rank(&self, of: IpAddr, rank: Option<u16>) -> bool {
        let mut inner = self.0.lock();
        match rank {
            None => drop(inner.ranks.remove(&of)),
            Some(_) if inner.ranks.len() >= RANKS_MAX && !inner.ranks.contains_key(&of) => return false,
            Some(rank) => drop(inner.ranks.insert(of, rank)),
        }
        for ((_, peer), server) in &inner.by_address {
            if peer.ip() == of {
                let addresses = server.addresses.lock();
                let there = addresses.iter().filter(|address| address.peer.ip() == of);
                there.for_each(|address| address.rank.store(rank.unwrap_or(0), Ordering::Relaxed));
            }
        }
        true
    }

    /// All servers, in a fixed order.
    pub fn all(&self) -> Vec<Arc<Server>> {
        let inner = self.0.lock();
        let mut all: Vec<Arc<Server>> = inner.by_uuid.values().cloned().collect();
        all.extend(inner.by_address.values().filter(|server| server.uuid.is_none()).cloned());
        all
    }
}
