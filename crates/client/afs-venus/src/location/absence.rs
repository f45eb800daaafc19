//! Whether a server replies at an address, since when it does not, and whether a task watches it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afs_rpc::Instant;

/// What is known of the replies from one address of a file server or location server.
#[derive(Default)]
pub(crate) struct Absence {
    /// When it was last found unreachable, in nanoseconds; 0 if it is reachable.
    unreachable_at: AtomicU64,
    /// When it last replied; 0: never.
    heard_at: AtomicU64,
    /// Start of the first call without a reply; valid while it is unreachable.
    since: AtomicU64,
    /// True if a task watches it.
    watched: AtomicBool,
}

impl Absence {
    /// True if the last call found it unreachable.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable_at.load(Ordering::Relaxed) != 0
    }

    /// Records that a call begun at `begun` got no reply. Returns true if the address was reachable before.
    pub fn began(&self, begun: Instant, now: Instant) -> bool {
        if !self.is_unreachable() {
            self.since.store(begun.as_nanos(), Ordering::Relaxed);
        }
        self.unreachable_at.swap(now.as_nanos().max(1), Ordering::Relaxed) == 0
    }

    /// Records a reply. Returns true if the address was unreachable before.
    pub fn answered(&self, now: Instant) -> bool {
        self.heard_at.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.unreachable_at.swap(0, Ordering::Relaxed) != 0
    }

    /// Start of the first call without a reply; valid while it is unreachable.
    pub fn since(&self) -> Instant {
        Instant::from_nanos(self.since.load(Ordering::Relaxed))
    }

    /// True if it has replied since `then`.
    pub fn heard_since(&self, then: Instant) -> bool {
        Instant::from_nanos(self.heard_at.load(Ordering::Relaxed)) > then
    }

    /// True if it has ever replied.
    pub fn has_replied(&self) -> bool {
        self.heard_at.load(Ordering::Relaxed) != 0
    }

    /// Time since its last reply; `None` if it never replied.
    pub fn idle_for(&self, now: Instant) -> Option<Duration> {
        match self.heard_at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.saturating_since(Instant::from_nanos(at))),
        }
    }

    /// Remaining time for which waiting is worthwhile, if the server has replied before; `most` in all.
    pub fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        match self.idle_for(now) {
            None => Duration::ZERO,
            Some(_) => most.saturating_sub(now.saturating_since(self.since())),
        }
    }

    /// Claims the watch of an unreachable address: true if no task watches it; the caller must do it.
    pub fn claim_watch(&self) -> bool {
        self.is_unreachable() && !self.watched.swap(true, Ordering::SeqCst)
    }

    /// Ends the watch.
    pub fn end_watch(&self) {
        self.watched.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_worthwhile_for_a_time_from_the_first_call_without_a_reply() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let (absence, most) = (Absence::default(), Duration::from_secs(15));
        assert!(absence.began(at(1), at(2)));
        assert_eq!(absence.remaining_wait(at(2), most), Duration::ZERO, "it has never replied");
        assert!(absence.claim_watch() && !absence.claim_watch());
        assert!(absence.answered(at(3)) && !absence.answered(at(4)));
        assert!(absence.began(at(5), at(7)) && !absence.began(at(8), at(9)));
        assert_eq!(absence.remaining_wait(at(10), most), Duration::from_secs(10));
        assert_eq!(absence.remaining_wait(at(20), most), Duration::ZERO);
        assert!(absence.remaining_wait(at(90), Duration::MAX) > Duration::from_secs(1 << 30));
        assert!(absence.heard_since(at(3)) && !absence.heard_since(at(4)));
    }
}
