//! Errors of the files of a state directory.

use afs_auth::keys::KeyError;
use std::io;
use std::path::PathBuf;

/// Why a file of a state directory, or a configuration, was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses to read it.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system refuses to write it.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A configuration or a join file that says something without a meaning.
    #[error("{}: {why}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// Options of an earlier start that cannot be used.
    #[error("{} cannot be used: {why}; mend or remove it", .path.display())]
    Options {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `cell.json` says something that no program wrote.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `cell.json` of another version of the program.
    #[error("{} has format {format}, this program reads {known}; use the version that wrote it", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The format that is understood.
        known: u32,
    },
    /// A file of keys that is damaged.
    #[error("{}: {error}", .path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: KeyError,
    },
    /// A key cannot be made.
    #[error(transparent)]
    NewKey(#[from] KeyError),
    /// What is to be written has no form as text.
    #[error(transparent)]
    Text(#[from] toml::ser::Error),
    /// A second host cannot serve databases that are in the state directory of the first.
    #[error("the databases of this cell are on this host alone; put them into etcd first (docs/servers.md)")]
    DatabasesHere,
    /// There is no such join file.
    #[error("{}: not there", .0.display())]
    NoJoinFile(PathBuf),
    /// A state directory that is to become another server's.
    #[error("{} is of a server already", .state.display())]
    OfAServer {
        /// The state directory.
        state: PathBuf,
        /// Its configuration.
        config: PathBuf,
    },
    /// A join file with a file that is none of ours: its name.
    #[error("{0:?} is no file of a join file")]
    NotOfJoinFile(String),
    /// A join file with a file that is no base64.
    #[error("{name}: {error}")]
    Base64 {
        /// Name of the file in it.
        name: String,
        /// What is wrong.
        error: base64::DecodeError,
    },
}
