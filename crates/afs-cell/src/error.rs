//! Errors of this crate, for the time being as lines.

use afs_files::secret_file::SecretFileError;
use std::fmt::{self, Display};

/// An error as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellError {
    /// [`CellError::USAGE`] for bad input, [`CellError::FAILURE`] otherwise.
    pub status: u8,
    /// The line.
    pub message: String,
}

impl CellError {
    /// The input was right but the work failed.
    pub const FAILURE: u8 = 1;
    /// The input was wrong.
    pub const USAGE: u8 = 2;

    pub(crate) fn usage(message: impl Display) -> Self {
        Self { status: Self::USAGE, message: message.to_string() }
    }

    pub(crate) fn failed(message: impl Display) -> Self {
        Self { status: Self::FAILURE, message: message.to_string() }
    }
}

impl Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CellError {}

impl From<SecretFileError> for CellError {
    fn from(error: SecretFileError) -> Self {
        match error {
            SecretFileError::NotAFile(_) | SecretFileError::Owner { .. } | SecretFileError::Mode { .. } => {
                Self::usage(error)
            }
            _ => Self::failed(error),
        }
    }
}

/// What functions of this crate return.
pub type CellResult<T = ()> = Result<T, CellError>;
