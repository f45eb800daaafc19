//! Pools of client connections, one for each peer, service and security.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rx::{CHANNELS, CallId, ConnId, Endpoint, Instant, OpenError};

use crate::client::Security;
use crate::limits::Limits;
use crate::sync::{Notify, Semaphore};

/// Key of a pool: users with equal keys share Rx connections.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PoolKey {
    pub(crate) peer: SocketAddr,
    pub(crate) service: u16,
    pub(crate) security: String,
    /// The dead time is a property of an Rx connection.
    pub(crate) dead: Option<Duration>,
}

/// Id of a pool, valid while its [`Channels`] are referenced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct PoolId(u64);

/// Channels of one pool, shared by its users.
pub(crate) struct Channels {
    pool: PoolId,
    /// One permit for each channel that the pool may ever have.
    pub(crate) free: Arc<Semaphore>,
    /// Notified when a channel may have become usable.
    pub(crate) changed: Arc<Notify>,
}

struct Pool {
    key: PoolKey,
    channels: Arc<Channels>,
    connections: Vec<ConnId>,
    last_used: Instant,
}

/// All pools of one endpoint.
pub(super) struct Pools {
    limits: Limits,
    next: u64,
    pools: BTreeMap<PoolId, Pool>,
    by_key: BTreeMap<PoolKey, PoolId>,
    owners: BTreeMap<ConnId, PoolId>,
    reap_at: Option<Instant>,
    /// Position of the eviction search.
    clock_hand: PoolId,
}

/// Pools examined by one eviction search. Bounds the work that a call can cause.
const EXAMINED_MAX: usize = 16;

impl Pools {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 0,
            pools: BTreeMap::new(),
            by_key: BTreeMap::new(),
            owners: BTreeMap::new(),
            reap_at: None,
            clock_hand: PoolId(0),
        }
    }

    fn permits(&self) -> usize {
        self.limits.connections.max(1) * CHANNELS
    }

    /// The channels of the pool with this key; creates the pool if there is none.
    pub(super) fn channels(&mut self, now: Instant, key: &PoolKey) -> Arc<Channels> {
        if let Some(pool) = self.by_key.get(key).and_then(|id| self.pools.get(id)) {
            return pool.channels.clone();
        }
        self.next += 1;
        let pool = PoolId(self.next);
        let (free, changed) = (Arc::new(Semaphore::new(self.permits())), Arc::default());
        let channels = Arc::new(Channels { pool, free, changed });
        let made =
            Pool { key: key.clone(), channels: channels.clone(), connections: Vec::new(), last_used: now };
        self.pools.insert(pool, made);
        self.by_key.insert(key.clone(), pool);
        self.reap_at.get_or_insert(now + self.limits.connection_idle);
        channels
    }

    /// A call on the first connection with a free channel, or on a new connection. `None` while all are busy.
    pub(super) fn open(
        &mut self,
        now: Instant,
        channels: &Channels,
        security: &Security,
        endpoint: &mut Endpoint,
    ) -> Option<CallId> {
        let most = self.limits.connections.max(1);
        let pool = self.pools.get_mut(&channels.pool)?;
        pool.last_used = now;
        let mut index = 0;
        while let Some(connection) = pool.connections.get(index).copied() {
            match endpoint.open_call(now, connection) {
                Ok(call) => return Some(call),
                Err(OpenError::NoChannel) => index += 1,
                Err(_) => {
                    pool.connections.remove(index);
                    self.owners.remove(&connection);
                    endpoint.close(now, connection);
                }
            }
        }
        if index >= most {
            return None;
        }
        let connection = pool.connect(now, security, endpoint);
        self.owners.insert(connection, channels.pool);
        self.evict_unused(now, endpoint);
        endpoint.open_call(now, connection).ok()
    }

    /// Evicts an unused pool where there are more than are kept: the peers that a server calls back are determined by
    /// its clients, so nothing else bounds the number of pools.
    fn evict_unused(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.pools.len() <= self.limits.idle_pools {
            return;
        }
        let permits = self.permits();
        let examined = self.pools.range(self.clock_hand..).take(EXAMINED_MAX);
        let unused = |pool: &Pool| {
            pool.channels.free.available_permits() == permits && Arc::strong_count(&pool.channels) == 1
        };
        let mut found = None;
        let mut last = None;
        for (id, pool) in examined {
            last = Some(*id);
            if unused(pool) {
                found = Some(*id);
                break;
            }
        }
        self.clock_hand = last.map_or(PoolId(0), |PoolId(id)| PoolId(id + 1));
        let Some(pool) = found.and_then(|id| self.pools.remove(&id)) else { return };
        self.by_key.remove(&pool.key);
        for connection in pool.connections {
            self.owners.remove(&connection);
            endpoint.close(now, connection);
        }
    }

    fn owner(&self, connection: ConnId) -> Option<&Pool> {
        self.owners.get(&connection).and_then(|id| self.pools.get(id))
    }

    /// The waiters to notify after the lock is released.
    pub(super) fn on_channel_free(&mut self, connection: ConnId) -> Option<Arc<Notify>> {
        self.owner(connection).map(|pool| pool.channels.changed.clone())
    }

    /// A connection has failed: no call can be opened on it, and another replaces it when needed.
    pub(super) fn on_failed(
        &mut self,
        now: Instant,
        connection: ConnId,
        endpoint: &mut Endpoint,
    ) -> Option<Arc<Notify>> {
        let waiting = self.on_channel_free(connection);
        if let Some(pool) = self.owners.remove(&connection).and_then(|id| self.pools.get_mut(&id)) {
            pool.connections.retain(|c| *c != connection);
            endpoint.close(now, connection);
        }
        waiting
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.reap_at
    }

    /// Closes connections and pools that were unused for the idle time.
    pub(super) fn close_idle(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.reap_at.is_none_or(|at| now < at) {
            return;
        }
        let (permits, idle) = (self.permits(), self.limits.connection_idle);
        self.pools.retain(|_, pool| {
            let unused = pool.channels.free.available_permits() == permits && pool.last_used + idle <= now;
            if unused {
                for connection in pool.connections.drain(..) {
                    self.owners.remove(&connection);
                    endpoint.close(now, connection);
                }
            }
            let forgotten = unused && Arc::strong_count(&pool.channels) == 1;
            if forgotten {
                self.by_key.remove(&pool.key);
            }
            !forgotten
        });
        self.reap_at = (!self.pools.is_empty()).then_some(now + idle / 2);
    }

    /// Closes all; returns the waiters to notify.
    pub(super) fn close(&mut self, now: Instant, endpoint: &mut Endpoint) -> Vec<Arc<Notify>> {
        for connection in std::mem::take(&mut self.owners).into_keys() {
            endpoint.close(now, connection);
        }
        self.reap_at = None;
        self.by_key.clear();
        let pools = std::mem::take(&mut self.pools);
        pools.into_values().map(|pool| pool.channels.changed.clone()).collect()
    }
}

impl Pool {
    fn connect(&mut self, now: Instant, security: &Security, endpoint: &mut Endpoint) -> ConnId {
        let connection = endpoint.connect(now, self.key.peer, self.key.service, security.session());
        if let Some(dead) = self.key.dead {
            endpoint.set_dead_time(connection, dead);
        }
        self.connections.push(connection);
        connection
    }
}
