//! Limits on the calls of clients: in total, per host, and for anonymous clients.
//!
//! A call that waits for authentication or address validation is unknown, and may have a forged source: the oldest of those gives way.
//! An admitted call counts for its host, whatever the port, and gives way to nobody: the application works on it.

use super::Endpoint;
use crate::Instant;
use crate::call::{Arrival, Call, Phase};
use crate::config::Config;
use crate::error::CallError;
use crate::slab::Key;
use afs_env::admission::{Admission, Bounds, Class, Origin};

/// The calls of clients: a quarter is for authenticated ones.
pub(super) fn incoming(config: &Config) -> Admission<Key> {
    let max = config.incoming_calls_max;
    Admission::new(Bounds::of(max, config.incoming_calls_per_host).with_proven(max / 4))
}

impl Endpoint {
    /// Makes room for one more call of a client: at the limit, the oldest waiting call is evicted.
    pub(super) fn make_room_for_call(&mut self, now: Instant) -> bool {
        if !self.call_limits.is_full() {
            return true;
        }
        let oldest = self.call_limits.oldest(Class::Unknown);
        oldest.into_iter().for_each(|key| self.fail_call(now, key, CallError::Superseded, None));
        oldest.is_some()
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
        while let Some(oldest) = self.call_limits.oldest(Class::Unknown).filter(|oldest| *oldest != key) {
            self.fail_call(now, oldest, CallError::Superseded, None);
            if self.has_room(key, cost, arrival) {
                return true;
            }
        }
        false
    }

    /// Counts a new call of a client, which waits.
    pub(super) fn count_waiting_call(&mut self, key: Key) {
        if let Some(call) = self.calls.get_mut(key) {
            call.slot = self.call_limits.enter(Origin::FORGEABLE, key).map(|entered| entered.slot);
        }
    }

    /// Counts a call that is to be admitted; false when the limit of its host or of anonymous clients is reached.
    pub(super) fn count_admitted_call(&mut self, key: Key) -> bool {
        let Some(call) = self.calls.get_mut(key) else { return false };
        let Some(connection) = self.connections.slab.get(call.connection) else { return false };
        let class = if connection.identity().is_some() { Class::Proven } else { Class::Known };
        let origin = Origin::of(connection.to.ip());
        call.slot.as_mut().is_some_and(|slot| self.call_limits.raise(slot, class, origin, key).is_ok())
    }

    /// A call of a client is freed.
    pub(super) fn uncount_call(&mut self, call: &mut Call) {
        call.slot.take().into_iter().for_each(|slot| self.call_limits.leave(slot));
    }
}
