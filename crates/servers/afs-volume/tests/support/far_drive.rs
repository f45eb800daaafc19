//! A drive in memory that can be away, as one on another host.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, LiveChunks, MemorySegments, SegmentDrive, SweepReport,
    Usage,
};
use bytes::Bytes;

/// A drive that can be away.
pub struct FarDrive {
    pub inner: SegmentDrive<MemorySegments>,
    pub away: Arc<AtomicBool>,
}

impl FarDrive {
    fn here<T>(&self) -> Result<(), BoxFuture<Result<T, DriveError>>>
    where
        T: Send + 'static,
    {
        let away = || DriveError::Away { drive: "far".into(), why: "test".into() };
        if self.away.load(Ordering::Relaxed) { Err(Box::pin(async move { Err(away()) })) } else { Ok(()) }
    }
}

impl Drive for FarDrive {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        self.here().map_or_else(|away| away, |()| self.inner.write(data))
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.here().map_or_else(|away| away, |()| self.inner.read(chunk, range))
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        assert!(!written.is_empty(), "the chunks are named");
        self.here().map_or_else(|away| away, |()| self.inner.sync(written))
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.here().map_or_else(|away| away, |()| self.inner.discard(chunks))
    }

    fn continue_after(&self, last: ChunkId) {
        self.inner.continue_after(last);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        self.inner.usage()
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.here().map_or_else(|away| away, |()| self.inner.sweep(live))
    }
}
