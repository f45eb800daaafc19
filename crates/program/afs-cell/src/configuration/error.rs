//! Errors of the files of a state directory.

use afs_auth::keys::KeyError;
use std::io;
use std::path::PathBuf;

/// Error of a file of a state directory, or of a configuration.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A configuration or a join file is invalid.
    #[error("{}: {why}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        why: String,
    },
    /// A key file is damaged.
    #[error("{}: {error}", .path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// The fault.
        error: KeyError,
    },
    /// A key cannot be created.
    #[error(transparent)]
    NewKey(#[from] KeyError),
    /// A value cannot be written as TOML.
    #[error(transparent)]
    Text(io::Error),
    /// A second host cannot serve databases that are in the state directory of the first one.
    #[error("the databases of this cell are on this host alone; put them into etcd first (docs/servers.md)")]
    DatabasesHere,
    /// The join file does not exist.
    #[error("{}: not there", .0.display())]
    NoJoinFile(PathBuf),
    /// A join file cannot be unpacked into the state directory of another server.
    #[error("{} is of a server already", .state.display())]
    OfAServer {
        /// The state directory.
        state: PathBuf,
        /// Its configuration.
        config: PathBuf,
    },
    /// A join file contains a file that does not belong into one: its name.
    #[error("{0:?} does not belong into a join file")]
    NotOfJoinFile(String),
    /// A file in a join file is not valid base64.
    #[error("{name}: {error}")]
    Base64 {
        /// Name of the file in it.
        name: String,
        /// What is wrong.
        error: base64::DecodeError,
    },
}
