//! Host table: all hosts by id, permanent name, address and Rx connection.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::ConnKey;
use afs_wire::ids::Uuid;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::host::{CONNECTIONS_MAX, Host, HostIdentity};
use super::id::{HostId, Numbers};
use super::misses::Misses;
use super::occupancy::Occupancy;
use crate::callbacks::Callbacks;

/// The hosts known to a server.
///
/// The usual call finds its host by Rx connection with one look-up under a shared lock. Host identity is the
/// permanent name; addresses only lead to it (docs/protocol callback.md "7. Multi-homed and NATed clients").
pub struct HostTable {
    inner: RwLock<Inner>,
    numbers: Arc<Numbers>,
    callbacks: Arc<Callbacks>,
}

struct Inner {
    hosts: Vec<Option<Arc<Host>>>,
    occupancy: Occupancy,
    /// The host that holds a permanent name. Another one that uses it without authenticating is found by its
    /// address alone.
    by_uuid: HashMap<Uuid, Arc<Host>, Seeded>,
    by_peer: HashMap<SocketAddr, Arc<Host>, Seeded>,
    by_connection: HashMap<(SocketAddr, ConnKey), Arc<Host>, Seeded>,
}

/// Hasher that clients cannot predict and that repeats under one seed.
#[derive(Clone)]
pub(crate) struct Seeded(pub(crate) u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// A host to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewHost {
    pub(crate) identity: HostIdentity,
    pub(crate) peer: SocketAddr,
    /// Whether its connection is authenticated.
    pub(crate) is_authenticated: bool,
    pub(crate) misses: Misses,
    /// Seconds of the server's own clock.
    pub(crate) now: u64,
}

/// The table is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyHosts;

impl HostTable {
    /// An empty table with room for `hosts_max` hosts.
    pub fn new(hosts_max: usize, seed: u64, callbacks: Arc<Callbacks>) -> Self {
        let seeded = Seeded(seed);
        HostTable {
            inner: RwLock::new(Inner {
                hosts: Vec::new(),
                occupancy: Occupancy::new(hosts_max, seeded.clone()),
                by_uuid: HashMap::with_hasher(seeded.clone()),
                by_peer: HashMap::with_hasher(seeded.clone()),
                by_connection: HashMap::with_hasher(seeded),
            }),
            numbers: Arc::default(),
            callbacks,
        }
    }

    /// The host of an Rx connection that was identified.
    pub fn by_connection(&self, peer: SocketAddr, connection: ConnKey) -> Option<Arc<Host>> {
        self.read().by_connection.get(&(peer, connection)).cloned()
    }

    /// The host that called from an address last.
    pub fn by_peer(&self, peer: SocketAddr) -> Option<Arc<Host>> {
        self.read().by_peer.get(&peer).cloned()
    }

    /// The host with a permanent name.
    pub fn by_uuid(&self, uuid: Uuid) -> Option<Arc<Host>> {
        self.read().by_uuid.get(&uuid).cloned()
    }

    /// The host with an id.
    pub fn get(&self, id: HostId) -> Option<Arc<Host>> {
        self.read().hosts.get(id.0 as usize).cloned().flatten()
    }

    /// All hosts, by id.
    pub fn all(&self) -> Vec<Arc<Host>> {
        self.read().hosts.iter().flatten().cloned().collect()
    }

    /// Number of hosts.
    pub fn len(&self) -> usize {
        self.read().occupancy.count()
    }

    /// Whether no host is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a host that called from an address which no other host has any longer. When its share of the
    /// table is full a host without promises is evicted; an authenticated host is not evicted for an
    /// unauthenticated one.
    pub(crate) fn insert(&self, new_host: &NewHost) -> Result<Arc<Host>, TooManyHosts> {
        let mut inner = self.write();
        self.make_room(&mut inner, new_host)?;
        let NewHost { identity, peer, now, .. } = *new_host;
        let host = Arc::new(Host::new(self.numbers.take(), identity, peer, now, self.callbacks.clone()));
        host.authenticated.store(new_host.is_authenticated, Ordering::Relaxed);
        host.with(|state| state.misses = new_host.misses);
        let place = host.id().0 as usize;
        if place >= inner.hosts.len() {
            inner.hosts.resize(place + 1, None);
        }
        inner.hosts[place] = Some(host.clone());
        inner.occupancy.add(host.id(), host.address(), new_host.is_authenticated);
        inner.by_peer.insert(peer, host.clone());
        if let HostIdentity::Uuid(uuid) = identity {
            let holder_of_name = inner.by_uuid.entry(uuid).or_insert_with(|| host.clone());
            host.holds_name.store(Arc::ptr_eq(holder_of_name, &host), Ordering::Relaxed);
        }
        Ok(host)
    }

    /// A host for one call: it is in no table, and is granted no promises.
    pub(crate) fn unlisted(&self, peer: SocketAddr, now: u64) -> Arc<Host> {
        let (number, callbacks) = (self.numbers.take(), self.callbacks.clone());
        Arc::new(Host::new(number, HostIdentity::Unknown, peer, now, callbacks))
    }

    fn make_room(&self, inner: &mut Inner, new_host: &NewHost) -> Result<(), TooManyHosts> {
        let address = new_host.peer.ip();
        if inner.occupancy.address_is_full(address) {
            let hosts = inner.occupancy.of_address(address);
            self.evict(inner, &hosts, new_host.is_authenticated)?;
        }
        if inner.occupancy.is_full(new_host.is_authenticated) {
            let places = inner.hosts.len();
            let hosts = inner.occupancy.next(places);
            self.evict(inner, &hosts, new_host.is_authenticated)?;
        }
        Ok(())
    }

    /// Evicts the first of these hosts that holds no promise.
    fn evict(
        &self,
        inner: &mut Inner,
        hosts: &[HostId],
        for_authenticated: bool,
    ) -> Result<(), TooManyHosts> {
        for id in hosts {
            let Some(host) = inner.hosts.get(id.0 as usize).cloned().flatten() else { continue };
            if host.is_authenticated() && !for_authenticated {
                continue;
            }
            // A promise that is being granted is either seen here, or sees that the host is gone.
            if host.removed.swap(true, Ordering::SeqCst) {
                // It is giving way already, and must be granted nothing more.
                continue;
            }
            if self.callbacks.has_promises(*id) {
                host.removed.store(false, Ordering::SeqCst);
                continue;
            }
            inner.take_out(&host);
            return Ok(());
        }
        Err(TooManyHosts)
    }

    /// An unauthenticated host that is to give way to a client from this address, though it has promises: the oldest of the network with
    /// most. It is granted no more from now on, and is to be removed. `None` if no network has more than the client's own.
    pub(crate) fn to_give_way(&self, address: IpAddr) -> Option<Arc<Host>> {
        let inner = self.write();
        let host = inner.hosts.get(inner.occupancy.of_largest_beside(address)?.0 as usize)?.clone()?;
        (!host.removed.swap(true, Ordering::SeqCst)).then_some(host)
    }

    /// Records that one of a host's connections has authenticated.
    pub(crate) fn mark_authenticated(&self, host: &Arc<Host>) {
        let mut inner = self.write();
        if inner.holds(host) && !host.authenticated.swap(true, Ordering::Relaxed) {
            inner.occupancy.mark_authenticated(host.id(), host.address());
        }
    }

    /// Records that an Rx connection from `peer` is the host's, and directs callbacks there from now on.
    pub(crate) fn verify(&self, host: &Arc<Host>, peer: SocketAddr, connection: ConnKey) {
        let mut inner = self.write();
        // A host that was removed meanwhile must not be half inserted again.
        if !inner.holds(host) {
            return;
        }
        inner.by_peer.insert(peer, host.clone());
        inner.by_connection.insert((peer, connection), host.clone());
        let (left, old) = host.with(|state| {
            state.destination = peer;
            let left = state.add_peer(peer);
            state.connections.retain(|known| *known != (peer, connection));
            state.connections.push_back((peer, connection));
            let is_full = state.connections.len() > CONNECTIONS_MAX;
            (left, if is_full { state.connections.pop_front() } else { None })
        });
        left.iter().for_each(|left| inner.leave_address(left, host));
        if let Some(old) = old {
            inner.by_connection.remove(&old);
        }
    }

    /// Removes an address from its host; returns whether that host has another one.
    pub(crate) fn detach(&self, host: &Arc<Host>, peer: SocketAddr) -> bool {
        let mut inner = self.write();
        inner.leave_address(&peer, host);
        let (gone, left) = host.with(|state| {
            state.peers.retain(|known| *known != peer);
            if state.destination == peer
                && let Some(other) = state.peers.first()
            {
                state.destination = *other;
            }
            let (gone, kept): (VecDeque<_>, VecDeque<_>) =
                state.connections.drain(..).partition(|known| known.0 == peer);
            state.connections = kept;
            (gone, !state.peers.is_empty())
        });
        for connection in gone {
            inner.by_connection.remove(&connection);
        }
        left
    }

    /// Drops the connections from an address of a host: the next call from there is a first contact again.
    pub(crate) fn disconnect(&self, host: &Arc<Host>, peer: SocketAddr) {
        let mut inner = self.write();
        let gone = host.with(|state| {
            let (gone, kept): (VecDeque<_>, VecDeque<_>) =
                state.connections.drain(..).partition(|known| known.0 == peer);
            state.connections = kept;
            gone
        });
        for connection in gone {
            inner.by_connection.remove(&connection);
        }
    }

    /// Removes a host and all its promises.
    pub(crate) fn remove(&self, host: &Arc<Host>) {
        let mut inner = self.write();
        if !inner.holds(host) {
            return;
        }
        host.removed.store(true, Ordering::SeqCst);
        inner.take_out(host);
        drop(inner);
        self.callbacks.forget_host(host.id());
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write()
    }
}

impl Inner {
    fn take_out(&mut self, host: &Arc<Host>) {
        self.hosts[host.id().0 as usize] = None;
        self.occupancy.remove(host.id(), host.address());
        let (peers, connections, identity) =
            host.with(|state| (state.peers.clone(), state.connections.clone(), state.identity));
        peers.iter().for_each(|peer| self.leave_address(peer, host));
        for connection in connections {
            self.by_connection.remove(&connection);
        }
        if let HostIdentity::Uuid(uuid) = identity
            && self.by_uuid.get(&uuid).is_some_and(|holder_of_name| Arc::ptr_eq(holder_of_name, host))
        {
            self.by_uuid.remove(&uuid);
        }
    }

    /// An address does not lead to a host any more.
    fn leave_address(&mut self, peer: &SocketAddr, host: &Arc<Host>) {
        if self.by_peer.get(peer).is_some_and(|holder| Arc::ptr_eq(holder, host)) {
            self.by_peer.remove(peer);
        }
    }

    fn holds(&self, host: &Arc<Host>) -> bool {
        let held = self.hosts.get(host.id().0 as usize).and_then(Option::as_ref);
        held.is_some_and(|held| Arc::ptr_eq(held, host))
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::ADDRESSES_MAX;
    use super::*;
    use crate::callbacks::Grant;
    use afs_wire::ids::{Fid, VolumeId};

    fn table() -> HostTable {
        HostTable::new(4, 1, Arc::new(Callbacks::new(1000, 1)))
    }

    fn peer(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], port))
    }

    fn connection(cid: u32) -> ConnKey {
        ConnKey { epoch: 1, cid }
    }

    fn new_host(identity: HostIdentity, peer: SocketAddr) -> NewHost {
        NewHost { identity, peer, is_authenticated: false, misses: Misses::default(), now: 0 }
    }

    const U: HostIdentity = HostIdentity::Uuid(Uuid([1; 16]));

    #[test]
    fn hosts_are_found_every_way_and_forgotten_every_way() {
        let table = table();
        let host = table.insert(&new_host(U, peer(1, 7001))).unwrap();
        table.verify(&host, peer(1, 7001), connection(4));
        table.verify(&host, peer(2, 999), connection(8));
        for found in [
            table.by_uuid(Uuid([1; 16])),
            table.by_peer(peer(1, 7001)),
            table.by_peer(peer(2, 999)),
            table.by_connection(peer(1, 7001), connection(4)),
            table.by_connection(peer(2, 999), connection(8)),
            table.get(host.id()),
        ] {
            assert!(Arc::ptr_eq(&found.unwrap(), &host));
        }
        assert_eq!(host.destination(), peer(2, 999));
        table.remove(&host);
        assert!(table.is_empty() && table.by_uuid(Uuid([1; 16])).is_none());
        assert!(table.by_connection(peer(2, 999), connection(8)).is_none());
        assert!(table.by_peer(peer(1, 7001)).is_none());
    }

    #[test]
    fn a_detached_address_leads_nowhere() {
        let table = table();
        let host = table.insert(&new_host(U, peer(1, 7001))).unwrap();
        table.verify(&host, peer(1, 7001), connection(4));
        table.verify(&host, peer(1, 7002), connection(8));
        assert!(table.detach(&host, peer(1, 7002)));
        assert_eq!(host.destination(), peer(1, 7001));
        assert!(table.by_connection(peer(1, 7002), connection(8)).is_none());
        assert!(!table.detach(&host, peer(1, 7001)));
    }

    #[test]
    fn connections_per_host_are_bounded() {
        let table = table();
        let host = table.insert(&new_host(U, peer(1, 7001))).unwrap();
        for cid in 0..200 {
            table.verify(&host, peer(1, 7001), connection(cid * 4));
        }
        assert!(table.by_connection(peer(1, 7001), connection(0)).is_none());
        assert!(table.by_connection(peer(1, 7001), connection(199 * 4)).is_some());
        assert_eq!(table.read().by_connection.len(), CONNECTIONS_MAX);
    }

    #[test]
    fn addresses_per_host_are_bounded_and_go_with_it() {
        let table = table();
        let host = table.insert(&new_host(U, peer(1, 7001))).unwrap();
        for port in 1..=200 {
            table.verify(&host, peer(2, port), connection(4));
        }
        assert_eq!(table.read().by_peer.len(), ADDRESSES_MAX);
        assert!(table.by_peer(peer(2, 1)).is_none() && table.by_peer(peer(2, 200)).is_some());
        table.remove(&host);
        assert!(table.read().by_peer.is_empty() && table.read().by_connection.is_empty());
    }

    #[test]
    fn hosts_with_promises_are_bounded_and_numbers_wait_for_the_last_call() {
        let table = table();
        let next = |n| table.insert(&new_host(HostIdentity::Nameless, peer(n, 1)));
        let hosts: Vec<_> = (1..=3).map(|n| next(n).unwrap()).collect();
        for host in &hosts {
            table.callbacks.grant(Fid::root(VolumeId(1)), host.id(), Grant::Single, 0);
        }
        assert!(next(9).is_err(), "a quarter is kept for those who prove a name");
        let running = hosts[1].clone();
        table.remove(&hosts[1]);
        drop(hosts);
        let next = next(9).unwrap();
        assert_ne!(next.id(), running.id(), "a call of the old holder still runs");
        table.callbacks.grant(Fid::root(VolumeId(1)), running.id(), Grant::Single, 0);
        drop(running);
        assert_eq!(table.callbacks.len(), 2);
    }

    #[test]
    fn a_host_without_promises_makes_way_and_is_known_to_be_gone() {
        let table = table();
        let hosts: Vec<_> =
            (1..=6).map(|n| table.insert(&new_host(HostIdentity::Nameless, peer(n, 1))).unwrap()).collect();
        assert_eq!(table.len(), 3);
        let gone: Vec<bool> = hosts.iter().map(|host| host.is_removed()).collect();
        assert_eq!(gone, [true, true, true, false, false, false]);
    }

    #[test]
    fn clients_with_a_proven_name_are_not_evicted_by_clients_without() {
        let table = table();
        let proven = |n| NewHost { is_authenticated: true, ..new_host(HostIdentity::Nameless, peer(n, 1)) };
        let known: Vec<_> = (1..=4).map(|n| table.insert(&proven(n)).unwrap()).collect();
        assert!(table.insert(&new_host(HostIdentity::Nameless, peer(9, 1))).is_err());
        table.insert(&proven(9)).unwrap();
        assert_eq!(known.iter().filter(|host| host.is_removed()).count(), 1);
    }

    #[test]
    fn only_the_first_with_a_permanent_name_is_found_by_it() {
        let table = table();
        let first = table.insert(&new_host(U, peer(1, 7001))).unwrap();
        let second = table.insert(&new_host(U, peer(2, 7001))).unwrap();
        assert!(Arc::ptr_eq(&table.by_uuid(Uuid([1; 16])).unwrap(), &first));
        table.remove(&second);
        assert!(Arc::ptr_eq(&table.by_uuid(Uuid([1; 16])).unwrap(), &first));
    }
}
