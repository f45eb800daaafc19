//! Connection table of a drive: which connection is ended for a new one, and the share of servers.
//!
//! A connection is unknown until it has presented a valid capability. File servers give those to anybody who may read, so its holder is
//! known, and no more; the last entries are for servers, with capabilities that only these have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use afs_env::admission::{Admission, Bounds, Class, Origin, Slot};
use afs_env::sync::Notify;
use parking_lot::Mutex;

use super::DriveLimits;
use crate::capability::{Access, Capability, Group};

/// Of so many entries, one is for servers: clients with capabilities do not get it.
const SERVERS_PART: usize = 8;

/// The connections of a drive.
#[derive(Debug)]
pub(super) struct ConnectionTable(Mutex<Table>);

#[derive(Debug)]
struct Table {
    admission: Admission<u64>,
    next: u64,
    held: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    slot: Slot,
    end: Arc<Notify>,
}

/// The entry of one connection, until it is dropped or evicted.
#[derive(Debug)]
pub(super) struct ConnectionEntry {
    table: Arc<ConnectionTable>,
    id: u64,
    origin: Origin,
    end: Arc<Notify>,
}

/// What the holder of a capability has shown: that it is a server, with one for a store, a volume or a stream, or to manage; or a client.
pub(super) fn class_of(capability: &Capability) -> Class {
    let of_servers = matches!(capability.group, Group::Chunks(_) | Group::Volume(_) | Group::Stream(_));
    match of_servers || capability.access.permits(Access::MANAGE) {
        true => Class::Proven,
        false => Class::Known,
    }
}

/// Bounds of a table of so many entries, with a part for servers.
pub(super) fn bounds(most: usize, most_per_address: usize) -> Bounds {
    Bounds::of(most, most_per_address).with_proven(most.div_ceil(SERVERS_PART).min(most.saturating_sub(1)))
}

impl ConnectionTable {
    pub fn new(limits: &DriveLimits) -> Arc<Self> {
        let admission = Admission::new(bounds(limits.connections, limits.connections_per_address));
        Arc::new(Self(Mutex::new(Table { admission, next: 0, held: BTreeMap::new() })))
    }

    /// Adds a connection; `None` if its address or site is at its limit, or the table is full, of connections of clients and servers.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionEntry> {
        let (origin, end) = (Origin::of(address), Arc::new(Notify::new()));
        let id = self.0.lock().take(origin, end.clone())?;
        Some(ConnectionEntry { table: self.clone(), id, origin, end })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().held.len()
    }
}

impl ConnectionEntry {
    /// A capability was presented that holds. False if clients are at their limit: the connection is to end.
    pub fn prove(&self, class: Class) -> bool {
        self.table.0.lock().prove(self.id, class, self.origin)
    }

    /// What was proven; of one that was evicted, nothing.
    pub fn class(&self) -> Class {
        self.table.0.lock().held.get(&self.id).map_or(Class::Unknown, |held| held.slot.class())
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
    fn take(&mut self, origin: Origin, end: Arc<Notify>) -> Option<u64> {
        let id = self.next;
        let entered = self.admission.enter(origin, id)?;
        self.next += 1;
        self.held.insert(id, Held { slot: entered.slot, end });
        self.evict(entered.instead);
        Some(id)
    }

    fn prove(&mut self, id: u64, class: Class, origin: Origin) -> bool {
        // One that has given way is being ended.
        if self.raise(id, class, origin) {
            return true;
        }
        let instead = self.admission.largest_beside(class, origin).filter(|_| self.held.contains_key(&id));
        self.evict(instead);
        instead.is_some() && self.raise(id, class, origin)
    }

    fn raise(&mut self, id: u64, class: Class, origin: Origin) -> bool {
        let held = self.held.get_mut(&id);
        held.is_some_and(|held| self.admission.raise(&mut held.slot, class, origin, id).is_ok())
    }

    fn evict(&mut self, id: Option<u64>) {
        if let Some(end) = id.and_then(|id| self.leave(id)) {
            end.notify_one();
        }
    }

    fn leave(&mut self, id: u64) -> Option<Arc<Notify>> {
        let held = self.held.remove(&id)?;
        self.admission.leave(held.slot);
        Some(held.end)
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
        assert!(proven.prove(Class::Known));
        for round in 0..400u16 {
            hostile.extend(all.take(v4((round % 150) as u8)));
        }
        assert!(is_held(&proven), "who has a capability gives way to nobody unknown");
        assert_eq!(all.count(), 64);
        drop(hostile);
        assert_eq!(all.count(), 1 + usize::from(is_held(&honest)));
    }

    #[test]
    fn clients_leave_places_to_servers() {
        let all = table(16, 64);
        let held: Vec<_> = (0..14).map(|_| all.take(v4(1)).unwrap()).collect();
        assert!(held.iter().all(|entry| entry.prove(Class::Known)));
        let more = all.take(v4(1)).unwrap();
        assert!(!more.prove(Class::Known), "one in eight is for servers");
        assert!(more.prove(Class::Proven) && more.prove(Class::Known), "what it was it stays");
        let last = all.take(v4(3)).unwrap();
        assert!(last.prove(Class::Proven));
        assert!(all.take(v4(4)).is_none(), "nobody is left to give way");
        assert!(held[0].prove(Class::Proven), "a client that is a server takes no client's entry");
        drop(more);
        let client = all.take(v4(4)).unwrap();
        assert!(client.prove(Class::Known));
    }

    /// Capabilities are for everybody who may read: an attacker gets some for each of its addresses.
    #[test]
    fn of_clients_with_capabilities_the_address_with_most_gives_way_to_one_with_fewer() {
        let all = table(64, 16);
        let hostile: Vec<_> = (0..56).map(|n| all.take(v4(n % 8)).unwrap()).collect();
        assert!(hostile.iter().all(|entry| entry.prove(Class::Known)));
        let honest = all.take(v4(100)).unwrap();
        assert!(honest.prove(Class::Known) && !is_held(&hostile[0]) && is_held(&hostile[1]));
        let more = all.take(v4(1)).unwrap();
        assert!(!more.prove(Class::Known), "an address with most takes none of another");
        assert_eq!((honest.class(), hostile[0].class()), (Class::Known, Class::Unknown));
    }

    #[test]
    fn a_connection_that_was_evicted_leaves_the_table_once() {
        let all = table(1, 4);
        let first = all.take(v4(1)).unwrap();
        let second = all.take(v4(2)).unwrap();
        assert!(!is_held(&first) && !first.prove(Class::Proven) && is_held(&second));
        drop(first);
        assert_eq!(all.count(), 1);
        let table = all.0.lock();
        assert_eq!((table.admission.tally().count(), table.admission.tally().networks()), (1, 1));
    }
}
