//! Decision whether, and after which pause, a request is made again.

use std::time::Duration;

use crate::bucket::Failure;

/// The longest that one attempt may take: 8 MiB at 420 KB/s.
pub(crate) const ATTEMPT_MAX: Duration = Duration::from_secs(20);
/// Attempts at one request.
const ATTEMPTS_MAX: u32 = 8;
/// No attempt begins later than this after the first.
const TRYING_MAX: Duration = Duration::from_secs(60);
/// Upper bound of the first pause; that of each further one is twice its predecessor's.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Attempts at one request so far.
#[derive(Default)]
pub(crate) struct Retry {
    attempts: u32,
}

impl Retry {
    /// The pause after an attempt that failed; `None` if the failure is final. The pause is drawn from the upper half of its
    /// range by `random`, so that clients which a busy store has refused together do not come back together.
    ///
    /// `elapsed` is the time since the first attempt began.
    pub(crate) fn pause(&mut self, failure: &Failure, elapsed: Duration, random: u64) -> Option<Duration> {
        if !matches!(failure, Failure::Busy(_) | Failure::Broken(_)) {
            return None;
        }
        self.attempts += 1;
        let bound = PAUSE_FIRST.saturating_mul(1 << (self.attempts - 1).min(16)).min(PAUSE_MAX);
        let half = bound / 2;
        let pause = half + Duration::from_nanos(random % (half.as_nanos() as u64 + 1));
        (self.attempts < ATTEMPTS_MAX && elapsed + pause < TRYING_MAX).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let busy = Failure::Busy("slow down".into());
        for random in [0, u64::MAX, 12_345_678_901] {
            let mut retry = Retry::default();
            let pauses: Vec<_> =
                std::iter::from_fn(|| retry.pause(&busy, Duration::ZERO, random)).take(100).collect();
            assert_eq!(pauses.len(), ATTEMPTS_MAX as usize - 1);
            for (n, pause) in pauses.iter().enumerate() {
                let bound = (PAUSE_FIRST * (1 << n)).min(PAUSE_MAX);
                assert!((bound / 2..=bound).contains(pause), "{n}: {pause:?}");
            }
        }
        assert_eq!(Retry::default().pause(&busy, TRYING_MAX, 0), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let pauses = |failure: Failure| Retry::default().pause(&failure, Duration::ZERO, 0).is_some();
        assert!(pauses(Failure::Busy(String::new())) && pauses(Failure::Broken(String::new())));
        for last in [
            Failure::Exists,
            Failure::Missing,
            Failure::Denied(String::new()),
            Failure::Refused(String::new()),
        ] {
            assert!(!pauses(last));
        }
    }
}
