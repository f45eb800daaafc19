//! What can go wrong under load.

use afs_rpc::CallError;

/// Why a load could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A call failed; a load with failed calls is no measurement.
    #[error("{operation}: {source}")]
    Call {
        /// The call's name.
        operation: &'static str,
        /// How it failed.
        source: CallError,
    },
    /// What came back is not what was stored.
    #[error("byte {position} came back as {got}, stored was {want}")]
    WrongData {
        /// Where.
        position: u64,
        /// The byte that came.
        got: u8,
        /// The byte that was stored.
        want: u8,
    },
    /// Fewer bytes came back than were stored.
    #[error("{got} of {want} bytes came back")]
    WrongLength {
        /// Bytes that came.
        got: u64,
        /// Bytes that were stored.
        want: u64,
    },
    /// What came back as a directory is none.
    #[error("the directory is damaged")]
    BadDirectory,
    /// Entries of a directory whose status could not be had.
    #[error("the status of {answered} of {asked} entries came back")]
    NoStatus {
        /// Statuses that came.
        answered: usize,
        /// Entries that were asked for.
        asked: usize,
    },
    /// A worker vanished with its world.
    #[error("a worker stopped without a result")]
    Lost,
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
