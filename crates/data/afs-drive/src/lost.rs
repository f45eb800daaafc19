//! Stand-in for a drive that will not come back: reads fail at once, and what was to be discarded is gone.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::chunk::{ChunkId, ChunkRef};
use crate::drive::{BoxFuture, Drive, LiveChunks, SweepReport, Usage};
use crate::error::DriveError;

/// A drive that was given up. Its chunks can be read from copies elsewhere, if there are any.
#[derive(Clone, Copy, Debug, Default)]
pub struct LostDrive;

fn given_up() -> Arc<io::Error> {
    Arc::new(io::Error::new(io::ErrorKind::NotFound, "its drive was given up as lost"))
}

impl Drive for LostDrive {
    fn write(&self, _: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        Box::pin(async { Err(DriveError::Io(given_up())) })
    }

    fn read(&self, chunk: ChunkRef, _: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        Box::pin(async move { Err(DriveError::Unreadable { chunk: chunk.id, error: given_up() }) })
    }

    fn sync(&self, _: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        Box::pin(async { Err(DriveError::Io(given_up())) })
    }

    fn discard(&self, _: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        Box::pin(async { Ok(()) })
    }

    fn continue_after(&self, _: ChunkId) {}

    fn usage(&self) -> Result<Usage, DriveError> {
        Err(DriveError::Io(given_up()))
    }

    fn sweep(&self, _: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        Box::pin(async { Ok(SweepReport::default()) })
    }
}
