//! Errors of a load.

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use std::fmt::Display;

/// Why a load could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A call failed; a load with failed calls is no measurement.
    #[error("{operation}: {source}")]
    Call {
        /// The call's name.
        operation: &'static str,
        /// Its error.
        source: CallError,
    },
    /// The data read differ from the data stored.
    #[error("byte {position} came back as {got}, stored was {want}")]
    WrongData {
        /// The position.
        position: u64,
        /// The byte read.
        got: u8,
        /// The byte stored.
        want: u8,
    },
    /// The data path broke, or a request on it failed.
    #[error("{operation} by the data path: {reason}")]
    Path {
        /// What was attempted.
        operation: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// Fewer bytes were read than stored.
    #[error("{got} of {want} bytes came back")]
    WrongLength {
        /// Bytes read.
        got: u64,
        /// Bytes stored.
        want: u64,
    },
    /// The data of a directory are invalid.
    #[error("the directory is damaged")]
    BadDirectory,
    /// Entries of a directory whose status could not be read.
    #[error("the status of {answered} of {asked} entries came back")]
    NoStatus {
        /// Statuses received.
        answered: usize,
        /// Entries requested.
        asked: usize,
    },
    /// The server's process has ended, or tells no processor time.
    #[error("the server's processor time: {0}")]
    Clock(String),
    /// The caller ended the load.
    #[error("interrupted")]
    Stopped,
    /// A worker ended with its runtime.
    #[error("a worker stopped without a result")]
    Lost,
}

/// Makes [`LoadError::Path`] of an error.
pub(super) fn failed<E: Display>(operation: &'static str) -> impl Fn(E) -> LoadError {
    move |error| LoadError::Path { operation, reason: error.to_string() }
}

/// Whether the server refused a call with an error number, in either form that servers give it.
pub(super) fn is_refused_as<T>(outcome: &Result<T, LoadError>, why: Errno) -> bool {
    let Err(LoadError::Call { source, .. }) = outcome else { return false };
    source.abort_code().is_some_and(|code| [why.to_uae(), AbortCode(why.number())].contains(&code))
}

/// Adds the call's name to its error.
pub(crate) trait During<T> {
    /// Turns the error into [`LoadError::Call`].
    fn during(self, operation: &'static str) -> Result<T, LoadError>;
}

impl<T> During<T> for Result<T, CallError> {
    fn during(self, operation: &'static str) -> Result<T, LoadError> {
        self.map_err(|source| LoadError::Call { operation, source })
    }
}
