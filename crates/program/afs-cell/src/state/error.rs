//! Errors of a state directory.

use std::io;
use std::path::PathBuf;

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// None was given, and there is no home directory for the default.
    #[error("there is no home directory")]
    NoHome,
    /// It cannot be created.
    #[error("cannot make the state directory {}: {error}", .path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Its lock file cannot be opened or locked.
    #[error("cannot use {}: {error}", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another process holds the lock.
    #[error("a cell is already running on {}{}", .path.display(), process_text(.pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, if it has recorded itself.
        pid: Option<u32>,
    },
    /// The lock file cannot be written.
    #[error("cannot write the lock file: {0}")]
    Record(io::Error),
}

fn process_text(pid: &Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}
