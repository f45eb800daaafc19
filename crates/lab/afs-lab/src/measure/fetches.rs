//! Fetches of large files from a mount, through its cache and past it: Tables 3 and 4 of CITI TR 01-3, Figures 4 and 5.

use crate::bulk::{Bulk, Measured, Operation, Place, Report, Way};
use crate::error::LabError;
use crate::sheet::{Cell, Sheet};
use std::sync::atomic::AtomicBool;

/// Lengths in bytes: the paper's 1, 10 and 100 MB, and 1 GB.
const SIZES: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// The largest of the paper's, in MB.
const PAPERS_LARGEST: f64 = 100.0;

/// Result of the fetches.
pub struct Fetches(Report);

/// Stores and fetches files of 1, 10 and 100 MB and 1 GB (a quick run: 1 and 10 MB) in a mount.
///
/// # Errors
/// Those of the measurement.
pub fn fetches(place: &Place, quick: bool, stop: &AtomicBool) -> Result<Fetches, LabError> {
    let sizes = if quick { &SIZES[..2] } else { &SIZES[..] };
    let bulk = Bulk {
        writer: place,
        readers: &[],
        sizes: sizes.to_vec(),
        runs: if quick { 2 } else { 5 },
        other: None,
        progress: &|_| {},
        stop,
    };
    bulk.run().map(Fetches)
}

/// A size with its fetches, through the cache and past it.
struct Pair<'a> {
    mb: f64,
    cached: &'a Measured,
    bypassed: &'a Measured,
}

impl Fetches {
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.0.sizes.iter().filter_map(|size| {
            let find = |way| {
                let is_it = |one: &&Measured| one.operation == Operation::ColdFetch && one.way == Some(way);
                size.measured.iter().find(is_it)
            };
            let mb = size.size_bytes as f64 / 1e6;
            Some(Pair { mb, cached: find(Way::Cached)?, bypassed: find(Way::Bypassed)? })
        })
    }

    /// Whether the largest file came beside the calls when it was read past the cache.
    #[must_use]
    pub fn uses_data_path(&self) -> bool {
        self.pairs().last().is_some_and(|pair| came_beside_calls(pair.bypassed))
    }

    /// The same when it was read through the cache: the second path alone.
    #[must_use]
    pub fn fills_cache_by_data_path(&self) -> bool {
        self.pairs().last().is_some_and(|pair| came_beside_calls(pair.cached))
    }

    /// Elapsed, user and system seconds of both ways, with the improvement in percent.
    fn improvements(&self, other: &str) -> Sheet {
        let mut sheet = Sheet::new(&[("config", ""), ("size_mb", "MB")]);
        for what in ["elapsed", "user", "system"] {
            ["cached", other].into_iter().for_each(|way| sheet.add_spread(&format!("{what}_{way}"), "s"));
            sheet.add(&format!("{what}_impr"), "%");
        }
        for Pair { mb, cached, bypassed } in self.pairs() {
            let mut row = vec![Cell::from("here"), mb.into()];
            for (before, after) in [
                (cached.elapsed_seconds, bypassed.elapsed_seconds),
                (cached.user_seconds, bypassed.user_seconds),
                (cached.system_seconds, bypassed.system_seconds),
            ] {
                row.extend([before, after].into_iter().flat_map(|one| Cell::of_spread(Some(one), 1e5)));
                row.push(Cell::from((100.0 * (1.0 - after.median / before.median)).round()));
            }
            sheet.rows.push(row);
        }
        sheet
    }
}

fn came_beside_calls(fetch: &Measured) -> bool {
    fetch.moved.is_some_and(|moved| moved.fetched_by_data_path_bytes > 0)
}

/// Table 3: through the cache against past it, both by calls; `None` if the mount used the data path.
#[must_use]
pub fn bypassed(fetches: &Fetches) -> Option<Sheet> {
    (!fetches.uses_data_path()).then(|| fetches.improvements("bypass"))
}

/// Table 4: through the cache against past it, by the data path; `None` if the mount made calls alone.
#[must_use]
pub fn combined(fetches: &Fetches) -> Option<Sheet> {
    fetches.uses_data_path().then(|| fetches.improvements("combined"))
}

/// Figure 4: times of the file of 100 MB, or of the largest in a quick run.
#[must_use]
pub fn hundred(fetches: &Fetches) -> Option<Sheet> {
    let Pair { cached, bypassed, mb } = fetches.pairs().filter(|pair| pair.mb <= PAPERS_LARGEST).last()?;
    let mut sheet =
        Sheet::new(&[("mode", ""), ("size_mb", "MB"), ("elapsed", "s"), ("user", "s"), ("system", "s")]);
    let other = if fetches.uses_data_path() { "bypass and data path" } else { "bypass" };
    for (mode, one) in [("caching", cached), (other, bypassed)] {
        let times =
            [one.elapsed_seconds, one.user_seconds, one.system_seconds].map(|time| time.median.into());
        sheet.rows.push([Cell::from(mode), mb.into()].into_iter().chain(times).collect());
    }
    Some(sheet)
}

/// Figure 5: throughput by size.
#[must_use]
pub fn throughput(fetches: &Fetches) -> Sheet {
    let mut sheet = Sheet::new(&[("size_mb", "MB")]);
    ["caching", "combined"].into_iter().for_each(|way| sheet.add_spread(way, "MB/s"));
    for Pair { mb, cached, bypassed } in fetches.pairs() {
        let rates =
            [cached, bypassed].into_iter().flat_map(|one| Cell::of_spread(Some(one.mb_per_second), 10.0));
        sheet.rows.push([Cell::from(mb)].into_iter().chain(rates).collect());
    }
    sheet
}
