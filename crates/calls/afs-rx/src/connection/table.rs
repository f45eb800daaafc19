//! Hash tables of connections: client connections by id; server connections by address, epoch and id.

use super::Connection;
use crate::hash::HashSeed;
use crate::ids::{Cid, Epoch};
use crate::slab::{Key, Slab};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Key of a server connection: docs/protocol/rx.md "3. Connections, ids, epochs". The address is part of it for every
/// epoch: the same ids from another address are another connection, unless a packet proves that it is from the same
/// client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ServerKey {
    pub(crate) epoch: Epoch,
    pub(crate) cid: Cid,
    pub(crate) from: SocketAddr,
}

/// All connections of an endpoint.
pub(crate) struct ConnectionTable {
    pub(crate) slab: Slab<Connection>,
    clients: HashMap<Cid, Key, HashSeed>,
    servers: HashMap<ServerKey, Key, HashSeed>,
    /// Connections of authenticated clients whose class authenticates packets, by ids alone.
    migratable: HashMap<(Epoch, Cid), Key, HashSeed>,
    /// Position of the clock hand of the eviction search.
    clock_hand: usize,
}

/// Connections examined by one eviction search. Bounds the work an unwanted packet can cause.
const EXAMINED_MAX: usize = 32;

impl ConnectionTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        ConnectionTable {
            slab: Slab::new(),
            clients: HashMap::with_hasher(seed),
            servers: HashMap::with_hasher(seed),
            migratable: HashMap::with_hasher(seed),
            clock_hand: 0,
        }
    }

    pub(crate) fn client(&self, cid: Cid) -> Option<Key> {
        self.clients.get(&cid).copied()
    }

    pub(crate) fn server(&self, key: &ServerKey) -> Option<Key> {
        self.servers.get(key).copied()
    }

    /// The connection with these ids that may change its address.
    pub(crate) fn migratable(&self, epoch: Epoch, cid: Cid) -> Option<Key> {
        self.migratable.get(&(epoch, cid)).copied()
    }

    pub(crate) fn insert_client(&mut self, cid: Cid, make: impl FnOnce(Key) -> Connection) -> Key {
        let key = self.slab.insert_with(make);
        self.clients.insert(cid, key);
        key
    }

    pub(crate) fn insert_server(&mut self, named: ServerKey, make: impl FnOnce(Key) -> Connection) -> Key {
        let key = self.slab.insert_with(make);
        self.servers.insert(named, key);
        key
    }

    /// Makes the connection found from other addresses too.
    pub(crate) fn make_migratable(&mut self, key: Key) {
        if let Some(connection) = self.slab.get(key) {
            self.migratable.insert((connection.epoch, connection.cid), key);
        }
    }

    /// Changes the address of a server connection.
    pub(crate) fn relocate(&mut self, key: Key, to: SocketAddr) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        self.servers.remove(&connection.server_key());
        connection.to = to;
        self.servers.insert(connection.server_key(), key);
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Connection> {
        let connection = self.slab.remove(key)?;
        match connection.side() {
            crate::ids::Side::Client => self.clients.remove(&connection.cid),
            crate::ids::Side::Server => self.servers.remove(&connection.server_key()),
        };
        let ids = (connection.epoch, connection.cid);
        if self.migratable.get(&ids) == Some(&key) {
            self.migratable.remove(&ids);
        }
        Some(connection)
    }

    pub(crate) fn client_count(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// A server connection without calls, found by examining a few in turn; one of an authenticated client only if
    /// there is no other.
    pub(crate) fn evictable(&mut self) -> Option<Key> {
        let mut proven = None;
        for _ in 0..EXAMINED_MAX {
            self.clock_hand = (self.clock_hand + 1) % self.slab.slots().max(1);
            let found = self.slab.at(self.clock_hand).filter(|connection| {
                connection.side() == crate::ids::Side::Server && !connection.has_calls()
            });
            match found {
                Some(connection) if connection.identity().is_none() => return Some(connection.id.0),
                Some(connection) => proven = proven.or(Some(connection.id.0)),
                None => {}
            }
        }
        proven
    }
}
