//! Occupancy of the host table: the bound for one address, the share reserved for authenticated clients, and
//! the choice of the host to evict.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::id::HostId;
use super::table::Seeded;

/// Hosts examined to find one to evict.
const EXAMINED_MAX: usize = 32;
/// Divisor of the table's size: the most hosts of one address; and the number allowed in any case.
const ADDRESS_PART: usize = 64;
const ADDRESS_MIN: usize = 16;
/// Divisor of the table's size: the share reserved for authenticated clients.
const AUTHENTICATED_PART: usize = 4;

/// Counts of occupied entries.
pub(super) struct Occupancy {
    hosts_max: usize,
    by_address: HashMap<IpAddr, VecDeque<HostId>, Seeded>,
    count: usize,
    /// Hosts that have not authenticated.
    unauthenticated: usize,
    /// The entry examined last.
    hand: usize,
}

impl Occupancy {
    pub(super) fn new(hosts_max: usize, seeded: Seeded) -> Self {
        let by_address = HashMap::with_hasher(seeded);
        Occupancy { hosts_max, by_address, count: 0, unauthenticated: 0, hand: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, host: HostId, address: IpAddr, is_authenticated: bool) {
        self.by_address.entry(address).or_default().push_back(host);
        self.count += 1;
        self.unauthenticated += usize::from(!is_authenticated);
    }

    pub(super) fn remove(&mut self, host: HostId, address: IpAddr, is_authenticated: bool) {
        if let Some(hosts) = self.by_address.get_mut(&address) {
            hosts.retain(|other| *other != host);
            if hosts.is_empty() {
                self.by_address.remove(&address);
            }
        }
        self.count -= 1;
        self.unauthenticated -= usize::from(!is_authenticated);
    }

    /// Records that a host in the table has authenticated.
    pub(super) fn mark_authenticated(&mut self) {
        self.unauthenticated -= 1;
    }

    /// Whether an address has as many hosts as it may have.
    pub(super) fn address_is_full(&self, address: IpAddr) -> bool {
        self.by_address.get(&address).is_some_and(|hosts| hosts.len() >= self.address_max())
    }

    /// Whether all entries are taken that a new host may have.
    pub(super) fn is_full(&self, is_authenticated: bool) -> bool {
        self.count >= self.hosts_max || (!is_authenticated && self.unauthenticated >= self.strangers_max())
    }

    /// Hosts of an address that may be evicted, the oldest first.
    pub(super) fn of_address(&self, address: IpAddr) -> Vec<HostId> {
        self.by_address.get(&address).into_iter().flatten().take(EXAMINED_MAX).copied().collect()
    }

    /// The next hosts, of a table with so many entries, that may be evicted.
    pub(super) fn next(&mut self, places: usize) -> Vec<HostId> {
        let looked_at = EXAMINED_MAX.min(places);
        let first = self.hand;
        self.hand = (first + looked_at) % places.max(1);
        (0..looked_at).map(|n| HostId(((first + n) % places) as u32)).collect()
    }

    fn address_max(&self) -> usize {
        (self.hosts_max / ADDRESS_PART).max(ADDRESS_MIN)
    }

    fn strangers_max(&self) -> usize {
        self.hosts_max - self.hosts_max / AUTHENTICATED_PART
    }
}
