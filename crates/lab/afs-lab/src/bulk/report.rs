//! Report of the stores and fetches: median, smallest and largest of the runs.

use super::cache::{Cold, Moved, Way};
use crate::spread::Spread;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Repetitions of everything.
    pub runs: u32,
    /// The small operation while nothing is stored or fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_idle: Option<OthersTimes>,
    /// Results by length of the file, in the order in which they were requested.
    pub sizes: Vec<SizeReport>,
}

/// Results with files of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeReport {
    /// Length of the file.
    pub size_bytes: u64,
    /// In the order in which they were made in the first run.
    pub measured: Vec<Measured>,
}

/// One kind of operation in one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The operation.
    pub operation: Operation,
    /// Where.
    pub directory: PathBuf,
    /// By which way the file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// Of a cold fetch: how the caches were emptied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_by: Option<Cold>,
    /// From open to the end of close.
    pub elapsed_seconds: Spread,
    /// Megabytes (10⁶ bytes) a second.
    pub mb_per_second: Spread,
    /// User time of the thread that wrote, or read and compared.
    pub user_seconds: Spread,
    /// Its system time.
    pub system_seconds: Spread,
    /// Processor time of other processes.
    pub processes: Vec<ProcessTime>,
    /// Bytes that the mount moved in the last run.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// The small operation meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersTimes>,
}

/// Processor time of a process during an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessTime {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// User and system time.
    pub seconds: Spread,
    /// The same for 10⁹ bytes of the file.
    pub seconds_per_gb: Spread,
}

/// Times of the small operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OthersTimes {
    /// Number of operations in all runs.
    pub calls: u64,
    /// Medians of the runs in which there was one at least.
    pub p50_seconds: Spread,
    /// 99th percentiles.
    pub p99_seconds: Spread,
}

/// A kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Create, write and close.
    Store,
    /// Open, read and close, where nothing was cached.
    ColdFetch,
    /// The same again.
    WarmFetch,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "store",
            Self::ColdFetch => "cold fetch",
            Self::WarmFetch => "warm fetch",
        })
    }
}
