//! Adaptive busy polling: whether a receiving thread polls its socket for a moment before it sleeps.
//!
//! Waking a thread on an idle processor costs tens of microseconds, on a virtual machine more than a small call itself. A polling
//! thread takes the next datagram at once. A thread polls only while that helps: after each failure it skips a number of
//! attempts, which doubles with failures and halves with successes. A datagram that arrives almost at once counts as a failure, and after a
//! batch of several there is no attempt: under load sleeping costs nothing, and lets datagrams collect to batches. An attempt that ends after
//! its time counts as a failure too, whatever arrived: the thread had lost its processor to another that needs it.

use std::time::Duration;

/// Bound of one attempt: the time that a sleeping peer takes to wake and reply.
const POLLING_MAX: Duration = Duration::from_micros(60);
/// A datagram that arrives sooner has not been waited for. With 64 calls in flight between two processes on two processors, attempts
/// without this bound took a fourth of the throughput.
const POLLING_MIN: Duration = Duration::from_micros(8);
/// Bound of the exponent: at least one attempt in 1,024 sleeps.
const FAILURES_MAX: u32 = 10;

/// Successes and failures of late.
#[derive(Debug)]
pub(super) struct Polling {
    /// There is another processor for the peer.
    allowed: bool,
    failures: u32,
    /// Attempts left to skip.
    skipped: u32,
    /// The last batch had several datagrams.
    batched: bool,
}

impl Polling {
    /// No attempt has been made yet. `processors`: those the process may use; on the only one, polling would delay the peer.
    pub(super) fn new(processors: usize) -> Self {
        Self { allowed: processors > 1, failures: FAILURES_MAX / 2, skipped: 0, batched: false }
    }

    /// How long to poll before the next sleep, if at all.
    pub(super) fn next(&mut self) -> Option<Duration> {
        if !self.allowed || self.batched {
            return None;
        }
        match self.skipped.checked_sub(1) {
            Some(left) => {
                self.skipped = left;
                None
            }
            None => Some(POLLING_MAX),
        }
    }

    /// Records the size of a batch.
    pub(super) fn received(&mut self, messages: usize) {
        self.batched = messages > 1;
    }

    /// Records the outcome of an attempt: after what time something arrived, if it did.
    pub(super) fn note(&mut self, arrived: Option<Duration>) {
        if arrived.is_some_and(|waited| (POLLING_MIN..=POLLING_MAX).contains(&waited)) {
            self.failures = self.failures.saturating_sub(1);
        } else {
            self.failures = (self.failures + 1).min(FAILURES_MAX);
            self.skipped = (1 << self.failures) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::from_micros(20));
    const AT_ONCE: Option<Duration> = Some(Duration::from_micros(1));
    const PREEMPTED: Option<Duration> = Some(Duration::from_micros(400));

    /// Number of attempts before `sleeps` sleeps, each with the same outcome.
    fn attempts(polling: &mut Polling, sleeps: usize, outcome: Option<Duration>) -> usize {
        let mut times = 0;
        for _ in 0..sleeps {
            if polling.next().is_some() {
                polling.note(outcome);
                times += 1;
            }
        }
        times
    }

    #[test]
    fn a_thread_polls_as_long_as_datagrams_arrive_soon() {
        assert_eq!(attempts(&mut Polling::new(2), 1000, SOON), 1000);
    }

    #[test]
    fn attempts_are_rare_where_nothing_arrives_or_all_arrives_at_once_or_others_need_the_processor() {
        for outcome in [None, AT_ONCE, PREEMPTED] {
            let mut polling = Polling::new(2);
            attempts(&mut polling, 10_000, outcome);
            assert!(attempts(&mut polling, 100 << FAILURES_MAX, outcome) <= 101);
        }
    }

    #[test]
    fn a_thread_that_gave_up_polls_again_once_that_helps() {
        let mut polling = Polling::new(2);
        attempts(&mut polling, 10_000, None);
        attempts(&mut polling, 1 << FAILURES_MAX, SOON);
        assert_eq!(attempts(&mut polling, 1000, SOON), 1000);
    }

    #[test]
    fn a_failure_among_many_successes_costs_one_sleep() {
        let mut polling = Polling::new(2);
        attempts(&mut polling, 100, SOON);
        polling.note(None);
        assert_eq!(attempts(&mut polling, 101, SOON), 100);
    }

    #[test]
    fn after_a_batch_of_several_a_thread_does_not_poll() {
        let mut polling = Polling::new(2);
        polling.received(2);
        assert_eq!(attempts(&mut polling, 100, SOON), 0);
        polling.received(1);
        assert_eq!(attempts(&mut polling, 100, SOON), 100);
    }

    #[test]
    fn the_only_processor_is_left_to_the_peer() {
        assert_eq!(attempts(&mut Polling::new(1), 100, SOON), 0);
    }
}
