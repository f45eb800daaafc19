//! How a drive fails.

use std::io;
use std::sync::Arc;

use crate::chunk::{ChunkId, MAX_CHUNK_LEN};

/// A drive could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The medium is full. Nothing was written.
    #[error("the drive is full")]
    NoSpace,
    /// A chunk cannot be read, since the medium failed.
    #[error("chunk {chunk} cannot be read: {error}")]
    Unreadable {
        /// Which.
        chunk: ChunkId,
        /// What the medium said.
        error: Arc<io::Error>,
    },
    /// What is stored under the name is not what was written.
    #[error("chunk {chunk} is damaged")]
    Damaged {
        /// Which.
        chunk: ChunkId,
    },
    /// A read beyond the end of the chunk, or a write of no or too many bytes: a mistake of the caller.
    #[error("{len} bytes: a chunk has 1 to {MAX_CHUNK_LEN} bytes, and a read stays within it")]
    Length {
        /// The length asked for.
        len: u64,
    },
    /// The medium failed.
    #[error("the drive failed: {0}")]
    Io(Arc<io::Error>),
    /// An earlier flush failed, so that it is unknown what is durable.
    #[error("an earlier flush of the drive failed; open it again")]
    Wounded,
    /// Whoever was doing the work went away.
    #[error("the drive was closed")]
    Closed,
}

impl From<io::Error> for DriveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            _ => Self::Io(Arc::new(error)),
        }
    }
}
