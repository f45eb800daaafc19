//! Connection table of a drive: limits by address, by network and in all, and which connection is ended for a new one.
//!
//! A connection is unproven until it has presented a valid capability. When the table is full, a new connection evicts an unproven
//! one: the oldest of the network with the most unproven connections. So an attacker with many addresses evicts its own connections
//! before those of a client that has one. Clients with capabilities do not get the last entries: these are for servers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use afs_env::sync::Notify;
use parking_lot::Mutex;

use super::DriveLimits;
use super::admission::network;
use crate::capability::{Access, Capability, Group};

/// Connections of one IPv6 site (/48) for each that an address may have.
const ADDRESSES_OF_SITE: usize = 4;
/// Of so many entries, one is for servers: clients with capabilities do not get it.
const SERVERS_PART: usize = 8;

/// What a connection has proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing was presented that holds.
    Unknown,
    /// A client with a capability.
    Client,
    /// A server: with a capability for a store, a volume or a stream, or to manage.
    Server,
}

/// The connections of a drive.
#[derive(Debug)]
pub(super) struct ConnectionTable(Mutex<Table>);

#[derive(Debug)]
struct Table {
    most: usize,
    most_per_address: usize,
    next: u64,
    held: BTreeMap<u64, Held>,
    by_address: BTreeMap<IpAddr, usize>,
    by_site: BTreeMap<IpAddr, usize>,
    clients: usize,
    /// Those of nobody known, by site, the oldest first; and the sites by their number of them, of equal ones that with the oldest last.
    unknown: BTreeMap<IpAddr, BTreeSet<u64>>,
    crowds: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
}

#[derive(Debug)]
struct Held {
    address: IpAddr,
    standing: Standing,
    end: Arc<Notify>,
}

/// The entry of one connection, until it is dropped or evicted.
#[derive(Debug)]
pub(super) struct ConnectionEntry {
    table: Arc<ConnectionTable>,
    id: u64,
    end: Arc<Notify>,
}

impl Standing {
    pub fn of(capability: &Capability) -> Self {
        let of_servers = matches!(capability.group, Group::Chunks(_) | Group::Volume(_) | Group::Stream(_));
        match of_servers || capability.access.permits(Access::MANAGE) {
            true => Self::Server,
            false => Self::Client,
        }
    }
}

impl ConnectionTable {
    pub fn new(limits: &DriveLimits) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Table {
            most: limits.connections,
            most_per_address: limits.connections_per_address,
            next: 0,
            held: BTreeMap::new(),
            by_address: BTreeMap::new(),
            by_site: BTreeMap::new(),
            clients: 0,
            unknown: BTreeMap::new(),
            crowds: BTreeSet::new(),
        })))
    }

    /// Adds a connection; `None` if its address or site is at its limit, or the table is full of connections of clients and servers.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionEntry> {
        let end = Arc::new(Notify::new());
        let id = self.0.lock().take(network(address), end.clone())?;
        Some(ConnectionEntry { table: self.clone(), id, end })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().held.len()
    }
}

impl ConnectionEntry {
    /// A capability was presented that holds. False if clients are at their limit: the connection is to end.
    pub fn prove(&self, standing: Standing) -> bool {
        self.table.0.lock().prove(self.id, standing)
    }

    /// Completes when the connection was evicted.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.table.0.lock().leave(self.id);
    }
}

impl Table {
    fn take(&mut self, address: IpAddr, end: Arc<Notify>) -> Option<u64> {
        let site = site(address);
        let of = |counts: &BTreeMap<IpAddr, usize>, key| counts.get(key).copied().unwrap_or(0);
        let is_full = of(&self.by_address, &address) >= self.most_per_address
            || of(&self.by_site, &site) >= self.most_per_address.saturating_mul(ADDRESSES_OF_SITE);
        if is_full || self.held.len() >= self.most && !self.give_way() {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.held.insert(id, Held { address, standing: Standing::Unknown, end });
        *self.by_address.entry(address).or_default() += 1;
        *self.by_site.entry(site).or_default() += 1;
        self.change_crowd(site, |crowd| _ = crowd.insert(id));
        Some(id)
    }

    /// Ends the oldest connection of nobody known, of the site that has most of them.
    fn give_way(&mut self) -> bool {
        let Some((_, Reverse(oldest), _)) = self.crowds.last() else { return false };
        if let Some(held) = self.leave(*oldest) {
            held.end.notify_one();
        }
        true
    }

    fn prove(&mut self, id: u64, standing: Standing) -> bool {
        // One that has given way is being ended.
        let Some(held) = self.held.get(&id) else { return false };
        let (address, before) = (held.address, held.standing);
        let is_more =
            before == Standing::Unknown || before == Standing::Client && standing == Standing::Server;
        if !is_more {
            return true;
        }
        let of_clients = self.most - self.most.div_ceil(SERVERS_PART);
        if standing == Standing::Client && self.clients >= of_clients.max(1) {
            return false;
        }
        self.uncount(id, address, before);
        self.clients += usize::from(standing == Standing::Client);
        if let Some(held) = self.held.get_mut(&id) {
            held.standing = standing;
        }
        true
    }

    fn leave(&mut self, id: u64) -> Option<Held> {
        let held = self.held.remove(&id)?;
        less(&mut self.by_address, held.address);
        less(&mut self.by_site, site(held.address));
        self.uncount(id, held.address, held.standing);
        Some(held)
    }

    fn uncount(&mut self, id: u64, address: IpAddr, standing: Standing) {
        match standing {
            Standing::Unknown => self.change_crowd(site(address), |crowd| _ = crowd.remove(&id)),
            Standing::Client => self.clients -= 1,
            Standing::Server => {}
        }
    }

    fn change_crowd(&mut self, site: IpAddr, change: impl FnOnce(&mut BTreeSet<u64>)) {
        let crowd = self.unknown.entry(site).or_default();
        if let Some(oldest) = crowd.first() {
            self.crowds.remove(&(crowd.len(), Reverse(*oldest), site));
        }
        change(crowd);
        match crowd.first() {
            None => _ = self.unknown.remove(&site),
            Some(oldest) => _ = self.crowds.insert((crowd.len(), Reverse(*oldest), site)),
        }
    }
}

fn less(counts: &mut BTreeMap<IpAddr, usize>, key: IpAddr) {
    match counts.get_mut(&key) {
        Some(here) if *here > 1 => *here -= 1,
        _ => _ = counts.remove(&key),
    }
}

/// A site of IPv6 has a /48 (RFC 6177); an IPv4 address is one by itself.
fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 80 << 80).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(connections: usize, connections_per_address: usize) -> Arc<ConnectionTable> {
        ConnectionTable::new(&DriveLimits { connections, connections_per_address, ..DriveLimits::default() })
    }

    fn v4(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    fn is_held(entry: &ConnectionEntry) -> bool {
        entry.table.0.lock().held.contains_key(&entry.id)
    }

    #[test]
    fn of_many_addresses_the_one_with_most_gives_way_and_the_honest_one_loses_nothing() {
        let all = table(64, 4);
        let honest = all.take(v4(200)).unwrap();
        let mut hostile = Vec::new();
        for round in 0..400u16 {
            hostile.extend(all.take(v4((round % 20) as u8)));
        }
        assert_eq!(all.count(), 64);
        assert!(is_held(&honest), "it has one, and others have more");
        let proven = all.take(v4(201)).unwrap();
        assert!(proven.prove(Standing::Client));
        for round in 0..400u16 {
            hostile.extend(all.take(v4((round % 150) as u8)));
        }
        assert!(is_held(&proven), "who has a capability gives way to nobody unknown");
        assert!(!is_held(&honest), "where more addresses come than there are entries, the oldest gives way");
        assert_eq!(all.count(), 64);
        drop(hostile);
        assert_eq!(all.count(), 1);
    }

    #[test]
    fn clients_leave_places_to_servers() {
        let all = table(16, 64);
        let held: Vec<_> = (0..14).map(|_| all.take(v4(1)).unwrap()).collect();
        assert!(held.iter().all(|entry| entry.prove(Standing::Client)));
        let more = all.take(v4(2)).unwrap();
        assert!(!more.prove(Standing::Client), "one in eight is for servers");
        assert!(more.prove(Standing::Server) && more.prove(Standing::Client), "what it was it stays");
        let last = all.take(v4(3)).unwrap();
        assert!(last.prove(Standing::Server));
        assert!(all.take(v4(4)).is_none(), "nobody is left to give way");
        assert!(held[0].prove(Standing::Server), "a client that is a server takes no client's entry");
        drop(more);
        let client = all.take(v4(4)).unwrap();
        assert!(client.prove(Standing::Client));
    }

    #[test]
    fn an_address_and_a_site_have_bounds() {
        let all = table(1000, 2);
        let take = |text: &str| all.take(text.parse().unwrap());
        let mut held = vec![take("2001:db8:1::1"), take("2001:db8:1::2")];
        assert!(take("2001:db8:1::3").is_none(), "a /64");
        for network in 1..4 {
            held.extend((0..2).map(|_| take(&format!("2001:db8:1:{network}::1"))));
        }
        assert!(held.iter().all(Option::is_some));
        assert!(take("2001:db8:1:4::1").is_none(), "a /48");
        assert!(take("2001:db8:2::1").is_some() && take("192.0.2.1").is_some());
        held.pop();
        assert!(take("2001:db8:1:4::1").is_some());
    }

    #[test]
    fn a_connection_that_was_evicted_leaves_the_table_once() {
        let all = table(1, 4);
        let first = all.take(v4(1)).unwrap();
        let second = all.take(v4(2)).unwrap();
        assert!(!is_held(&first) && !first.prove(Standing::Server) && is_held(&second));
        drop(first);
        assert_eq!(all.count(), 1);
        let table = all.0.lock();
        assert_eq!(
            (table.by_address.len(), table.by_site.len(), table.unknown.len(), table.crowds.len()),
            (1, 1, 1, 1)
        );
    }
}
