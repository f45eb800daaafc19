//! Finding a packet's connection.

use super::Connection;
use crate::hash::HashSeed;
use crate::ids::{Cid, Epoch};
use crate::slab::{Key, Slab};
use std::collections::HashMap;
use std::net::SocketAddr;

/// What a server finds a connection by: docs/protocol/rx.md "3. Connections, ids, epochs". With bit 31 of
/// the epoch set the source address does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ServerKey {
    epoch: Epoch,
    cid: Cid,
    from: Option<SocketAddr>,
}

impl ServerKey {
    pub(crate) fn new(epoch: Epoch, cid: Cid, from: SocketAddr) -> Self {
        ServerKey { epoch, cid, from: (!epoch.is_global()).then_some(from) }
    }
}

/// All connections of an endpoint.
pub(crate) struct ConnectionTable {
    pub(crate) slab: Slab<Connection>,
    clients: HashMap<Cid, Key, HashSeed>,
    servers: HashMap<ServerKey, Key, HashSeed>,
    /// Where the search for a connection to evict goes on.
    hand: usize,
}

/// Connections looked at for one that may be evicted. Bounds the work an unwanted packet can cause.
const EVICTION_STEPS: usize = 32;

impl ConnectionTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        ConnectionTable {
            slab: Slab::new(),
            clients: HashMap::with_hasher(seed),
            servers: HashMap::with_hasher(seed),
            hand: 0,
        }
    }

    pub(crate) fn client(&self, cid: Cid) -> Option<Key> {
        self.clients.get(&cid).copied()
    }

    pub(crate) fn server(&self, key: &ServerKey) -> Option<Key> {
        self.servers.get(key).copied()
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

    pub(crate) fn remove(&mut self, key: Key) -> Option<Connection> {
        let connection = self.slab.remove(key)?;
        match connection.side() {
            crate::ids::Side::Client => self.clients.remove(&connection.cid),
            // A connection with a host-bound epoch never moves, so `to` is still what it was found by.
            crate::ids::Side::Server => {
                self.servers.remove(&ServerKey::new(connection.epoch, connection.cid, connection.to))
            }
        };
        Some(connection)
    }

    pub(crate) fn client_count(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// A server connection without calls, found by looking at a few in turn.
    pub(crate) fn evictable(&mut self) -> Option<Key> {
        for _ in 0..EVICTION_STEPS {
            self.hand = (self.hand + 1) % self.slab.slots().max(1);
            let found = self.slab.at(self.hand).filter(|connection| {
                connection.side() == crate::ids::Side::Server && !connection.has_calls()
            });
            if let Some(connection) = found {
                return Some(connection.id.0);
            }
        }
        None
    }
}
