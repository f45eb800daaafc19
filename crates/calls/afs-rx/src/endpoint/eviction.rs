//! Which connection that a client has opened gives way to a new one, and how long they are kept without calls.
//!
//! A client that has taken no reply and is not authenticated may have a forged address: its connection is unknown. One that has taken
//! a reply is known by its address, and an authenticated one is proven. Each class has a share of the table (`afs_env::admission`), so
//! that a flood evicts its own connections, whether its addresses are forged or its own.

use super::Endpoint;
use crate::Instant;
use crate::call::Phase;
use crate::connection::Connection;
use crate::error::CallError;
use crate::slab::Key;
use afs_env::admission::{Admission, Bounds, Class, Origin};
use core::time::Duration;

/// The table of server connections: a quarter is for those whose client has shown nothing yet, and a quarter for authenticated ones.
pub(super) fn server_connections(max: usize) -> Admission<Key> {
    Admission::new(Bounds::of(max, usize::MAX).with_unknown(max / 4).with_proven(max / 4))
}

impl Endpoint {
    /// Counts a new connection of a client, for which there is room.
    pub(super) fn count_connection(&mut self, key: Key) {
        if let Some(connection) = self.connections.slab.get_mut(key) {
            // Nothing has arrived from there that a forger could not send.
            connection.slot = self.admitted.enter(Origin::FORGEABLE, key).map(|entered| entered.slot);
        }
    }

    /// The client has taken a reply, or has authenticated. Where those who took one have their share, the oldest without calls of the
    /// network that has most gives way; if there is none, the connection stays unknown.
    pub(super) fn prove_connection(&mut self, now: Instant, key: Key, class: Class) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        let (origin, before) =
            (Origin::of(connection.to.ip()), connection.slot.as_ref().map(|slot| slot.class()));
        if before.is_none_or(|before| before >= class) || self.raise(key, class, origin) {
            return;
        }
        let largest = self.admitted.largest_beside(class, origin);
        if let Some(instead) = largest.and_then(|_| self.oldest_of(class)) {
            self.evict(now, instead);
            self.raise(key, class, origin);
        }
    }

    fn raise(&mut self, key: Key, class: Class, origin: Origin) -> bool {
        let slot = self.connections.slab.get_mut(key).and_then(|connection| connection.slot.as_mut());
        slot.is_some_and(|slot| self.admitted.raise(slot, class, origin, key).is_ok())
    }

    /// A connection is removed.
    pub(super) fn uncount_connection(&mut self, key: Key) {
        let slot = self.connections.slab.get_mut(key).and_then(|connection| connection.slot.take());
        slot.into_iter().for_each(|slot| self.admitted.leave(slot));
    }

    /// How long a server connection without calls is kept.
    pub(super) fn idle_time_of(&self, connection: &Connection) -> Duration {
        match connection.slot.as_ref().is_some_and(|slot| slot.class() == Class::Unknown) {
            true => self.config.connection_idle_unproven,
            false => self.config.connection_idle,
        }
    }

    /// Makes room for one more server connection; false when none is found that may be evicted. The unknown go where they have more than
    /// their share, then the known where they have more than that share; otherwise any one that is idle.
    pub(super) fn make_room_for_connection(&mut self, now: Instant) -> bool {
        if !self.admitted.is_full() {
            return true;
        }
        let tally = self.admitted.tally();
        let has_many = |class| tally.of(class) > self.config.server_connections_max / 4;
        let classes = [Class::Unknown, Class::Known].map(|class| has_many(class).then_some(class));
        let beyond = classes.into_iter().flatten().find_map(|class| self.oldest_of(class));
        let found =
            beyond.or_else(|| self.connections.evictable()).or_else(|| self.oldest_of(Class::Unknown));
        found.into_iter().for_each(|key| self.evict(now, key));
        found.is_some()
    }

    /// The oldest one of the network that has most, on which the application has no call; a known one is without any.
    fn oldest_of(&mut self, class: Class) -> Option<Key> {
        for _ in 0..EXAMINED_MAX {
            let key = self.admitted.oldest(class)?;
            let found = self.connections.slab.get(key)?;
            let may_end = |key: Key| {
                class == Class::Unknown
                    && self.calls.get(key).is_none_or(|call| call.phase == Phase::Waiting || call.released)
            };
            if found.calls().into_iter().flatten().all(may_end) {
                return Some(key);
            }
            let slot = self.connections.slab.get_mut(key).and_then(|connection| connection.slot.as_mut());
            slot.into_iter().for_each(|slot| self.admitted.renew(slot, key));
        }
        None
    }

    fn evict(&mut self, now: Instant, key: Key) {
        let calls = self.connections.slab.get(key).map(Connection::calls);
        for call in calls.into_iter().flatten().flatten() {
            self.fail_call(now, call, CallError::Superseded, None);
        }
        self.remove_connection(now, key);
    }
}

/// Bounds the work that an unwanted packet can cause.
const EXAMINED_MAX: usize = 32;
