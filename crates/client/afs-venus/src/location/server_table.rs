//! Table of the file servers of all cells, by UUID and by address, with the ranks that were given to addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::Uuid;
use parking_lot::Mutex;

use super::address::Address;
use super::server::Server;
use crate::key::CellIndex;

/// Limit of the addresses to which ranks are given.
const RANKS_MAX: usize = 1024;
/// Most servers of one cell, of which the location database of OpenAFS has 254 at most. No other is called until the mount is started again:
/// connections and promises are by server.
const SERVERS_MAX: usize = 1024;
/// Most addresses of a server that are used.
const ADDRESSES_MAX: usize = 32;
/// No version of a list of addresses, which has 32 bits.
const NO_VERSION: u64 = u64::MAX;

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
            .filter(|server| server.unique.load(Ordering::SeqCst) == u64::from(unique))
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

    /// Adds or updates a server from the location service. Addresses that stay keep their state. `None` without an address, and for a server
    /// too many of its cell.
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
        let peers = &peers[..peers.len().min(ADDRESSES_MAX)];
        let mut inner = self.0.lock();
        if !inner.is_known(cell, uuid, first) && inner.count(cell) >= SERVERS_MAX {
            tracing::warn!(%first, "a server is not used: its cell names too many");
            return None;
        }
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
            address.set_rank(inner.ranks.get(&peer.ip()).copied());
            addresses.push(address);
            inner.by_address.insert((cell, *peer), server.clone());
        }
        drop(addresses);
        for gone in old.iter().filter(|address| !peers.contains(&address.peer)) {
            inner.leave((cell, gone.peer), &server);
        }
        server.unique.store(unique.into(), Ordering::SeqCst);
        Some(server)
    }

    /// Makes the addresses of all servers be asked for again before the next use of their names.
    pub fn doubt_addresses(&self) {
        for server in self.0.lock().by_uuid.values() {
            server.unique.store(NO_VERSION, Ordering::SeqCst);
        }
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
                there.for_each(|address| address.set_rank(rank));
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

impl Inner {
    fn is_known(&self, cell: CellIndex, uuid: Option<Uuid>, first: SocketAddr) -> bool {
        match uuid {
            Some(uuid) => self.by_uuid.contains_key(&(cell, uuid)),
            None => self.by_address.contains_key(&(cell, first)),
        }
    }

    /// Number of servers of a cell.
    fn count(&self, cell: CellIndex) -> usize {
        let named = self.by_uuid.range((cell, Uuid([0; 16]))..=(cell, Uuid([u8::MAX; 16]))).count();
        let of_cell = self.by_address.iter().filter(|((of, _), server)| *of == cell && server.uuid.is_none());
        named + of_cell.count()
    }

    /// An address is no longer one of a server.
    fn leave(&mut self, address: (CellIndex, SocketAddr), server: &Arc<Server>) {
        if self.by_address.get(&address).is_some_and(|other| Arc::ptr_eq(other, server)) {
            self.by_address.remove(&address);
        }
    }
}
