//! Promises, and the breaks that race with them.
//!
//! A break may arrive while the call whose reply grants the promise is still under way, and the first call to a server
//! is always met by an InitCallBackState3 in its midst. Every break therefore takes a number from one line, every call
//! notes the number before it begins, and a promise counts only while no later break touches it
//! (docs/protocol/callback.md "4. CallBack semantics", "9. Traps").

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::fs::CallBack;

/// The line of numbers for breaks.
#[derive(Default)]
pub(crate) struct BreakCounter(AtomicU64);

impl BreakCounter {
    /// The number of the last break: what a call notes before it begins.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// A new break.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// The number of the last time a server told us to forget everything.
#[derive(Clone, Default, Debug)]
pub(crate) struct ServerReset(Arc<AtomicU64>);

impl ServerReset {
    pub fn set(&self, serial: u64) {
        self.0.fetch_max(serial, Ordering::SeqCst);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn is_same(&self, other: &ServerReset) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Longest time that a promise is relied on. No server gives more; one that says more may not know that it has to keep it.
const LIFETIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// A server's promise to call back.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// The server that gave it.
    pub server: ServerReset,
    /// The number of the last break before the call that brought it.
    pub serial: u64,
    /// When we stop relying on it.
    pub until: Instant,
}

impl Promise {
    /// The promise of a reply to a call begun at `started`; `None` if there is none, or it is over already.
    ///
    /// The time counts from the start of the call, since the server counts from some moment after it.
    pub fn of(
        callback: &CallBack,
        server: &ServerReset,
        serial: u64,
        started: Instant,
        margin: Duration,
    ) -> Option<Self> {
        let lifetime = Duration::from_secs(u64::from(callback.expires_in)).min(LIFETIME_MAX);
        let lifetime = lifetime.checked_sub(margin)?;
        let promise = Promise { server: server.clone(), serial, until: started + lifetime };
        (!lifetime.is_zero()).then_some(promise)
    }

    /// Whether it holds: not over, and no break after the call that brought it. `broken` is the number of the last
    /// break of the object or its volume.
    pub fn has_open(&self, now: Instant, broken: u64) -> bool {
        now < self.until && broken <= self.serial && self.server.get() <= self.serial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Duration = Duration::from_secs(20);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_promise_ends_before_the_server_forgets_it() {
        let server = ServerReset::default();
        let promise = Promise::of(&CallBack::shared(100), &server, 0, at(10), MARGIN).unwrap();
        assert!(promise.holds(at(89), 0));
        assert!(!promise.holds(at(90), 0));
        assert!(Promise::of(&CallBack::shared(20), &server, 0, at(10), MARGIN).is_none());
        assert!(Promise::of(&CallBack::NONE, &server, 0, at(10), MARGIN).is_none());
    }

    #[test]
    fn a_break_during_the_call_wins_and_one_before_it_does_not() {
        let (breaks, server) = (BreakCounter::default(), ServerReset::default());
        let before = breaks.next();
        let promise = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(0), MARGIN).unwrap();
        assert!(promise.holds(at(1), before));
        let during = breaks.next();
        assert!(!promise.holds(at(1), during));
    }

    #[test]
    fn a_reset_at_first_contact_costs_one_more_fetch_and_no_second() {
        let (breaks, server) = (BreakCounter::default(), ServerReset::default());
        let first = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(0), MARGIN).unwrap();
        server.set(breaks.next());
        assert!(!first.holds(at(1), 0));
        let second = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(1), MARGIN).unwrap();
        assert!(second.holds(at(2), 0));
    }
}
