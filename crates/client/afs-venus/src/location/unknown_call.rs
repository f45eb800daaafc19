//! Note that a server does not know a call: for an hour, and no longer than until the server starts again.

use std::time::Duration;

use afs_rpc::Instant;
use parking_lot::Mutex;

/// How long it is believed. A server that was replaced by one that knows the call is asked then at the latest.
const BELIEVED: Duration = Duration::from_secs(3600);

/// Whether a server does not know a call.
#[derive(Default)]
pub(crate) struct UnknownCall(Mutex<Option<Noted>>);

#[derive(Clone, Copy)]
struct Noted {
    until: Instant,
    /// Number of the last break of all promises of the server before the call. A server that starts again breaks them all.
    reset: u64,
}

impl UnknownCall {
    /// The server has said so, of a call before which `reset` was the number of the last break of all of its promises.
    pub fn note(&self, now: Instant, reset: u64) {
        *self.0.lock() = Some(Noted { until: now + BELIEVED, reset });
    }

    /// Whether it is not worth asking the server, whose last break of all promises has the number `reset`.
    pub fn is_noted(&self, now: Instant, reset: u64) -> bool {
        self.0.lock().is_some_and(|noted| now < noted.until && noted.reset == reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_again_after_an_hour_and_when_it_has_started_again() {
        let (unknown, asked) = (UnknownCall::default(), Instant::ZERO + Duration::from_secs(100));
        assert!(!unknown.is_noted(asked, 4));
        unknown.note(asked, 4);
        assert!(unknown.is_noted(asked, 4));
        assert!(unknown.is_noted(asked + BELIEVED - Duration::from_nanos(1), 4));
        assert!(!unknown.is_noted(asked + BELIEVED, 4), "an hour later");
        assert!(!unknown.is_noted(asked, 5), "it has started again");
        // It started while it was asked: which of the two replied is not known.
        unknown.note(asked, 4);
        assert!(!unknown.is_noted(asked, 5));
    }
}
