//! Output of `andrew-lab bench bulk`: the report as text and JSON.

use afs_lab::Spread;
use afs_lab::bulk::{Measured, Operation, OthersTimes, Report, SizeReport};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The report.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Answer(pub(super) Report);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { runs, others_idle, sizes } = &self.0;
        writeln!(f, "{runs} runs: median (smallest-largest)")?;
        if let Some(idle) = others_idle {
            writeln!(f, "small operations while idle: {}", Others(idle))?;
        }
        sizes.iter().try_for_each(|size| show_size(f, size))
    }
}

fn show_size(f: &mut fmt::Formatter<'_>, size: &SizeReport) -> fmt::Result {
    writeln!(f, "\n{}", andrew::size::show(size.size_bytes))?;
    let mut shown: Option<&Path> = None;
    for one in &size.measured {
        if shown != Some(&one.directory) {
            writeln!(f, "  in {}", one.directory.display())?;
            shown = Some(&one.directory);
        }
        show_measured(f, one, size.size_bytes)?;
    }
    Ok(())
}

fn show_measured(f: &mut fmt::Formatter<'_>, one: &Measured, bytes: u64) -> fmt::Result {
    let way = one.way.map(|way| format!(", {way}")).unwrap_or_default();
    let rate = one.mb_per_second;
    write!(f, "    {:<28}", format!("{}{way}", one.operation))?;
    write!(f, " {:>7.0} MB/s ({:.0}-{:.0})", rate.median, rate.min, rate.max)?;
    write!(f, ", {} s", Seconds(one.elapsed_seconds))?;
    writeln!(f, "; user {}, system {}", Seconds(one.user_seconds), Seconds(one.system_seconds))?;
    for process in &one.processes {
        let Spread { median, min, max } = process.seconds_per_gb;
        writeln!(
            f,
            "      {} (process {}): {median:.2} s a GB ({min:.2}-{max:.2})",
            process.name, process.pid
        )?;
    }
    if let Some(cold) = one.cold_by {
        writeln!(f, "      cold: {cold}")?;
    }
    show_moved(f, one, bytes)?;
    one.others
        .iter()
        .try_for_each(|others| writeln!(f, "      small operations beside it: {}", Others(others)))
}

/// How much of the file came, or went, by the data path.
fn show_moved(f: &mut fmt::Formatter<'_>, one: &Measured, bytes: u64) -> fmt::Result {
    let Some(moved) = one.moved else { return Ok(()) };
    let (verb, by_path) = match one.operation {
        Operation::Store => ("stored", moved.stored_by_data_path_bytes),
        Operation::ColdFetch => ("fetched", moved.fetched_by_data_path_bytes),
        Operation::WarmFetch => return Ok(()),
    };
    match by_path {
        0 => writeln!(f, "      {verb} by calls"),
        part if part >= bytes => writeln!(f, "      {verb} by the data path"),
        part => writeln!(f, "      {verb} by the data path: {part} bytes, the others by calls"),
    }
}

struct Seconds(Spread);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { median, min, max } = self.0;
        write!(f, "{median:.4} ({min:.4}-{max:.4})")
    }
}

struct Others<'a>(&'a OthersTimes);

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |spread: Spread| {
            let [median, min, max] = [spread.median, spread.min, spread.max].map(|seconds| seconds * 1e6);
            format!("{median:.0} us ({min:.0}-{max:.0})")
        };
        let OthersTimes { calls, p50_seconds, p99_seconds } = self.0;
        write!(f, "{calls}, p50 {}, p99 {}", us(*p50_seconds), us(*p99_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_lab::bulk::{Cold, Moved, ProcessTime, Way};

    fn spread(value: f64) -> Spread {
        Spread { median: value, min: value / 2.0, max: value * 2.0 }
    }

    #[test]
    fn people_read_rates_processors_and_how_it_was_cold() {
        let client =
            ProcessTime { name: "client".into(), pid: 7, seconds: spread(0.02), seconds_per_gb: spread(1.5) };
        let others = OthersTimes { calls: 40, p50_seconds: spread(1e-4), p99_seconds: spread(4e-4) };
        let moved = Moved { fetched_bytes: 1 << 20, fetched_by_data_path_bytes: 1 << 20, ..Moved::default() };
        let measured = Measured {
            operation: Operation::ColdFetch,
            directory: "/mnt".into(),
            way: Some(Way::Bypassed),
            cold_by: Some(Cold::Flushed),
            elapsed_seconds: spread(0.01),
            mb_per_second: spread(100.0),
            user_seconds: spread(0.001),
            system_seconds: spread(0.002),
            processes: vec![client],
            moved: Some(moved),
            others: Some(others),
        };
        let sizes = vec![SizeReport { size_bytes: 1 << 20, measured: vec![measured] }];
        let text = Answer(Report { runs: 3, others_idle: Some(others), sizes }).to_string();
        assert_eq!(
            text,
            "3 runs: median (smallest-largest)\n\
             small operations while idle: 40, p50 100 us (50-200), p99 400 us (200-800)\n\
             \n1.0 MiB\n  in /mnt\n    \
             cold fetch, past the cache       100 MB/s (50-200), 0.0100 (0.0050-0.0200) s; user 0.0010 (0.0005-0.0020), system 0.0020 (0.0010-0.0040)\n      \
             client (process 7): 1.50 s a GB (0.75-3.00)\n      \
             cold: the mount dropped the file from its cache\n      \
             fetched by the data path\n      \
             small operations beside it: 40, p50 100 us (50-200), p99 400 us (200-800)\n"
        );
    }
}
