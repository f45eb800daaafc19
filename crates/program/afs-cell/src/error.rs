//! Error type of this crate: one variant for the error type of each part.

use crate::cells::CellsError;
use crate::configuration::FileError;
use crate::control::ControlError;
use crate::drives::DrivesError;
use crate::mount::ClientError;
use crate::servers::StartError;
use crate::state::StateError;
use crate::tokens::TokenError;
use afs_files::VersionedFileError;
use afs_files::secret_file::SecretFileError;
use std::io;
use std::path::PathBuf;

/// Error of an operation of this crate.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// A file of secrets.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// A file that the program alone writes.
    #[error(transparent)]
    VersionedFile(#[from] VersionedFileError),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of the state directory.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cells that a mount knows.
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// The start of servers.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A mount.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Tokens, their files and their sockets.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Drives beside the disks of a host.
    #[error(transparent)]
    Drives(#[from] DrivesError),
    /// The kernel's mount table cannot be read.
    #[error("cannot read /proc/self/mountinfo: {0}")]
    MountTable(io::Error),
    /// A path cannot be made absolute.
    #[error("{}: {error}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// Result of functions of this crate.
pub type CellResult<T = ()> = Result<T, CellError>;
