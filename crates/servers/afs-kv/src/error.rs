//! Errors of reads, commits and opening.

use std::io;
use std::sync::Arc;

use crate::spare;

/// A read or a commit failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// The medium is full. Nothing of the batch was applied; reads continue, and so do commits once there is space.
    #[error("the medium is full")]
    NoSpace,
    /// An I/O error of the medium. Nothing of the batch was applied.
    #[error("the medium failed: {0}")]
    Io(Arc<io::Error>),
    /// The data read from the medium is invalid: the name of the blob, and what is wrong with it.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A sync of the log failed, so that it is unknown what is durable. Further commits are refused until the store
    /// is opened again; reads of what was durable before continue.
    #[error("an earlier sync of the log failed; open the store again")]
    NeedsReopen,
    /// One operation changed more than [`MAX_OPERATION_BYTES`] bytes.
    #[error("the operation changes {0} bytes, the most is {MAX_OPERATION_BYTES}")]
    TooLarge(usize),
    /// A read that was limited to memory needs the medium.
    #[error("the row is not in memory")]
    NotInMemory,
    /// The store was closed before the operation ran.
    #[error("the store was closed")]
    Closed,
}

impl KvError {
    /// Whether the data is invalid, as against unreadable.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt(_) => true,
            Self::Io(error) => {
                matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
            }
            _ => false,
        }
    }
}

impl From<io::Error> for KvError {
    fn from(error: io::Error) -> Self {
        if spare::is_full(&error) { Self::NoSpace } else { Self::Io(Arc::new(error)) }
    }
}

impl From<redb::StorageError> for KvError {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Io(error) => error.into(),
            redb::StorageError::Corrupted(what) => Self::Corrupt(format!("index is damaged: {what}")),
            other => Self::Io(Arc::new(io::Error::other(other.to_string()))),
        }
    }
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Written by another version of this program.
    #[error("the store has format {found}; this program reads format {expected}")]
    Format {
        /// The version on the medium.
        found: u64,
        /// The version of this program.
        expected: u64,
    },
    /// The file of the index exists, and is something else.
    #[error("there is a file named \"index\" that is no index")]
    NotAStore,
    /// A store was to be made where there is something.
    #[error("it is not empty")]
    NotEmpty,
    /// More tables than a store can hold (255 over its lifetime).
    #[error("too many tables")]
    TooManyTables,
    /// Reading or writing failed, or the data is damaged.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl OpenError {
    /// Whether the data is invalid, as against unreadable, or of another version: what a check names and a salvage is for.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotAStore => true,
            Self::Kv(error) => error.is_damage(),
            _ => false,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Kv(error.into())
    }
}

/// Why an update was not committed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The operation itself failed; it changed nothing.
    #[error("{0}")]
    Refused(E),
    /// The store could not commit it.
    #[error(transparent)]
    Kv(KvError),
}

/// Most that one operation may change, in bytes of keys and values.
pub const MAX_OPERATION_BYTES: usize = 32 << 20;
