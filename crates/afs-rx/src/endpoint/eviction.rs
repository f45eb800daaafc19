//! Eviction of server connections, and their idle time.
//!
//! Connections whose clients have taken no reply and are not authenticated may have forged source addresses. They may
//! take three quarters of the table; beyond that the oldest of them is evicted. So a flood of forged packets evicts
//! its own connections, and not those of real clients.

use super::Endpoint;
use crate::Instant;
use crate::call::Phase;
use crate::connection::Connection;
use crate::error::CallError;
use crate::slab::Key;
use core::time::Duration;
use std::collections::VecDeque;

/// Connections whose source address may be forged.
#[derive(Default)]
pub(super) struct UnprovenConnections {
    count: usize,
    /// All of them, oldest first, with stale entries of removed or proven ones.
    oldest: VecDeque<Key>,
}

impl Endpoint {
    /// Counts a new connection of a client.
    pub(super) fn count_unproven(&mut self, key: Key) {
        if self.unproven.oldest.len() >= 2 * self.config.server_connections_max {
            let connections = &self.connections.slab;
            self.unproven.oldest.retain(|key| connections.get(*key).is_some_and(|found| found.is_unproven));
        }
        self.unproven.oldest.push_back(key);
        self.unproven.count += 1;
    }

    /// The client has taken a reply or authenticated, or the connection is removed.
    pub(super) fn uncount_unproven(&mut self, connection: Key) {
        if let Some(connection) = self.connection_mut(connection)
            && std::mem::take(&mut connection.is_unproven)
        {
            self.unproven.count -= 1;
        }
    }

    /// How long a server connection without calls is kept.
    pub(super) fn idle_time_of(&self, connection: &Connection) -> Duration {
        match connection.is_unproven {
            true => self.config.connection_idle_unproven,
            false => self.config.connection_idle,
        }
    }

    /// Makes room for one more server connection; false when none is found that may be evicted.
    pub(super) fn make_room_for_connection(&mut self, now: Instant) -> bool {
        let max = self.config.server_connections_max;
        if self.connections.server_count() < max {
            return true;
        }
        let is_flooded = self.unproven.count >= max - max / 4;
        let idle = if is_flooded { None } else { self.connections.evictable() };
        let Some(key) = idle.or_else(|| self.oldest_unproven()).or_else(|| self.connections.evictable())
        else {
            return false;
        };
        let calls = self.connections.slab.get(key).map(Connection::calls);
        for call in calls.into_iter().flatten().flatten() {
            self.fail_call(now, call, CallError::Superseded, None);
        }
        self.remove_connection(now, key);
        true
    }

    /// The oldest one on which the application has no call.
    fn oldest_unproven(&mut self) -> Option<Key> {
        for _ in 0..self.unproven.oldest.len().min(EXAMINED_MAX) {
            let key = self.unproven.oldest.pop_front()?;
            let Some(found) = self.connections.slab.get(key).filter(|found| found.is_unproven) else {
                continue;
            };
            let may_end = |key: Key| {
                self.calls.get(key).is_none_or(|call| call.phase == Phase::Waiting || call.released)
            };
            if found.calls().into_iter().flatten().all(may_end) {
                return Some(key);
            }
            self.unproven.oldest.push_back(key);
        }
        None
    }
}

/// Bounds the work that an unwanted packet can cause.
const EXAMINED_MAX: usize = 32;
