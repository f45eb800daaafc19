//! State directory of a cell, its lock, and the record of the process that holds it.

use crate::error::CellResult;
use afs_files::make_directory;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// None was given, and there is no home directory for the usual one.
    #[error("there is no home directory")]
    NoHome,
    /// It cannot be made.
    #[error("cannot make the state directory {}: {error}", .path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its lock file cannot be opened or locked.
    #[error("cannot use the state directory {}: {error}", .path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process holds the lock.
    #[error("a cell is already running on {}{}", .path.display(), process_text(.pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, if it said who it is.
        pid: Option<u32>,
    },
    /// The lock file cannot be written.
    #[error("cannot write the lock file: {0}")]
    Record(io::Error),
}

fn process_text(pid: &Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

/// A state directory. It need not exist yet.
#[derive(Clone, Debug)]
pub struct StateDir(PathBuf);

/// Who uses a state directory: kept in its lock file while the lock is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellProcess {
    /// Process number.
    pub pid: u32,
    /// The cell served.
    pub cell: String,
    /// Address of the servers.
    pub listen: IpAddr,
    /// Port of the file server; the others follow from it.
    pub base_port: u16,
    /// The cell's location servers; empty where the servers here are all there are.
    #[serde(default)]
    pub locations: Vec<Ipv4Addr>,
    /// Where the cell's keys are, if not in the state directory.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Where the cell is mounted by this process, if it is.
    pub mount: Option<PathBuf>,
    /// What could not be done when it was stopped, in a line for a person.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// The right to use a state directory, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct StateLock {
    file: File,
}

impl StateDir {
    /// The directory given, or the one that the variable `ANDREW_STATE` names, or the user's own ([`StateDir::of_user`]).
    ///
    /// # Errors
    /// None is given and there is no home directory to put the default in.
    pub fn resolve(given: Option<&Path>) -> CellResult<Self> {
        match given.map(Path::to_owned).or_else(from_environment) {
            Some(path) => Ok(Self(crate::mounts::absolute(&path)?)),
            None => Self::of_user(),
        }
    }

    /// Whether a directory is given, by an option or in the environment.
    #[must_use]
    pub fn is_given(option: Option<&Path>) -> bool {
        option.is_some() || from_environment().is_some()
    }

    /// The user's own: `$XDG_STATE_HOME/andrew`, which is `~/.local/state/andrew` unless set otherwise.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn of_user() -> CellResult<Self> {
        xdg("XDG_STATE_HOME", ".local/state")
            .map(|base| Self(base.join("andrew")))
            .ok_or_else(|| StateError::NoHome.into())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Log of a process in the background.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The socket on which the running cell takes its owner's orders.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// The client's cache of its own cell.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Makes the directory, readable by its owner only.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make(&self) -> CellResult {
        let made = make_directory(&self.0, DirBuilder::new().mode(0o700));
        made.map_err(|error| StateError::Make { path: self.0.clone(), error }.into())
    }

    /// Takes the directory for this process.
    ///
    /// # Errors
    /// Another process has it; the message says which and how to stop it.
    pub fn lock(&self) -> CellResult<StateLock> {
        let path = self.lock_file();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(|e| self.unusable(e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StateLock { file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(self.in_use().into()),
            Err(error) => Err(self.unusable(error.into()).into()),
        }
    }

    fn in_use(&self) -> StateError {
        StateError::InUse { path: self.0.clone(), pid: self.last().map(|running| running.pid) }
    }

    fn unusable(&self, error: io::Error) -> StateError {
        StateError::Unusable { path: self.0.clone(), error }
    }

    /// Who ran on this directory last, whether or not he still does.
    #[must_use]
    pub fn last(&self) -> Option<CellProcess> {
        read_record(&self.lock_file())
    }

    /// Who runs on this directory, or `None` when nobody does.
    ///
    /// # Errors
    /// The lock file is there but cannot be read.
    pub fn running(&self) -> CellResult<Option<CellProcess>> {
        let file = match File::open(self.lock_file()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.unusable(e).into()),
        };
        // The lock, not the file, says whether somebody runs: a killed process leaves the file.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(read_record(&self.lock_file())),
            Err(error) => Err(self.unusable(error.into()).into()),
        }
    }
}

impl StateLock {
    /// Writes down who holds the lock.
    ///
    /// # Errors
    /// The disk is full.
    pub fn record(&mut self, running: &CellProcess) -> CellResult {
        let text = serde_json::to_vec(running).map_err(|e| StateError::Record(e.into()))?;
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)
        };
        write().map_err(|e| StateError::Record(e).into())
    }
}

/// Longest record read: a path of 4096 bytes, escaped, and the rest.
const RECORD_LEN_MAX: u64 = 32 * 1024;

fn read_record(path: &Path) -> Option<CellProcess> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(RECORD_LEN_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The variable that stands for `--state`.
const VARIABLE: &str = "ANDREW_STATE";

fn from_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A base directory of the XDG specification: the variable when it is an absolute path, else
/// `default` in the home directory.
fn xdg(variable: &str, default: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    set.or_else(|| home().map(|h| h.join(default)))
}

/// The home directory, from the environment.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|p| p.is_absolute())
}

/// Where caches of other people's cells go: `$XDG_CACHE_HOME/andrew/CELL`, which is
/// `~/.cache/andrew/CELL` unless set otherwise.
#[must_use]
pub fn default_cache(cell: &str) -> Option<PathBuf> {
    xdg("XDG_CACHE_HOME", ".cache").map(|base| base.join("andrew").join(cell))
}

/// Whether a directory exists and has nothing in it.
///
/// # Errors
/// It cannot be read, or is no directory.
pub fn is_empty_directory(path: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_and_the_record_goes_with_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::resolve(Some(&dir.path().join("s"))).unwrap();
        assert_eq!(state.running().unwrap(), None);
        state.make().unwrap();
        let mut lock = state.lock().unwrap();
        let running = CellProcess {
            pid: 4711,
            cell: "andrew.local".into(),
            listen: Ipv4Addr::LOCALHOST.into(),
            base_port: 7000,
            locations: Vec::new(),
            key_file: None,
            mount: Some("/home/a b/afs".into()),
            trouble: None,
        };
        lock.record(&running).unwrap();
        assert_eq!(state.running().unwrap(), Some(running));
        let error = state.lock().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("a cell is already running on {} (process 4711)", state.path().display())
        );
        drop(lock);
        assert_eq!(state.running().unwrap(), None);
    }
}
