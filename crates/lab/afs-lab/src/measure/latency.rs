//! Time to open a file, read its first byte and close it: Table XIV of Howard et al. 1988.

use super::benchmark::PARTS;
use crate::bulk::{Place, Way};
use crate::error::{Context, LabError};
use crate::sheet::{Cell, Sheet};
use crate::spread::Spread;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sizes of the files in bytes, as in the paper.
const SIZES: [usize; 5] = [3, 1113, 4334, 10_278, 24_576];
/// Attempts at a fetch for each one that is counted.
const TRIES: u32 = 10;

/// Times of one place by size: warm, and cold if the caches tell what was fetched.
pub struct Latencies(Vec<OfSize>);

type OfSize = (usize, Option<Spread>, Option<Spread>);
/// Warm or cold times.
type Pick = fn(&OfSize) -> Option<Spread>;

impl Latencies {
    /// Measures `runs` warm and `cold_runs` cold times for each size. The files are removed afterwards.
    ///
    /// # Errors
    /// The first system call that failed.
    pub fn of(place: &Place, runs: u32, cold_runs: u32) -> Result<Self, LabError> {
        let directory = Files::create_in(&place.directory)?;
        let mut all = Vec::new();
        for size in SIZES {
            let path = directory.0.join(format!("file-{size}"));
            fs::write(&path, vec![b'x'; size]).during("write", &path)?;
            let cold = cold(place, &path, size, cold_runs)?;
            once(&path)?;
            let warm = (0..runs).map(|_| once(&path)).collect::<Result<Vec<_>, _>>()?;
            all.push((size, Spread::of(warm), Spread::of(cold)));
        }
        Ok(Self(all))
    }
}

/// Times of fetches: those in which the mount says that it fetched the file.
fn cold(place: &Place, path: &Path, size: usize, runs: u32) -> Result<Vec<Duration>, LabError> {
    let mut times = Vec::new();
    if place.cache.moved().is_none() {
        return Ok(times);
    }
    for _ in 0..runs * TRIES {
        place.cache.make_cold(path, Way::Cached)?;
        let before = place.cache.moved();
        let time = once(path)?;
        let moved = place.cache.moved().zip(before).map(|(after, before)| after.since(before));
        if moved.is_some_and(|moved| moved.fetched_bytes >= size as u64) {
            times.push(time);
        }
        if times.len() >= runs as usize {
            break;
        }
    }
    Ok(times)
}

/// Opens a file, reads a byte and closes it.
fn once(path: &Path) -> Result<Duration, LabError> {
    let began = Instant::now();
    let mut file = File::open(path).during("open", path)?;
    file.read_exact(&mut [0]).during("read", path)?;
    drop(file);
    Ok(began.elapsed())
}

/// A directory of files, removed when it is dropped.
struct Files(PathBuf);

impl Files {
    fn create_in(parent: &Path) -> Result<Self, LabError> {
        let path = parent.join(format!("andrew-lab-latency-{}", std::process::id()));
        fs::create_dir(&path).during("make the directory", &path)?;
        Ok(Self(path))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Table XIV: milliseconds by size, cold and warm in the mount, warm in the other file systems, and on the local disk.
#[must_use]
pub fn latency(local: &Latencies, mounted: Option<&Latencies>, others: &[(&str, Latencies)]) -> Sheet {
    let mut sides: Vec<(&str, &Latencies, Pick)> = Vec::new();
    let cold: Pick = |(_, _, cold)| *cold;
    let warm: Pick = |(_, warm, _)| *warm;
    sides.extend(mounted.into_iter().flat_map(|of| [("andrew_cold", of, cold), ("andrew_warm", of, warm)]));
    sides.extend(others.iter().map(|(name, of)| (*name, of, warm)));
    sides.push(("standalone", local, warm));
    let mut sheet = Sheet::new(&[("file_bytes", "bytes")]);
    sides.iter().for_each(|(name, ..)| sheet.add_spread(name, "ms"));
    for (at, (size, ..)) in local.0.iter().enumerate() {
        let of = |(_, of, pick): &(&str, &Latencies, Pick)| {
            let seconds = of.0.get(at).and_then(*pick);
            Cell::of_spread(seconds.map(|seconds| seconds.times(1e3)), PARTS)
        };
        sheet.rows.push([Cell::from(*size as f64)].into_iter().chain(sides.iter().flat_map(of)).collect());
    }
    sheet
}
