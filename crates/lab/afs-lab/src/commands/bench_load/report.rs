//! Report of `andrew-lab bench load`, and its text form.

use super::processor::Processor;
use afs_lab::Spread;
use afs_lab::load::{Beside, Rate, Throughput};
use serde::Serialize;
use std::fmt;

/// Results of the selected parts.
#[derive(Serialize, Default)]
pub(super) struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) statuses: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) creations: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connections: Option<Connections>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stores: Option<Bulk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fetches: Option<Bulk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) listing: Option<Listing>,
}

/// Status calls of one client, without and with another client that lists directories.
#[derive(Serialize)]
pub(super) struct Listing {
    /// Before the listing.
    pub(super) idle: Rate,
    /// During it, with the listing itself.
    pub(super) beside: Beside,
}

/// First calls of new connections.
#[derive(Serialize)]
pub(super) struct Connections {
    /// Duration of a first call, in seconds, one after the other.
    pub(super) first_calls: Spread,
    /// The same number of first calls at once.
    pub(super) at_once: Rate,
    /// Processor time of both together.
    pub(super) processor: Processor,
}

/// Repeated transfers of one file.
#[derive(Serialize, Default)]
pub(super) struct Bulk {
    runs: Vec<Throughput>,
    processor: Processor,
}

impl Bulk {
    pub(super) fn add(&mut self, run: Throughput, processor: Processor) {
        self.runs.push(run);
        self.processor.add(processor);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, rate) in [("statuses", &self.statuses), ("durable creations", &self.creations)] {
            rate.iter().try_for_each(|rate| show_rate(f, name, rate))?;
        }
        if let Some(connections) = &self.connections {
            show_connections(f, connections)?;
        }
        for (name, bulk) in [("store", &self.stores), ("fetch", &self.fetches)] {
            bulk.iter().try_for_each(|bulk| show_bulk(f, name, bulk))?;
        }
        self.listing.iter().try_for_each(|listing| show_listing(f, listing))
    }
}

fn show_rate(f: &mut fmt::Formatter<'_>, name: &str, rate: &Rate) -> fmt::Result {
    let Rate { per_second, in_flight, calls, latency, .. } = rate;
    let [p50, p99] = [latency.p50, latency.p99].map(|seconds| seconds * 1e6);
    writeln!(
        f,
        "{name:<18} {per_second:>9.0}/s, {in_flight} in flight, {calls} calls, each {p50:.0} us (p50), {p99:.0} us (p99)"
    )
}

fn show_connections(f: &mut fmt::Formatter<'_>, shown: &Connections) -> fmt::Result {
    show_rate(f, "connections", &shown.at_once)?;
    let us = |seconds: f64| seconds * 1e6;
    let Spread { median, min, max } = shown.first_calls;
    writeln!(f, "{:<18} {:>9.0} us ({:.0}-{:.0})", "first call", us(median), us(min), us(max))?;
    let each = f64::from(shown.at_once.calls) * 2.0;
    show_processor(f, "a connection", "us", shown.processor, |seconds| us(seconds) / each)
}

fn show_listing(f: &mut fmt::Formatter<'_>, shown: &Listing) -> fmt::Result {
    let Beside { listings, calls, latency } = &shown.beside;
    for one in listings {
        let (entries, seconds) = (one.entries, one.seconds);
        writeln!(f, "{:<18} {entries:>9} entries with attributes, {seconds:.3} s", "listed")?;
    }
    for (name, calls, latency) in
        [("alone", shown.idle.calls, &shown.idle.latency), ("beside it", *calls, latency)]
    {
        let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(|seconds| seconds * 1e6);
        writeln!(
            f,
            "{name:<18} {calls:>9} statuses, each {p50:.0} us (p50), {p99:.0} us (p99), {max:.0} us (longest)"
        )?;
    }
    Ok(())
}

fn show_bulk(f: &mut fmt::Formatter<'_>, name: &str, bulk: &Bulk) -> fmt::Result {
    let mut rates: Vec<f64> = bulk.runs.iter().map(|one| one.per_second / 1e6).collect();
    rates.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (rates.first(), rates.last()) else { return Ok(()) };
    let median = rates.get(rates.len() / 2).unwrap_or(high);
    let bytes = bulk.runs.first().map_or(0, |one| one.bytes);
    let times = rates.len();
    writeln!(f, "{name:<18} {median:>9.0} MB/s ({low:.0}-{high:.0}), {bytes} bytes, {times} times")?;
    let gigabytes = bulk.runs.iter().map(|one| one.bytes).sum::<u64>() as f64 / 1e9;
    show_processor(f, "a GB", "s", bulk.processor, |seconds| seconds / gigabytes)
}

fn show_processor(
    f: &mut fmt::Formatter<'_>,
    of: &str,
    unit: &str,
    used: Processor,
    each: impl Fn(f64) -> f64,
) -> fmt::Result {
    let Some(server) = used.server else { return Ok(()) };
    let (server, client) = (each(server), each(used.client));
    writeln!(f, "  processor time of {of}: server {server:.2} {unit}, client {client:.2} {unit}")
}
