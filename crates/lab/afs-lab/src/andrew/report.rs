//! Report of a benchmark: times by phase, load and run.

use crate::andrew::counters::Counters;
use crate::andrew::tree::TreeSize;
use crate::spread::Spread;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The five phases, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Directories are made.
    MakeDir,
    /// Files are copied.
    Copy,
    /// The status of every file is examined.
    ScanDir,
    /// Every byte is read.
    ReadAll,
    /// The program is built.
    Make,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 5] = [Self::MakeDir, Self::Copy, Self::ScanDir, Self::ReadAll, Self::Make];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::MakeDir => "MakeDir",
            Self::Copy => "Copy",
            Self::ScanDir => "ScanDir",
            Self::ReadAll => "ReadAll",
            Self::Make => "Make",
        })
    }
}

/// Time of each phase of one copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseTimes(pub [Duration; 5]);

impl PhaseTimes {
    /// Time of one phase.
    #[must_use]
    pub fn of(&self, phase: Phase) -> Duration {
        self.0[phase as usize]
    }

    /// The mean of several copies, phase by phase.
    #[must_use]
    pub fn mean(copies: &[Self]) -> Self {
        let count = u32::try_from(copies.len()).unwrap_or(u32::MAX).max(1);
        Self(Phase::ALL.map(|p| copies.iter().map(|c| c.of(p)).sum::<Duration>() / count))
    }
}

/// One run of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Time of each phase: the mean over the copies of this load.
    pub phases: PhaseTimes,
    /// From the start of the first copy to the end of the last.
    pub total: Duration,
    /// Increase of the counters of the file system under test, if it has any.
    pub counters: Option<Counters>,
}

/// All runs of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Copies that ran at once.
    pub load: u32,
    /// The runs, in order.
    pub runs: Vec<RunReport>,
}

impl LoadReport {
    /// Spread of one phase over the runs.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|r| r.phases.of(phase)))
    }

    /// Spread of the whole benchmark over the runs.
    #[must_use]
    pub fn total(&self) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|r| r.total))
    }

    /// The counters of the last run, in which every cache is warm.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        self.runs.last().and_then(|r| r.counters.clone())
    }
}

/// The result of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was copied.
    pub source: TreeSize,
    /// The command that compiled it.
    pub make: String,
    /// One entry for each load, in the requested order.
    pub loads: Vec<LoadReport>,
}

impl Report {
    /// Adds the runs of another report of the same benchmark on the same directory.
    pub fn add(&mut self, more: Report) {
        for (load, more) in self.loads.iter_mut().zip(more.loads) {
            load.runs.extend(more.runs);
        }
    }
}
