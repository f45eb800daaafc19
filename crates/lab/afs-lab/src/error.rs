//! Errors of an experiment.

use crate::load::LoadError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment could not be run or does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call on `path` failed.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: "read", "create".
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The source tree has an object that is neither a directory, a file nor a symbolic link.
    #[error("{} is neither a file, a directory nor a symbolic link; give a plain source tree", path.display())]
    OddFile {
        /// Its path.
        path: PathBuf,
    },
    /// The source tree has no file in it.
    #[error("{} holds no file; give the source tree of a program", path.display())]
    EmptyTree {
        /// The tree's root.
        path: PathBuf,
    },
    /// A copy read back differs in length from its source: the run does not count.
    #[error("{} was read back with {got} bytes, its source has {want}", path.display())]
    WrongLength {
        /// The copy.
        path: PathBuf,
        /// Bytes read from the copy.
        got: u64,
        /// Bytes in the source.
        want: u64,
    },
    /// A file read back differs from what was stored: the run does not count.
    #[error("byte {position} of {} was read back with another value than was stored", path.display())]
    WrongData {
        /// The file, as it was read.
        path: PathBuf,
        /// Position of the first wrong byte.
        position: u64,
    },
    /// A file that was to be fetched was read from a cache, however often that was emptied.
    #[error("{} is still cached after it was flushed; close the programs that use it", path.display())]
    NotCold {
        /// The file.
        path: PathBuf,
    },
    /// The processor time of a process cannot be read.
    #[error("process {pid}: {source}")]
    Process {
        /// Its number.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The small operation beside the experiment failed.
    #[error("the small operation beside it: {0}")]
    Other(#[from] LoadError),
    /// A call to a file server failed.
    #[error("a call to the file server: {0}")]
    Calls(LoadError),
    /// A command ended with an error.
    #[error("`{command}` ended with {status}: {stderr}")]
    Command {
        /// The command, as a shell would take it.
        command: String,
        /// Exit status or signal.
        status: String,
        /// The last line it wrote to standard error.
        stderr: String,
    },
    /// A command said something else than was expected.
    #[error("`{command}` did not say what it should; run it by hand to see why")]
    Answer {
        /// The command, as a shell would take it.
        command: String,
    },
    /// A socket could not be opened or used.
    #[error("cannot {operation}: {source}")]
    Network {
        /// What was attempted.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// No ports are free for the servers of a cell.
    #[error("no ports from 29000 to 31999 are free at 127.0.0.1 and 127.0.0.2 for a cell of its own")]
    NoPorts,
    /// The caller ended the experiment.
    #[error("interrupted; what was written is removed")]
    Stopped,
    /// The traversal of a copy found another number of files than the source has.
    #[error("{} holds {got} files and links, its source has {want}", path.display())]
    WrongCount {
        /// The copy's root.
        path: PathBuf,
        /// Files found.
        got: u64,
        /// Files in the source.
        want: u64,
    },
    /// The command of the Make phase ended with an error.
    #[error("`{command}` in {} ended with {status}: {stderr}", path.display())]
    Make {
        /// The command, as a shell would take it.
        command: String,
        /// Where it ran.
        path: PathBuf,
        /// Exit status or signal.
        status: String,
        /// The last line it wrote to standard error.
        stderr: String,
    },
    /// A count given by the caller is outside its bounds.
    #[error("{what} is {got}; it must be between {min} and {max}")]
    OutOfRange {
        /// What the number counts.
        what: &'static str,
        /// The number given.
        got: u32,
        /// Smallest allowed.
        min: u32,
        /// Largest allowed.
        max: u32,
    },
    /// A call to the prototype of 1984 failed, or the files of its client.
    #[error("{0}")]
    Prototype(String),
    /// The system grants no thread.
    #[error("{0}")]
    Threads(io::Error),
    /// A worker thread died.
    #[error("a part of the benchmark stopped without a result")]
    Lost,
}

impl LabError {
    /// A failure of the prototype, told as it tells itself.
    pub(crate) fn prototype(failure: impl std::fmt::Display) -> Self {
        Self::Prototype(failure.to_string())
    }
}

/// Adds the verb and the path to an I/O error.
pub(crate) trait Context<T> {
    /// Turns the error into [`LabError::Io`].
    fn during(self, operation: &'static str, path: &Path) -> Result<T, LabError>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, operation: &'static str, path: &Path) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io { operation, path: path.to_owned(), source })
    }
}
