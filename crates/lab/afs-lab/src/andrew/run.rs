//! Run of the benchmark: concurrent copies, repeated runs, progress reports.

use crate::andrew::counters::Probe;
use crate::andrew::make::MakeCommand;
use crate::andrew::phases;
use crate::andrew::report::{LoadReport, Phase, PhaseTimes, Report, RunReport};
use crate::andrew::tree::SourceTree;
use crate::error::{Context, LabError};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Most copies of the benchmark at once.
pub const LOADS_MAX: u32 = 256;
/// Most repetitions of a load.
pub const RUNS_MAX: u32 = 1000;

/// Progress of a benchmark, reported after every file and at the start of every phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Copies at once in this load.
    pub load: u32,
    /// Number of the run of this load, from 0.
    pub run: u32,
    /// Number of the copy, from 0.
    pub copy: u32,
    /// Its phase.
    pub phase: Phase,
    /// Steps (directories, files or one build) finished since the last call: 0 at a phase's start.
    pub steps: u64,
}

/// A benchmark to run.
pub struct Benchmark<'a> {
    /// The source tree, listed.
    pub source: &'a SourceTree,
    /// An existing directory, in which a directory for the benchmark is created and removed again.
    pub target: PathBuf,
    /// Copies at once, one report each; 1 to [`LOADS_MAX`].
    pub loads: Vec<u32>,
    /// Repetitions of each load; 1 to [`RUNS_MAX`].
    pub runs: u32,
    /// How a copy is compiled.
    pub make: MakeCommand,
    /// Source of counters of the file system under test.
    pub probe: Option<&'a dyn Probe>,
    /// Called with progress, from several threads at once.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Benchmark<'_> {
    /// Total of [`Progress::steps`] over the whole benchmark.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let size = self.source.size();
        let leaves = size.files + size.links;
        let copy = size.directories + leaves + leaves + size.files + 1;
        self.loads.iter().map(|l| u64::from(*l) * u64::from(self.runs) * copy).sum()
    }

    /// Runs everything.
    ///
    /// # Errors
    /// Numbers out of bounds, the first system call that failed, a copy that differs from its
    /// source, or a build that failed. What was written is removed in every case.
    pub fn run(&self) -> Result<Report, LabError> {
        bounded("the number of runs", self.runs, RUNS_MAX)?;
        for load in &self.loads {
            bounded("a load", *load, LOADS_MAX)?;
        }
        let home = self.target.join(format!("andrew-benchmark-{}", std::process::id()));
        fs::create_dir(&home).during("make the directory", &home)?;
        let loads = self.loads.iter().map(|load| self.load(*load, &home)).collect();
        let removed = fs::remove_dir_all(&home).during("remove", &home);
        let loads: Vec<LoadReport> = Result::from_iter::<Vec<_>>(loads)?;
        removed?;
        Ok(Report { source: self.source.size(), make: self.make.describe(), loads })
    }

    fn load(&self, load: u32, home: &Path) -> Result<LoadReport, LabError> {
        let runs: Result<Vec<_>, _> = (0..self.runs).map(|run| self.one_run(load, run, home)).collect();
        Ok(LoadReport { load, runs: runs? })
    }

    /// One run: all copies start together; they are removed before the next run begins.
    fn one_run(&self, load: u32, run: u32, home: &Path) -> Result<RunReport, LabError> {
        let before = self.probe.and_then(Probe::read);
        afs_net::threads::room("lab", load as usize).map_err(LabError::Threads)?;
        let ready = Barrier::new(load as usize);
        let began = Instant::now();
        let copies: Result<Vec<PhaseTimes>, LabError> = thread::scope(|scope| {
            let workers: Vec<_> = (0..load)
                .map(|copy| {
                    let ready = &ready;
                    scope.spawn(move || self.one_copy(load, run, copy, home, ready))
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap_or(Err(LabError::Lost))).collect()
        });
        let total = began.elapsed();
        let after = self.probe.and_then(Probe::read);
        let counters = before.zip(after).map(|(b, a)| a.since(&b));
        let copies = copies?;
        for copy in 0..load {
            let path = copy_path(home, run, copy);
            fs::remove_dir_all(&path).during("remove", &path)?;
        }
        Ok(RunReport { phases: PhaseTimes::mean(&copies), total, counters })
    }

    fn one_copy(
        &self,
        load: u32,
        run: u32,
        copy: u32,
        home: &Path,
        ready: &Barrier,
    ) -> Result<PhaseTimes, LabError> {
        let path = copy_path(home, run, copy);
        let tell = |phase, steps| (self.progress)(Progress { load, run, copy, phase, steps });
        ready.wait();
        let mut times = [Duration::ZERO; 5];
        for (phase, time) in Phase::ALL.into_iter().zip(&mut times) {
            tell(phase, 0);
            let began = Instant::now();
            self.phase(phase, &path, &|| tell(phase, 1))?;
            *time = began.elapsed();
        }
        Ok(PhaseTimes(times))
    }

    fn phase(&self, phase: Phase, copy: &Path, step: &dyn Fn()) -> Result<(), LabError> {
        match phase {
            Phase::MakeDir => phases::make_dir(self.source, copy, step),
            Phase::Copy => phases::copy(self.source, copy, step),
            Phase::ScanDir => self.scan(copy, step),
            Phase::ReadAll => phases::read_all(self.source, copy, step),
            Phase::Make => self.make.run(copy).inspect(|()| step()),
        }
    }

    fn scan(&self, copy: &Path, step: &dyn Fn()) -> Result<(), LabError> {
        let size = self.source.size();
        let (got, want) = (phases::scan_dir(copy, step)?, size.files + size.links);
        if got == want {
            return Ok(());
        }
        Err(LabError::WrongCount { path: copy.to_owned(), got, want })
    }
}

fn copy_path(home: &Path, run: u32, copy: u32) -> PathBuf {
    home.join(format!("run-{run}-copy-{copy}"))
}

fn bounded(what: &'static str, got: u32, max: u32) -> Result<(), LabError> {
    if (1..=max).contains(&got) {
        return Ok(());
    }
    Err(LabError::OutOfRange { what, got, min: 1, max })
}
