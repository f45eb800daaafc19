//! Runs of the measurement: store, then fetches in each directory by each way, by turns.

use super::cache::{Cold, Moved, Way};
use super::others::{SmallOperation, beside};
use super::pattern::{BLOCK_LEN, Pattern};
use super::place::Place;
use super::report::{Operation, Report, SizeReport};
use super::samples::{Kind, Sample, Samples, others};
use super::transfer::{Contents, fetch, store};
use super::usage::Taken;
use crate::error::{Context, LabError};
use crate::load::Repeated;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most repetitions.
pub const RUNS_MAX: u32 = 1000;
/// Attempts to read a file cold that others may have open.
const TRIES: u32 = 10;
/// Small operations of a run before the store.
const IDLE_CALLS: u32 = 1000;

/// Progress, reported after every block and at the start of every operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Length of the file.
    pub size_bytes: u64,
    /// Number of the run of this length, from 0.
    pub run: u32,
    /// The operation.
    pub operation: Operation,
    /// Bytes since the last call: 0 at an operation's start.
    pub bytes: u64,
}

/// A measurement to run.
pub struct Bulk<'a> {
    /// Where files are stored: an existing directory, in which a directory for them is created and removed again.
    pub writer: &'a Place,
    /// Where they are fetched: directories that show the same files. None: where they are stored.
    pub readers: &'a [Place],
    /// Lengths of the files, at least 1.
    pub sizes: Vec<u64>,
    /// Repetitions of each length; 1 to [`RUNS_MAX`].
    pub runs: u32,
    /// A small operation to repeat beside each store and fetch.
    pub other: Option<&'a dyn SmallOperation>,
    /// Called with progress.
    pub progress: &'a dyn Fn(Progress),
    /// Ends the measurement at the next block when it is true.
    pub stop: &'a AtomicBool,
}

/// The file of one run.
struct Run<'a> {
    size: u64,
    run: u32,
    contents: Contents<'a>,
    /// Its path below a directory to store or fetch in.
    path: PathBuf,
}

impl Bulk<'_> {
    /// Total of [`Progress::bytes`], if no fetch has to be repeated.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let ways: usize = self.places().iter().skip(1).map(|place| place.cache.ways().len()).sum();
        self.sizes.iter().sum::<u64>() * u64::from(self.runs) * (1 + 2 * ways as u64)
    }

    /// Runs everything.
    ///
    /// # Errors
    /// Numbers out of bounds, the first system call that failed, contents that differ, or [`Bulk::stop`]. What was
    /// written is removed in every case.
    pub fn run(&self) -> Result<Report, LabError> {
        if !(1..=RUNS_MAX).contains(&self.runs) {
            return Err(LabError::OutOfRange {
                what: "the number of runs",
                got: self.runs,
                min: 1,
                max: RUNS_MAX,
            });
        }
        let name = PathBuf::from(format!("andrew-bulk-{}", std::process::id()));
        let home = self.writer.directory.join(&name);
        fs::create_dir(&home).during("make the directory", &home)?;
        let report = self.measure(&name);
        let removed = fs::remove_dir_all(&home).during("remove", &home);
        let report = report?;
        removed?;
        Ok(report)
    }

    /// The directory to store in, and those to fetch in.
    fn places(&self) -> Vec<&Place> {
        let readers = self.readers.iter().chain(Some(self.writer).filter(|_| self.readers.is_empty()));
        [self.writer].into_iter().chain(readers).collect()
    }

    fn measure(&self, home: &Path) -> Result<Report, LabError> {
        let (pattern, places, mut number) = (Pattern::new(), self.places(), 0);
        let (mut idle, mut sizes) = (Vec::new(), Vec::new());
        let (mut buffer, stop) = (vec![0; BLOCK_LEN], self.stop);
        for size in &self.sizes {
            let mut samples = Samples::default();
            for run in 0..self.runs {
                if let Some(other) = self.other {
                    idle.push(other.repeat(&|calls| calls >= IDLE_CALLS || stop.load(Ordering::Acquire))?);
                }
                let contents = Contents { pattern: &pattern, number, bytes: *size };
                let path = home.join(format!("file-{number}"));
                self.one_run(&Run { size: *size, run, contents, path }, &places, &mut buffer, &mut samples)?;
                number += 1;
            }
            sizes.push(SizeReport { size_bytes: *size, measured: samples.measured(*size, &places) });
        }
        Ok(Report { runs: self.runs, others_idle: others(idle.into_iter()), sizes })
    }

    /// A store, and the fetches, which another place begins each time: none always finds what the same one left.
    fn one_run(
        &self,
        run: &Run<'_>,
        places: &[&Place],
        buffer: &mut [u8],
        samples: &mut Samples,
    ) -> Result<(), LabError> {
        let written = self.writer.directory.join(&run.path);
        let kind = Kind { operation: Operation::Store, place: 0, way: None };
        let tick = self.tick(run, kind.operation);
        samples.add(kind, None, self.sample(self.writer, || store(&written, run.contents, &tick))?);
        let readers = places.len() - 1;
        for turn in 0..readers {
            let place = 1 + (turn + run.run as usize) % readers;
            for way in places[place].cache.ways() {
                self.fetches(run, (place, places[place]), *way, buffer, samples)?;
            }
        }
        fs::remove_file(&written).during("remove", &written)
    }

    /// A cold fetch and a warm one.
    fn fetches(
        &self,
        run: &Run<'_>,
        (number, place): (usize, &Place),
        way: Way,
        buffer: &mut [u8],
        samples: &mut Samples,
    ) -> Result<(), LabError> {
        let kind = |operation| Kind { operation, place: number, way: Some(way) };
        let (cold_by, cold) = self.cold_fetch(run, place, way, buffer)?;
        samples.add(kind(Operation::ColdFetch), Some(cold_by), cold);
        let warm = self.fetch(run, place, Operation::WarmFetch, buffer)?;
        samples.add(kind(Operation::WarmFetch), None, warm);
        Ok(())
    }

    /// A fetch of the whole file from the server, as far as the place can tell. A mount keeps what is still open, and the
    /// kernel closes a file some time after the program.
    fn cold_fetch(
        &self,
        run: &Run<'_>,
        place: &Place,
        way: Way,
        buffer: &mut [u8],
    ) -> Result<(Cold, Sample), LabError> {
        let path = place.directory.join(&run.path);
        for _ in 0..TRIES {
            let cold_by = place.cache.make_cold(&path, way)?;
            let sample = self.fetch(run, place, Operation::ColdFetch, buffer)?;
            if sample.moved.is_none_or(|moved| moved.fetched_bytes >= run.size) {
                return Ok((cold_by, sample));
            }
        }
        Err(LabError::NotCold { path })
    }

    fn fetch(
        &self,
        run: &Run<'_>,
        place: &Place,
        operation: Operation,
        buffer: &mut [u8],
    ) -> Result<Sample, LabError> {
        let path = place.directory.join(&run.path);
        let tick = self.tick(run, operation);
        self.sample(place, || fetch(&path, run.contents, buffer, &tick))
    }

    /// An operation with all that is measured of it.
    fn sample(
        &self,
        place: &Place,
        work: impl FnOnce() -> Result<Taken, LabError>,
    ) -> Result<Sample, LabError> {
        let (moved, before) = (place.cache.moved(), place.times()?);
        let (taken, others): (Taken, Option<Repeated>) = beside(self.other, work)?;
        let after = place.times()?;
        let processes: Vec<Duration> = after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b)).collect();
        let moved: Option<Moved> = place.cache.moved().zip(moved).map(|(after, before)| after.since(before));
        Ok(Sample { taken, processes, moved, others })
    }

    /// Reports the start of an operation; what is returned reports blocks, and ends the operation when it must.
    fn tick(&self, run: &Run<'_>, operation: Operation) -> impl Fn(u64) -> Result<(), LabError> {
        let (size_bytes, run) = (run.size, run.run);
        let tell = move |bytes| (self.progress)(Progress { size_bytes, run, operation, bytes });
        tell(0);
        move |bytes| {
            tell(bytes);
            if self.stop.load(Ordering::Acquire) { Err(LabError::Stopped) } else { Ok(()) }
        }
    }
}
