//! The trait of drives: write, read, sync, discard, sweep.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::chunk::{ChunkId, ChunkRef};
use crate::error::DriveError;

/// A boxed future that is `Send`.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Called when a drive is there again that was away. Must be quick.
pub type Returned = Arc<dyn Fn() + Send + Sync>;

/// Stores immutable chunks. Work begins when a method is called; the future completes when it is done.
pub trait Drive: Send + Sync + 'static {
    /// Writes a chunk of 1 to [`MAX_CHUNK_LEN`](crate::MAX_CHUNK_LEN) bytes. It is not durable before a
    /// [`Drive::sync`] that names it has completed. A full drive returns [`DriveError::NoSpace`] and
    /// keeps nothing. Dropping the future early discards the chunk.
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>>;

    /// The bytes `range` of a chunk, verified with their checksum. The whole chunk need not be read.
    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>>;

    /// Completes when the chunks `written`, whose writes completed before this call, are durable. Concurrent calls
    /// share one flush.
    ///
    /// A drive on another host may have been started again between the write and this call; it then returns
    /// [`DriveError::Forgotten`], because it no longer has what was not flushed. After a failed flush it is unknown
    /// what is durable: the drive then refuses writes and flushes until it is opened again. A drive that still has
    /// all that was not flushed may instead flush it with the next call.
    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>>;

    /// Frees chunks that are neither referenced nor being read. Discarding one twice does no harm.
    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>>;

    /// Whether clients may stage chunks on it, which [`Drive::claim`] then gives. Asks the drive if that is not known.
    fn takes_staged(&self) -> BoxFuture<bool> {
        Box::pin(async { false })
    }

    /// Makes chunks that a client has staged, and that are durable, the caller's, all or none: from then on it has to discard
    /// them. Each is given once; [`DriveError::NotStaged`] for what is not there, or was given before, or forgotten. Of the drive
    /// alone it is known whether they are as the client says.
    ///
    /// After another error it is not known whether they were given: the caller must neither use nor discard them.
    fn claim(&self, _staged: StagedChunks) -> BoxFuture<Result<(), DriveError>> {
        Box::pin(async { Err(DriveError::NotStaged) })
    }

    /// Gives chunks written from now on ids greater than `last`, also where the segment of that id has been removed.
    /// To be called before the first write, with the greatest id that is still referenced.
    fn continue_after(&self, last: ChunkId);

    /// Has `told` called each time the drive is there again after operations found it away, also while nothing is asked of it. One
    /// that cannot be away, or is not watched, never calls it. Replaces what was given before.
    fn on_return(&self, _told: Returned) {}

    /// Free and total space on the medium.
    fn usage(&self) -> Result<Usage, DriveError>;

    /// Frees every chunk that is not live and was written before this drive was opened: the garbage of crashes. Chunks
    /// written since are not touched. Memory is bounded by the live chunks of one segment.
    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>>;

    /// Frees the chunks that operations of which nothing was heard have left since this drive was opened, if there were such
    /// operations. Costs as many chunks as were written since the last time.
    ///
    /// `settled` must complete when each chunk that the drive gave before `settled` was first polled is in `live`, or was given up. A
    /// chunk that was staged before that moment and not claimed cannot be claimed any more.
    fn sweep_left(
        &self,
        _live: Arc<dyn LiveChunks>,
        _settled: BoxFuture<Result<(), DriveError>>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        Box::pin(async { Ok(SweepReport::default()) })
    }
}

/// Chunks that a client says to have staged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StagedChunks {
    /// The tag under which they were: the drive's name of the client's room.
    pub tag: [u8; 8],
    /// At most 4096.
    pub chunks: Vec<ChunkRef>,
}

/// Source of the referenced chunks.
pub trait LiveChunks: Send + Sync + 'static {
    /// The live chunks with ids from `first` to `last`, both included, in order.
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError>;
}

/// Space on a drive, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Free space.
    pub free: u64,
    /// Total space.
    pub total: u64,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Segments examined.
    pub segments: u64,
    /// Segments removed, without a live chunk.
    pub removed: u64,
    /// Live chunks.
    pub live: u64,
    /// Live chunks that are not on the drive, the first thousand of them.
    pub missing: Vec<ChunkId>,
}
