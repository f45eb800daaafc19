//! Occupancy of the host table: the bound for one address, the share reserved for authenticated clients, and
//! the choice of the host to evict.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use afs_rpc::admission::{Admission, Bounds, Class, Origin, Slot};

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
    admission: Admission<HostId>,
    slots: BTreeMap<HostId, Slot>,
    /// The hosts of each address or /64, the oldest first.
    by_origin: HashMap<Origin, VecDeque<HostId>, Seeded>,
    /// The entry examined last.
    hand: usize,
}

impl Occupancy {
    pub(super) fn new(hosts_max: usize, seeded: Seeded) -> Self {
        let of_address = (hosts_max / ADDRESS_PART).max(ADDRESS_MIN);
        let bounds = Bounds::of(hosts_max, of_address).with_proven(hosts_max / AUTHENTICATED_PART);
        let (admission, slots) = (Admission::new(bounds), BTreeMap::new());
        Occupancy { admission, slots, by_origin: HashMap::with_hasher(seeded), hand: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.admission.tally().count()
    }

    pub(super) fn add(&mut self, host: HostId, address: IpAddr, is_authenticated: bool) {
        let origin = Origin::of(address);
        self.by_origin.entry(origin).or_default().push_back(host);
        let slot = self.admission.add(class(is_authenticated), origin, host);
        self.slots.insert(host, slot);
    }

    pub(super) fn remove(&mut self, host: HostId, address: IpAddr) {
        let origin = Origin::of(address);
        if let Some(hosts) = self.by_origin.get_mut(&origin) {
            hosts.retain(|other| *other != host);
            if hosts.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
        self.slots.remove(&host).into_iter().for_each(|slot| self.admission.leave(slot));
    }

    /// Records that a host in the table has authenticated.
    pub(super) fn mark_authenticated(&mut self, host: HostId, address: IpAddr) {
        if let Some(slot) = self.slots.get_mut(&host) {
            // At the same address there is always room: the authenticated have all entries.
            _ = self.admission.raise(slot, Class::Proven, Origin::of(address), host);
        }
    }

    /// The oldest unauthenticated host of the network with most, unless that of `address` would have as many.
    pub(super) fn of_largest_beside(&self, address: IpAddr) -> Option<HostId> {
        self.admission.largest_beside(Class::Known, Origin::of(address))
    }

    /// Whether an address, or its site, has as many hosts as it may have.
    pub(super) fn address_is_full(&self, address: IpAddr) -> bool {
        !self.admission.tally().network_has_room(Origin::of(address), 1)
    }

    /// Whether all entries are taken that a new host may have.
    pub(super) fn is_full(&self, is_authenticated: bool) -> bool {
        !self.admission.tally().fits(class(is_authenticated), 1)
    }

    /// Hosts of an address that may be evicted, the oldest first.
    pub(super) fn of_address(&self, address: IpAddr) -> Vec<HostId> {
        let hosts = self.by_origin.get(&Origin::of(address));
        hosts.into_iter().flatten().take(EXAMINED_MAX).copied().collect()
    }

    /// The next hosts, of a table with so many entries, that may be evicted.
    pub(super) fn next(&mut self, places: usize) -> Vec<HostId> {
        let looked_at = EXAMINED_MAX.min(places);
        let first = self.hand;
        self.hand = (first + looked_at) % places.max(1);
        (0..looked_at).map(|n| HostId(((first + n) % places) as u32)).collect()
    }
}

/// A host is listed when it has said who it is, at an address that is validated.
fn class(is_authenticated: bool) -> Class {
    if is_authenticated { Class::Proven } else { Class::Known }
}
