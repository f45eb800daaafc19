//! What can go wrong, by stage.

use std::io;
use std::sync::Arc;

/// A read or a commit failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// The medium is full. Nothing of the batch was applied; reads go on, and so do commits once there is room.
    #[error("the medium is full")]
    NoSpace,
    /// The medium refused an operation. Nothing of the batch was applied.
    #[error("the medium failed: {0}")]
    Io(Arc<io::Error>),
    /// What was read from the medium cannot be.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A sync of the log failed, so that it is unknown what is durable. No further commit is taken until the store
    /// is opened again; reads of what was durable before go on.
    #[error("an earlier sync of the log failed; open the store again")]
    Wounded,
    /// One operation changed more than [`MAX_OPERATION_BYTES`] bytes.
    #[error("the operation changes {0} bytes, the most is {MAX_OPERATION_BYTES}")]
    TooLarge(usize),
    /// A read that was limited to memory needs the medium.
    #[error("the row is not in memory")]
    NotInMemory,
    /// The engine went away before the operation ran.
    #[error("the store was closed")]
    Closed,
}

impl KvError {
    /// Whether what was read is not what a store looks like, as against not being readable at all.
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
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io(Arc::new(error)),
        }
    }
}

impl From<redb::StorageError> for KvError {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Io(error) => error.into(),
            redb::StorageError::Corrupted(what) => Self::Corrupt(what),
            other => Self::Io(Arc::new(io::Error::other(other.to_string()))),
        }
    }
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Written by another version of this program.
    #[error("the store has format {found}; this program reads format {expected}")]
    Format {
        /// What the medium says.
        found: u64,
        /// What this program knows.
        expected: u64,
    },
    /// There is a file where the index would be, and it is something else.
    #[error("there is a file named \"index\" that is no index")]
    NotAStore,
    /// More tables than a store can hold (255 in its whole life).
    #[error("too many tables")]
    TooManyTables,
    /// Reading or writing failed, or what was read is damaged.
    #[error(transparent)]
    Kv(#[from] KvError),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Kv(error.into())
    }
}

/// An update did not happen.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The operation itself declined; it left nothing behind.
    #[error("{0}")]
    Refused(E),
    /// The engine could not commit it.
    #[error(transparent)]
    Kv(KvError),
}

/// The most one operation may change, counted in bytes of keys and values.
pub const MAX_OPERATION_BYTES: usize = 32 << 20;
