//! Directories in which files are stored and fetched, each with its caches and the processes that serve it.

use super::cache::Cache;
use super::process_clock::ProcessClock;
use crate::error::{Context, LabError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory to store or to fetch in.
pub struct Place {
    /// The directory.
    pub directory: PathBuf,
    /// What it is read through.
    pub cache: Box<dyn Cache>,
    /// Processes whose processor time is measured.
    pub processes: Vec<Process>,
}

/// A process, such as the client or the server.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name in the report.
    pub name: String,
    /// Its number.
    pub pid: u32,
    clock: ProcessClock,
}

impl Process {
    /// A running process under a name of the caller's.
    ///
    /// # Errors
    /// There is no such process.
    pub fn new(name: String, pid: u32) -> Result<Self, LabError> {
        let clock = ProcessClock::of(pid).map_err(|source| LabError::Process { pid, source })?;
        Ok(Self { name, pid, clock })
    }

    /// A process that another kernel runs, such as that of the machine that emulates this one: its procfs is mounted at
    /// `procfs`. Its time counts in hundredths of a second.
    ///
    /// # Errors
    /// There is no such process.
    pub fn in_procfs(name: String, pid: u32, procfs: &Path) -> Result<Self, LabError> {
        let clock =
            ProcessClock::in_procfs(procfs, pid).map_err(|source| LabError::Process { pid, source })?;
        Ok(Self { name, pid, clock })
    }

    /// Bytes that it has given to the disk so far, or to its page cache (`write_bytes` of proc_pid_io(5)).
    ///
    /// # Errors
    /// It has ended, or is not of this user.
    pub fn written_bytes(&self) -> Result<u64, LabError> {
        let path = PathBuf::from(format!("/proc/{}/io", self.pid));
        let text = std::fs::read_to_string(&path).during("read", &path)?;
        let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
        bytes.ok_or(LabError::Process { pid: self.pid, source: std::io::Error::other("no bytes in its io") })
    }

    /// Its processor time so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn time(&self) -> Result<Duration, LabError> {
        self.clock.read().map_err(|source| LabError::Process { pid: self.pid, source })
    }
}

impl Place {
    /// Processor times of the processes so far, in their order.
    pub(crate) fn times(&self) -> Result<Vec<Duration>, LabError> {
        self.processes.iter().map(Process::time).collect()
    }
}
