//! Promises, and the breaks that race with them.
//!
//! A break may arrive while the call whose reply grants the promise is in progress, and the first call to a server is
//! always answered by an InitCallBackState3 during the call. Every break therefore takes a number from one sequence,
//! every call records the last number before it begins, and a promise is valid only while no later break concerns it
//! (docs/protocol/callback.md "4. CallBack semantics", "9. Traps").

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::fs::CallBack;

/// Sequence of break numbers.
#[derive(Default)]
pub(crate) struct BreakCounter(AtomicU64);

impl BreakCounter {
    /// Number of the last break, recorded by a call before it begins.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Number of a new break.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Number of the last break of all promises of a server.
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

/// Longest lifetime of a promise. No server grants more; one that claims more may not keep it.
const LIFETIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// A callback promise.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// The server that gave it.
    pub server: ServerReset,
    /// Number of the last break before the call that brought it.
    pub serial: u64,
    /// When it is not relied on any more.
    pub until: Instant,
}

impl Promise {
    /// The promise in a reply to a call begun at `started`; `None` if there is none, or it has ended already.
    ///
    /// The lifetime counts from the start of the call, since the server counts from some later moment.
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

    /// True if the promise has not ended and no break came after its call began. `broken` is the number of the last
    /// break of the object or its volume.
    pub fn is_valid(&self, now: Instant, broken: u64) -> bool {
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
        assert!(promise.is_valid(at(89), 0));
        assert!(!promise.is_valid(at(90), 0));
        assert!(Promise::of(&CallBack::shared(20), &server, 0, at(10), MARGIN).is_none());
        assert!(Promise::of(&CallBack::NONE, &server, 0, at(10), MARGIN).is_none());
    }

    #[test]
    fn a_break_during_the_call_wins_and_one_before_it_does_not() {
        let (breaks, server) = (BreakCounter::default(), ServerReset::default());
        let before = breaks.next();
        let promise = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(0), MARGIN).unwrap();
        assert!(promise.is_valid(at(1), before));
        let during = breaks.next();
        assert!(!promise.is_valid(at(1), during));
    }

    #[test]
    fn a_reset_at_first_contact_costs_one_more_fetch_and_no_second() {
        let (breaks, server) = (BreakCounter::default(), ServerReset::default());
        let first = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(0), MARGIN).unwrap();
        server.set(breaks.next());
        assert!(!first.is_valid(at(1), 0));
        let second = Promise::of(&CallBack::shared(100), &server, breaks.last(), at(1), MARGIN).unwrap();
        assert!(second.is_valid(at(2), 0));
    }
}
