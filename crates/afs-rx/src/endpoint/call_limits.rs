//! Limits on the calls of clients: in total, per host, and for anonymous clients.
//!
//! A call that waits for authentication or address validation may have a forged source: the oldest of those is
//! evicted. An admitted call counts for its host, whatever the port.

use super::Endpoint;
use crate::Instant;
use crate::call::{Arrival, Call, Phase};
use crate::error::CallError;
use crate::hash::HashSeed;
use crate::slab::Key;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Counts of the calls of clients.
pub(super) struct CallLimits {
    /// All of them.
    alive: usize,
    /// Waiting calls, oldest first, with stale entries.
    waiting: VecDeque<Key>,
    admitted: HashMap<IpAddr, usize, HashSeed>,
    /// Admitted calls of anonymous clients.
    anonymous: usize,
}

/// The counters that an admitted call is included in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdmittedAs {
    host: IpAddr,
    anonymous: bool,
}

impl CallLimits {
    pub(super) fn new(hash: HashSeed) -> Self {
        Self { alive: 0, waiting: VecDeque::new(), admitted: HashMap::with_hasher(hash), anonymous: 0 }
    }

    fn add(&mut self, admitted_as: AdmittedAs) {
        *self.admitted.entry(admitted_as.host).or_default() += 1;
        self.anonymous += usize::from(admitted_as.anonymous);
    }

    fn remove(&mut self, admitted_as: AdmittedAs) {
        self.anonymous -= usize::from(admitted_as.anonymous);
        if let Some(count) = self.admitted.get_mut(&admitted_as.host) {
            *count -= 1;
            if *count == 0 {
                self.admitted.remove(&admitted_as.host);
            }
        }
    }
}

impl Endpoint {
    /// Makes room for one more call of a client: at the limit, the oldest waiting call is evicted.
    pub(super) fn make_room_for_call(&mut self, now: Instant) -> bool {
        if self.call_limits.alive < self.config.incoming_calls_max {
            return true;
        }
        while let Some(key) = self.call_limits.waiting.pop_front() {
            if self.calls.get(key).is_some_and(|call| call.phase == Phase::Waiting) {
                self.fail_call(now, key, CallError::Superseded, None);
                return true;
            }
        }
        false
    }

    /// Makes room for the first packet of a waiting call: where the memory for such calls is used up, the oldest are
    /// evicted. Otherwise a sender of forged packets would keep new clients out.
    pub(super) fn make_room_for_packet(
        &mut self,
        now: Instant,
        key: Key,
        cost: usize,
        arrival: Arrival,
    ) -> bool {
        let is_first = self.calls.get(key).is_some_and(|call| {
            call.phase == Phase::Waiting && call.receive.held() == 0 && arrival == Arrival::InOrder
        });
        if !is_first {
            return false;
        }
        while let Some(oldest) = self.call_limits.waiting.pop_front() {
            if oldest == key {
                self.call_limits.waiting.push_front(oldest);
                return false;
            }
            if self.calls.get(oldest).is_some_and(|call| call.phase == Phase::Waiting) {
                self.fail_call(now, oldest, CallError::Superseded, None);
            }
            if self.has_room(key, cost, arrival) {
                return true;
            }
        }
        false
    }

    /// Counts a new call of a client, which waits.
    pub(super) fn count_waiting_call(&mut self, key: Key) {
        self.call_limits.alive += 1;
        if self.call_limits.waiting.len() >= 2 * self.config.incoming_calls_max {
            let calls = &self.calls;
            self.call_limits
                .waiting
                .retain(|key| calls.get(*key).is_some_and(|call| call.phase == Phase::Waiting));
        }
        self.call_limits.waiting.push_back(key);
    }

    /// Counts a call that is to be admitted; false when the limit of its host or of anonymous clients is reached.
    pub(super) fn count_admitted_call(&mut self, key: Key) -> bool {
        let Some(connection) =
            self.calls.get(key).and_then(|call| self.connections.slab.get(call.connection))
        else {
            return false;
        };
        let admitted_as = AdmittedAs {
            host: connection.to.ip().to_canonical(),
            anonymous: connection.identity().is_none(),
        };
        let of_host = self.call_limits.admitted.get(&admitted_as.host).copied().unwrap_or(0);
        let anonymous_max = self.config.incoming_calls_max - self.config.incoming_calls_max / 4;
        if of_host >= self.config.incoming_calls_per_host
            || admitted_as.anonymous && self.call_limits.anonymous >= anonymous_max
        {
            return false;
        }
        self.call_limits.add(admitted_as);
        if let Some(call) = self.calls.get_mut(key) {
            call.admitted_as = Some(admitted_as);
        }
        true
    }

    /// A call of a client is freed.
    pub(super) fn uncount_call(&mut self, call: &mut Call) {
        self.call_limits.alive -= 1;
        if let Some(admitted_as) = call.admitted_as.take() {
            self.call_limits.remove(admitted_as);
        }
    }
}
