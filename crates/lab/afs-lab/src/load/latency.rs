//! Histogram of call times, of bounded size.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::error::LoadError;

/// Percentiles of call times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Call times as they are measured, in microseconds, to three digits. Times over a minute count as a minute.
pub(crate) struct Times(Histogram<u64>);

const LONGEST: u64 = 60_000_000;
const DIGITS: u8 = 3;

impl Times {
    pub(crate) fn new() -> Result<Self, LoadError> {
        Histogram::new_with_bounds(1, LONGEST, DIGITS).map(Times).map_err(|_| LoadError::Lost)
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST));
    }

    pub(crate) fn join(&mut self, other: &Times) -> Result<(), LoadError> {
        self.0.add(&other.0).map_err(|_| LoadError::Lost)
    }

    pub(crate) fn latency(&self) -> Latency {
        let seconds = |micros: u64| micros as f64 / 1e6;
        let at = |quantile| seconds(self.0.value_at_quantile(quantile));
        Latency { p50: at(0.5), p99: at(0.99), max: seconds(self.0.max()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn times_of_several_workers_are_one_distribution() {
        let (mut one, mut other) = (Times::new().unwrap(), Times::new().unwrap());
        (1..=500).for_each(|n| one.add(Duration::from_micros(n)));
        (501..=1000).for_each(|n| other.add(Duration::from_micros(n)));
        one.join(&other).unwrap();
        let Latency { p50, p99, max } = one.latency();
        let near = |found: f64, micros: f64| (found * 1e6 - micros).abs() <= micros / 500.0;
        assert!(near(p50, 500.0) && near(p99, 990.0) && near(max, 1000.0), "{p50} {p99} {max}");
        one.add(Duration::from_secs(3600));
        assert!(one.latency().max >= 60.0, "a time beyond the bounds counts as the longest");
    }
}
