//! Places in the table of hosts: how many one address may have, how many are kept for clients that prove a name, and which
//! host makes way for a new one.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::id::HostId;
use super::table::Seeded;

/// Hosts looked at to find one that makes way.
const LOOKED_AT_MAX: usize = 32;
/// The part of the table that the hosts of one address may take, and how many they may be in any case.
const ADDRESS_PART: usize = 64;
const ADDRESS_MIN: usize = 16;
/// The part of the table that only clients which prove a name may take.
const PROVEN_PART: usize = 4;

/// Who has which places.
pub(super) struct Room {
    hosts_max: usize,
    by_address: HashMap<IpAddr, VecDeque<HostId>, Seeded>,
    count: usize,
    /// Hosts that have proven no name.
    strangers: usize,
    /// The place looked at last.
    hand: usize,
}

impl Room {
    pub(super) fn new(hosts_max: usize, seeded: Seeded) -> Self {
        let by_address = HashMap::with_hasher(seeded);
        Room { hosts_max, by_address, count: 0, strangers: 0, hand: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, host: HostId, address: IpAddr, is_proven: bool) {
        self.by_address.entry(address).or_default().push_back(host);
        self.count += 1;
        self.strangers += usize::from(!is_proven);
    }

    pub(super) fn remove(&mut self, host: HostId, address: IpAddr, is_proven: bool) {
        if let Some(hosts) = self.by_address.get_mut(&address) {
            hosts.retain(|other| *other != host);
            if hosts.is_empty() {
                self.by_address.remove(&address);
            }
        }
        self.count -= 1;
        self.strangers -= usize::from(!is_proven);
    }

    /// A host in the table has proven its name.
    pub(super) fn proved(&mut self) {
        self.strangers -= 1;
    }

    /// Whether all places are taken that an address may have.
    pub(super) fn address_is_full(&self, address: IpAddr) -> bool {
        self.by_address.get(&address).is_some_and(|hosts| hosts.len() >= self.address_max())
    }

    /// Whether all places are taken that a new host may have.
    pub(super) fn is_full(&self, is_proven: bool) -> bool {
        self.count >= self.hosts_max || (!is_proven && self.strangers >= self.strangers_max())
    }

    /// Hosts of an address that may make way, the oldest first.
    pub(super) fn of_address(&self, address: IpAddr) -> Vec<HostId> {
        self.by_address.get(&address).into_iter().flatten().take(LOOKED_AT_MAX).copied().collect()
    }

    /// The next hosts of a table with so many places that may make way.
    pub(super) fn next(&mut self, places: usize) -> Vec<HostId> {
        let looked_at = LOOKED_AT_MAX.min(places);
        let first = self.hand;
        self.hand = (first + looked_at) % places.max(1);
        (0..looked_at).map(|n| HostId(((first + n) % places) as u32)).collect()
    }

    fn address_max(&self) -> usize {
        (self.hosts_max / ADDRESS_PART).max(ADDRESS_MIN)
    }

    fn strangers_max(&self) -> usize {
        self.hosts_max - self.hosts_max / PROVEN_PART
    }
}
