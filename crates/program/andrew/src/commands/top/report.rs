//! Report of what a mount does, as text and JSON.

use crate::commands::duration_text::in_words;
use crate::size;
use afs_cell::tokens::CellLocation;
use afs_venus::{Activity, ActivityCounts, LeaseActivity, OngoingCall, ServerActivity, SlowCall};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// What the mounts do.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Reports(pub(super) Vec<MountReport>);

/// What one mount does.
#[derive(Serialize)]
pub(super) struct MountReport {
    #[serde(serialize_with = "crate::output::path")]
    pub(super) directory: PathBuf,
    cell: String,
    pid: u32,
    #[serde(flatten)]
    told: Activity,
    /// What it had told at the refresh before.
    #[serde(skip)]
    before: Option<Activity>,
}

impl MountReport {
    /// `None`: the process has no mount.
    pub(super) fn of((cell, told): (CellLocation, Activity)) -> Option<Self> {
        let mount = cell.mount?;
        let (directory, pid) = (mount.directory, mount.pid);
        Some(Self { directory, cell: cell.cell.to_string(), pid, told, before: None })
    }
}

impl Reports {
    /// From now on rates are those since `before`.
    pub(super) fn compare(&mut self, before: &Self) {
        for report in &mut self.0 {
            let same =
                before.0.iter().find(|old| (&old.directory, old.pid) == (&report.directory, report.pid));
            report.before = same.map(|old| old.told.clone());
        }
    }
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, report) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{report}")?;
        }
        Ok(())
    }
}

impl fmt::Display for MountReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (cell {}, process {})", self.directory.display(), self.cell, self.pid)?;
        write_caches(f, &self.told)?;
        write_bytes(f, &self.told)?;
        write_leases(f, &self.told.leases)?;
        if let Some(before) = &self.before {
            write_rates(f, before, &self.told)?;
        }
        write_servers(f, &self.told.servers)?;
        write_in_progress(f, &self.told.in_progress)?;
        write_slowest(f, &self.told.slowest)
    }
}

fn write_caches(f: &mut fmt::Formatter<'_>, told: &Activity) -> fmt::Result {
    let cache = &told.cache;
    let (used, limit) = (size::show(cache.used_bytes), size::show(cache.limit_bytes));
    write!(f, "  cache   {used} of {limit} used; {} of {} statuses", cache.statuses, cache.statuses_limit)?;
    if cache.bypass_bytes > 0 {
        write!(f, "; {} in memory past the cache", size::show(cache.bypass_bytes))?;
    }
    writeln!(f)?;
    if cache.store_retries > 0 {
        writeln!(
            f,
            "  NOT STORED  the last store of {} files failed; it is tried again",
            cache.store_retries
        )?;
    }
    let counts = &told.counts;
    let status = ratio_text(counts.status_hits, counts.status_misses);
    let data = ratio_text(counts.data_hits, counts.data_misses);
    writeln!(f, "  hits    status {status}; data {data}; {} promises broken", counts.promises_broken)
}

/// `98.2 % of 1256`.
fn ratio_text(hits: u64, misses: u64) -> String {
    let uses = u128::from(hits) + u128::from(misses);
    match (u128::from(hits) * 1000).checked_div(uses) {
        Some(mille) => format!("{}.{} % of {uses}", mille / 10, mille % 10),
        None => "not used yet".into(),
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, told: &Activity) -> fmt::Result {
    let counts = &told.counts;
    let by_path = |bytes: u64| match bytes {
        0 => String::new(),
        bytes => format!(", {} of it by the data path", size::show(bytes)),
    };
    write!(
        f,
        "  fetched {}{}",
        size::show(counts.fetched_bytes),
        by_path(counts.fetched_by_data_path_bytes)
    )?;
    write_drives(f, counts)?;
    if counts.bypassed_bytes > 0 {
        write!(f, ", {} past the cache", size::show(counts.bypassed_bytes))?;
    }
    let stored = by_path(counts.stored_by_data_path_bytes);
    write!(f, "\n  stored  {}{stored}", size::show(counts.stored_bytes))?;
    write_at_drives(f, counts.stored_at_drives_bytes)?;
    writeln!(f, "; {} calls in all", counts.calls)
}

/// What was read past the file servers, if anything was to be; and what drives were to move and did not.
fn write_drives(f: &mut fmt::Formatter<'_>, counts: &ActivityCounts) -> fmt::Result {
    write_at_drives(f, counts.fetched_at_drives_bytes)?;
    match counts.drive_fallbacks {
        0 => Ok(()),
        failed => write!(f, " ({failed} reads and stores at drives failed)"),
    }
}

fn write_at_drives(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    match bytes {
        0 => Ok(()),
        bytes => write!(f, ", {} of it at drives", size::show(bytes)),
    }
}

/// What was decided under leases, if one was taken.
fn write_leases(f: &mut fmt::Formatter<'_>, leases: &LeaseActivity) -> fmt::Result {
    let LeaseActivity { held, waiting_changes, taken, recalled, lost, decided_changes } = leases;
    if *taken == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "  leases  {held} held, {waiting_changes} changes not sent yet; {taken} taken, {recalled} recalled, {lost} lost; {decided_changes} changes in all"
    )
}

fn write_rates(f: &mut fmt::Formatter<'_>, before: &Activity, now: &Activity) -> fmt::Result {
    let micros = now.at_micros.saturating_sub(before.at_micros).max(1);
    let rate = |new: u64, old: u64| {
        let each = u128::from(new.saturating_sub(old)) * 1_000_000 / u128::from(micros);
        u64::try_from(each).unwrap_or(u64::MAX)
    };
    let (new, old) = (&now.counts, &before.counts);
    writeln!(
        f,
        "  now     fetched {}/s, stored {}/s, {} calls/s",
        size::show(rate(new.fetched_bytes, old.fetched_bytes)),
        size::show(rate(new.stored_bytes, old.stored_bytes)),
        rate(new.calls, old.calls)
    )
}

fn write_servers(f: &mut fmt::Formatter<'_>, servers: &[ServerActivity]) -> fmt::Result {
    writeln!(
        f,
        "\n  {:<21} {:<19} {:>10} {:>9} {:>7} {:>10}  DATA PATH",
        "SERVER", "STATE", "ROUND TRIP", "CALLS", "FAILED", "MEAN TIME"
    )?;
    servers.iter().try_for_each(|server| {
        let state = match (server.unreachable_seconds, server.last_reply_seconds_ago) {
            (Some(time), _) => format!("silent for {}", in_words(time)),
            (None, Some(ago)) => format!("replied {} ago", in_words(ago)),
            (None, None) => "not called yet".into(),
        };
        let address = server.addresses.first().map_or("", String::as_str);
        let mean = server.calls_micros.checked_div(server.calls);
        writeln!(
            f,
            "  {address:<21} {state:<19} {:>10} {:>9} {:>7} {:>10}  {}",
            server.round_trip_micros.map_or("-".into(), time_text),
            server.calls,
            server.failed_calls,
            mean.map_or("-".into(), time_text),
            server.data_path
        )
    })
}

fn write_in_progress(f: &mut fmt::Formatter<'_>, calls: &[OngoingCall]) -> fmt::Result {
    if calls.is_empty() {
        return writeln!(f, "\n  No call is in progress.");
    }
    writeln!(f, "\n  {:<21} {:<21} {:>10}", "IN PROGRESS", "SERVER", "FOR")?;
    calls.iter().try_for_each(|call| {
        writeln!(f, "  {:<21} {:<21} {:>10}", call.operation, call.server, time_text(call.micros))
    })
}

fn write_slowest(f: &mut fmt::Formatter<'_>, calls: &[SlowCall]) -> fmt::Result {
    if calls.is_empty() {
        return writeln!(f, "  No call has ended within the last five minutes.");
    }
    writeln!(f, "\n  {:<21} {:<21} {:>10} {:>9}", "SLOWEST OF 5 MINUTES", "SERVER", "TOOK", "ENDED")?;
    calls.iter().try_for_each(|call| {
        let ended = format!("{} ago", in_words(call.ended_seconds_ago));
        let failed = if call.has_failed { "  failed" } else { "" };
        let (operation, server, took) = (&call.operation, &call.server, time_text(call.micros));
        writeln!(f, "  {operation:<21} {server:<21} {took:>10} {ended:>9}{failed}")
    })
}

/// A duration with a unit, to three or more digits.
fn time_text(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} us"),
        1000..1_000_000 => format!("{}.{:01} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{:01} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
