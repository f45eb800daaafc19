//! Latencies of the calls of honest clients.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

/// Latencies of calls of one kind.
pub struct Series {
    name: &'static str,
    took: Vec<Duration>,
    failures: Vec<String>,
}

/// The series of all honest clients, ordered by kind.
pub struct Latencies(pub Vec<Series>);

impl Series {
    /// An empty series.
    pub fn new(name: &'static str) -> Self {
        Self { name, took: Vec::new(), failures: Vec::new() }
    }

    /// Makes a call, and records its latency or error.
    pub fn time(&mut self, call: impl FnOnce() -> Result<(), String>) {
        let began = Instant::now();
        match call() {
            Ok(()) => self.took.push(began.elapsed()),
            Err(error) => self.failures.push(format!("{error} after {:?}", began.elapsed())),
        }
    }

    fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get(last * percent / 100).copied().unwrap_or_default()
    }

    /// Every call succeeded, and at least one was made.
    fn assert_served(&self, when: &str) {
        let (name, failed) = (self.name, self.failures.len());
        let some = &self.failures[..failed.min(10)];
        assert!(!self.took.is_empty(), "{when}: no {name} at all: {some:?}");
        assert!(some.is_empty(), "{when}: {failed} {name} failed, such as {some:?}");
    }
}

impl Latencies {
    /// Every call succeeded, and each client made some.
    pub fn assert_served(&self, when: &str) {
        self.0.iter().for_each(|series| series.assert_served(when));
    }

    /// Largest factor, of all kinds, by which the 99th percentile is above that of a quiet time.
    pub fn slowdown(&self, quiet: &Self) -> f64 {
        let of = |(now, then): (&Series, &Series)| {
            now.quantile(99).as_secs_f64() / then.quantile(99).as_secs_f64()
        };
        self.0.iter().zip(&quiet.0).map(of).fold(0.0, f64::max)
    }
}

impl Latencies {
    /// A table of each kind: medians and 99th percentiles without a flood and with it, and how many times longer the latter are.
    pub fn table(&self, quiet: &Self) -> String {
        let ms = |series: &Series, percent| series.quantile(percent).as_secs_f64() * 1e3;
        let row = |(now, then): (&Series, &Series)| {
            let (before, during) = (ms(then, 99), ms(now, 99));
            format!(
                "| {} | {} | {:.2} | {before:.2} | {:.2} | {during:.2} | {:.1} |",
                now.name,
                now.took.len(),
                ms(then, 50),
                ms(now, 50),
                during / before
            )
        };
        let head = "| Calls | Number | p50 before, ms | p99 before | p50 during | p99 during | Times |";
        let rows = self.0.iter().zip(&quiet.0).map(row);
        [head.to_owned(), "| --- | --- | --- | --- | --- | --- | --- |".to_owned()]
            .into_iter()
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |percent| self.quantile(percent).as_secs_f64() * 1e3;
        let (name, count, failed) = (self.name, self.took.len(), self.failures.len());
        write!(
            f,
            "\n    {name}: {count}, p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            ms(50),
            ms(99),
            ms(100)
        )?;
        if failed > 0 {
            write!(f, ", {failed} failed, such as {}", self.failures[0])?;
        }
        Ok(())
    }
}

impl Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|series| series.fmt(f))
    }
}
