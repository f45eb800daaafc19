//! Errors of drives.

use std::io;
use std::sync::Arc;

use crate::chunk::{ChunkId, MAX_CHUNK_LEN};

/// Why an operation of a drive failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The medium is full. Nothing was written.
    #[error("the drive is full")]
    NoSpace,
    /// A chunk could not be read, because the medium failed.
    #[error("chunk {chunk} cannot be read: {error}")]
    Unreadable {
        /// The chunk.
        chunk: ChunkId,
        /// The medium's error.
        error: Arc<io::Error>,
    },
    /// The stored data does not match the chunk's checksum or header.
    #[error("chunk {chunk} is damaged")]
    Damaged {
        /// The chunk.
        chunk: ChunkId,
    },
    /// A read beyond the end of the chunk, or a write of no or too many bytes: an error of the caller.
    #[error("{len} bytes: a chunk has 1 to {MAX_CHUNK_LEN} bytes, and a read stays within it")]
    Length {
        /// The requested length.
        len: u64,
    },
    /// The medium failed.
    #[error("the drive failed: {0}")]
    Io(Arc<io::Error>),
    /// An earlier flush failed, so that it is unknown what is durable.
    #[error("an earlier flush of the drive failed; open it again")]
    NeedsReopen,
    /// A sweep and another operation want the same segment. Nothing was done; the next attempt may succeed.
    #[error("a segment of the drive is in use by another operation")]
    Busy,
    /// The drive was started again before the chunks were flushed, so that they may be lost.
    #[error("the drive was started again before it had flushed the chunks")]
    Forgotten,
    /// A chunk that was to be claimed is not staged there: nobody wrote it, it was claimed before, or forgotten.
    #[error("a chunk is not staged on the drive, or was claimed before")]
    NotStaged,
    /// The drive is on another host and could not be reached in time.
    #[error("drive {drive} cannot be reached: {why}")]
    Away {
        /// Its name at this host.
        drive: Arc<str>,
        /// The last error.
        why: Arc<str>,
    },
    /// The drive is on another host and refused, or gave a reply that cannot be.
    #[error("drive {drive}: {why}")]
    Refused {
        /// Its name at this host.
        drive: Arc<str>,
        /// What it said.
        why: Arc<str>,
    },
    /// The thread pool that did the work was shut down.
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
