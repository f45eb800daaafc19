//! Errors of the login records.

use crate::LocationError;

/// Why an operation on the login records failed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// A user's name that is empty, too long, or has a NUL.
    #[error("not a user's name")]
    BadUser,
    /// A kind that is empty or too long.
    #[error("not a kind of login record")]
    BadKind,
    /// The record is longer than [`RECORD_MAX`](super::RECORD_MAX).
    #[error("a login record of {0} bytes is too long")]
    TooLong(usize),
    /// The user has [`RECORDS_MAX`](super::RECORDS_MAX) records.
    #[error("the user has as many login records as one may have")]
    TooMany,
    /// No majority of the database servers can be reached.
    #[error("the servers that keep the database have no quorum")]
    NoQuorum,
    /// The underlying store could not be read or written.
    #[error("the login records' store failed: {0}")]
    Store(String),
}

impl From<LocationError> for LoginError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::NoQuorum => LoginError::NoQuorum,
            error => LoginError::Store(error.to_string()),
        }
    }
}
