//! Errors of tokens, their files and their sockets.

use super::kept::BadToken;
use super::session::VARIABLE;
use std::io;
use std::path::PathBuf;

/// Why tokens could not be read, kept or accepted.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable that names the session has an invalid value.
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
        /// The error of the system.
        error: io::Error,
    },
    /// A token file cannot be removed.
    #[error("cannot remove {}: {error}", .path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A token file is invalid.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        error: BadToken,
    },
}
