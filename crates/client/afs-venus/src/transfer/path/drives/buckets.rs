//! Bounded table of the buckets that layouts name, each with its failures.

use std::collections::BTreeMap;
use std::time::Duration;

use afs_datapath::capability::DriveId;
use afs_rpc::Instant;

use super::super::failures::Failures;
use super::super::fallback::Fallback;

/// Most buckets of one file server that are known at a time.
const BUCKETS_MAX: usize = 32;
/// How many reads in a row may be refused before the bucket counts as failed.
const FRUITLESS_MAX: u32 = 8;

/// The buckets.
#[derive(Default)]
pub(super) struct Buckets(BTreeMap<DriveId, Known>);

#[derive(Default)]
struct Known {
    failures: Failures,
    fruitless: u32,
    read_at: Option<Instant>,
}

impl Buckets {
    /// Whether a bucket is left alone now.
    pub fn is_pausing(&self, bucket: DriveId, now: Instant) -> bool {
        self.0.get(&bucket).is_some_and(|known| known.failures.is_pausing(now))
    }

    /// A chunk was read.
    pub fn succeeded(&mut self, bucket: DriveId, now: Instant) {
        *self.known(bucket) = Known { read_at: Some(now), ..Known::default() };
    }

    /// A chunk was not read. How long the bucket is left alone from now on: of several reads that fail together, the first counts.
    pub fn failed(&mut self, bucket: DriveId, why: Fallback, now: Instant) -> Option<Duration> {
        let known = self.known(bucket);
        known.fruitless = known.fruitless.saturating_add(1);
        let is_failure = why.is_failure() || (why.is_of_request() && known.fruitless >= FRUITLESS_MAX);
        (is_failure && !known.failures.is_pausing(now)).then(|| known.failures.note(now))
    }

    /// Whether any was read within a time.
    pub fn is_any_in_use(&self, now: Instant, within: Duration) -> bool {
        self.0.values().filter_map(|known| known.read_at).any(|at| now.saturating_since(at) < within)
    }

    fn known(&mut self, bucket: DriveId) -> &mut Known {
        if self.0.len() >= BUCKETS_MAX && !self.0.contains_key(&bucket) {
            self.0.pop_first();
        }
        self.0.entry(bucket).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: DriveId = DriveId(1);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_failure_pauses_at_once_a_refusal_after_eight_and_reads_that_fail_together_count_once() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.failed(ONE, Fallback::Broken, at(0)), Some(Duration::from_secs(60)));
        assert_eq!(buckets.failed(ONE, Fallback::Broken, at(1)), None);
        assert!(buckets.is_pausing(ONE, at(59)) && !buckets.is_pausing(ONE, at(60)));
        assert_eq!(buckets.failed(ONE, Fallback::Stalled, at(60)), Some(Duration::from_secs(120)));
        buckets.succeeded(ONE, at(200));
        for n in 1..8 {
            assert_eq!(buckets.failed(ONE, Fallback::Damaged, at(201)), None, "{n}");
        }
        assert_eq!(buckets.failed(ONE, Fallback::Damaged, at(201)), Some(Duration::from_secs(60)));
        assert!(buckets.is_any_in_use(at(200), Duration::from_secs(9)) == buckets.0[&ONE].read_at.is_some());
    }

    #[test]
    fn a_bounded_number_is_known() {
        let mut buckets = Buckets::default();
        for number in 0..1000 {
            buckets.failed(DriveId(number), Fallback::Broken, at(0));
        }
        assert_eq!(buckets.0.len(), BUCKETS_MAX);
    }
}
