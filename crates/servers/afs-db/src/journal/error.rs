//! Errors of the journal.

use crate::LocationError;

/// Why a change of the journal failed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// Another operation on the volume has not ended, or the holder's lease has not expired.
    #[error("somebody else holds it")]
    Busy,
    /// The operation has ended.
    #[error("there is no such operation")]
    Gone,
    /// Another holder has taken the operation over.
    #[error("the operation was taken over")]
    Lost,
    /// The journal has [`OPERATIONS_MAX`](super::OPERATIONS_MAX) operations.
    #[error("the journal is full")]
    Full,
    /// A text or detail that is too long.
    #[error("too long for the journal")]
    TooLong,
    /// No majority of the database servers can be reached.
    #[error("the servers that keep the database have no quorum")]
    NoQuorum,
    /// The underlying store could not be read or written.
    #[error("the journal's store failed: {0}")]
    Store(String),
}

impl From<LocationError> for OperationError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::NoQuorum => OperationError::NoQuorum,
            error => OperationError::Store(error.to_string()),
        }
    }
}
