//! Median and range of a few repeated measurements.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Median, smallest and largest of a set of times in seconds, or of other values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median; of an even number of values the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `times`, or `None` of nothing.
    #[must_use]
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        Self::of_values(times.into_iter().map(|time| time.as_secs_f64()))
    }

    /// The spread of `values`, or `None` of nothing.
    #[must_use]
    pub fn of_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: (upper + lower) / 2.0, min, max })
    }

    /// All three, multiplied by a factor that is not negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { median: self.median * factor, min: self.min * factor, max: self.max * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(seconds: &[u64]) -> Option<(f64, f64, f64)> {
        Spread::of(seconds.iter().map(|s| Duration::from_secs(*s))).map(|s| (s.median, s.min, s.max))
    }

    #[test]
    fn of_odd_even_one_and_none() {
        assert_eq!(spread(&[3, 1, 2]), Some((2.0, 1.0, 3.0)));
        assert_eq!(spread(&[4, 1, 2, 3]), Some((2.5, 1.0, 4.0)));
        assert_eq!(spread(&[7]), Some((7.0, 7.0, 7.0)));
        assert_eq!(spread(&[]), None);
    }
}
