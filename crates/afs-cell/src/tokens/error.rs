//! Errors of tokens on this machine.

use super::kept::BadToken;
use super::session::VARIABLE;
use std::io;
use std::path::PathBuf;

/// Why tokens were not read, kept or taken.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable that names the session has something else in it.
    #[error("{VARIABLE} is not a session")]
    Session,
    /// The token socket of a mount cannot be made.
    #[error("cannot open a token socket: {0}")]
    Socket(io::Error),
    /// The directory of the token files cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A token file cannot be removed.
    #[error("cannot remove {}: {error}", .path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A token file with something else in it.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: BadToken,
    },
}
