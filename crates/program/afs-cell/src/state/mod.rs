//! State directory of a cell: its path, its lock, and the files in it.

mod error;
mod lock;
mod xdg;

pub use error::StateError;
pub use lock::{CellProcess, StateLock};
pub use xdg::{config_file, default_cache, home};

use crate::error::CellResult;
use afs_own::{self as own, Opening};
use lock::read_record;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use xdg::xdg;

/// A state directory. It need not exist yet.
#[derive(Clone, Debug)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The directory given, or the one in the variable `ANDREW_STATE`, or the user's own ([`StateDir::of_user`]).
    ///
    /// # Errors
    /// None is given and there is no home directory for the default.
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

    /// The user's own: `$XDG_STATE_HOME/andrew`, by default `~/.local/state/andrew`.
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

    /// Log file of a process in the background.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Control socket, on which the owner reaches the running cell.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// Cache of the mount in the servers' own process.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Creates the directory, accessible by its owner only.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make(&self) -> CellResult {
        own::given_directory(&self.0).map_err(|error| StateError::Make { path: self.0.clone(), error }.into())
    }

    /// Takes the lock for this process.
    ///
    /// # Errors
    /// Another process holds it; the message names it.
    pub fn lock(&self) -> CellResult<StateLock> {
        let path = self.lock_file();
        let file = Opening::write().or_make().open(&path).map_err(|e| self.unusable(e))?;
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
        StateError::Unusable { path: self.lock_file(), error }
    }

    /// The process that used this directory last, whether or not it still runs.
    #[must_use]
    pub fn last(&self) -> Option<CellProcess> {
        read_record(&self.lock_file())
    }

    /// The process that uses this directory; `None` if there is none.
    ///
    /// # Errors
    /// The lock file exists but cannot be read.
    pub fn running(&self) -> CellResult<Option<CellProcess>> {
        // Whoever may read it may ask: root of a user's cell, too.
        let file = match File::open(self.lock_file()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.unusable(e).into()),
        };
        // The lock, not the file, shows whether a process runs: a killed process leaves the file.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(read_record(&self.lock_file())),
            Err(error) => Err(self.unusable(error.into()).into()),
        }
    }
}

/// Environment variable with the same meaning as `--state`.
const VARIABLE: &str = "ANDREW_STATE";

fn from_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Whether a directory exists and is empty.
///
/// # Errors
/// It cannot be read, or is not a directory.
pub fn is_empty_directory(path: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_process_at_a_time_and_the_record_goes_with_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::resolve(Some(&dir.path().join("s"))).unwrap();
        assert_eq!(state.running().unwrap(), None);
        state.make().unwrap();
        let mut lock = state.lock().unwrap();
        let own = CellProcess::own("andrew.local", Ipv4Addr::LOCALHOST, 7000);
        let running = CellProcess { pid: 4711, mount: Some("/home/a b/afs".into()), ..own };
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
