//! Pause after failures of one server's data path: a minute, doubled by each further failure, at most an hour.

use std::time::Duration;

use afs_rpc::Instant;

const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Failures since the last transfer that succeeded.
#[derive(Default)]
pub(super) struct Failures {
    count: u32,
    until: Option<Instant>,
}

impl Failures {
    /// One more. Gives the pause that follows.
    pub fn note(&mut self, now: Instant) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.count.min(6)).min(LONGEST);
        self.count = self.count.saturating_add(1);
        self.until = Some(now + pause);
        pause
    }

    /// A transfer has succeeded.
    pub fn forget(&mut self) {
        *self = Failures::default();
    }

    /// Whether the path is left alone now.
    pub fn is_pausing(&self, now: Instant) -> bool {
        self.pause(now).is_some()
    }

    /// How long it is left alone from now.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        self.until.filter(|until| now < *until).map(|until| until.saturating_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_from_a_minute_to_an_hour_and_a_success_ends_it() {
        let (mut failures, now) = (Failures::default(), Instant::ZERO + Duration::from_secs(1000));
        let minutes: Vec<u64> = (0..8).map(|_| failures.note(now).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(failures.is_pausing(now + LONGEST - Duration::from_nanos(1)));
        assert_eq!(failures.pause(now + FIRST), Some(LONGEST - FIRST));
        assert!(!failures.is_pausing(now + LONGEST));
        failures.forget();
        assert!(!failures.is_pausing(now));
        assert_eq!(failures.note(now), FIRST);
    }
}
