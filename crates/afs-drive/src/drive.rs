//! What a drive can do.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::chunk::{ChunkId, ChunkRef};
use crate::error::DriveError;

/// A future that can be kept and sent.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Keeps immutable chunks. Work begins when a method is called; the future tells when it is done.
pub trait Drive: Send + Sync + 'static {
    /// Writes a chunk of 1 to [`MAX_CHUNK_LEN`](crate::MAX_CHUNK_LEN) bytes. It is not durable before a [`Drive::sync`]
    /// called after this resolved has resolved. A full drive answers [`DriveError::NoSpace`] and keeps nothing. Dropping the future
    /// unresolved discards the chunk.
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>>;

    /// The bytes `range` of a chunk, checked against their checksum. The whole chunk need not be read.
    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>>;

    /// Resolves when every chunk whose write resolved before this call is durable. Calls that come together
    /// share one flush.
    ///
    /// After a failed flush nobody can know what is durable: the drive then refuses writes and flushes until it is
    /// opened again.
    fn sync(&self) -> BoxFuture<Result<(), DriveError>>;

    /// Frees chunks that nobody refers to or reads. Discarding one twice does no harm.
    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>>;

    /// Gives chunks written from now on names greater than `last`, also where the segment of that name is gone. To be called before the first
    /// write, with the greatest name that anything still refers to.
    fn continue_after(&self, last: ChunkId);

    /// Room on the medium.
    fn usage(&self) -> Result<Usage, DriveError>;

    /// Frees every chunk of earlier runs that is not live, which is what crashes leave. Chunks written since this
    /// drive was opened are not touched. Memory is bounded by the live chunks of one segment.
    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>>;
}

/// Knows which chunks some file has.
pub trait LiveChunks: Send + Sync + 'static {
    /// The live chunks with names from `first` to `last`, both included, in order.
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError>;
}

/// Room on a drive, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// What can still be written.
    pub free: u64,
    /// What there is altogether.
    pub total: u64,
}

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Segments looked at.
    pub segments: u64,
    /// Segments removed, since nothing in them was live.
    pub removed: u64,
    /// Live chunks.
    pub live: u64,
    /// Live chunks that are not on the drive, the first thousand of them.
    pub missing: Vec<ChunkId>,
}
