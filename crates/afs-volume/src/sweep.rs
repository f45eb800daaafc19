//! Which chunks are live, for the drive's sweep.

use afs_drive::{ChunkId, ChunkRef, DriveError, LiveChunks, SweepReport};
use afs_kv::Kv;
use std::io;
use std::sync::Arc;

use crate::error::VolumeError;
use crate::key::CHUNKS;
use crate::store::VolumeStore;

/// Reads the table of chunks.
struct LiveInIndex(Kv);

impl LiveChunks for LiveInIndex {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        let snapshot = self.0.snapshot();
        let (first, last) = (first.to_bytes(), last.to_bytes());
        let bounds = (std::ops::Bound::Included(&first[..]), std::ops::Bound::Included(&last[..]));
        snapshot
            .range(CHUNKS, bounds, false)
            .map(|row| {
                let (key, value) = row.map_err(|error| DriveError::Io(Arc::new(io::Error::other(error))))?;
                chunk(&key, &value).ok_or_else(|| {
                    DriveError::Io(Arc::new(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a row of the table of chunks cannot be decoded",
                    )))
                })
            })
            .collect()
    }
}

fn chunk(key: &[u8], value: &[u8]) -> Option<ChunkRef> {
    let word =
        |at: usize| value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    Some(ChunkRef { id: ChunkId::from_bytes(key.try_into().ok()?), len: word(8)?, crc: word(12)? })
}

impl VolumeStore {
    /// Has the drive free what crashes left on it. Once after each start is enough; the store is in full use meanwhile.
    pub async fn sweep(&self) -> Result<SweepReport, VolumeError> {
        let report = self.store.drive.sweep(Arc::new(LiveInIndex(self.store.kv.clone()))).await?;
        for chunk in &report.missing {
            tracing::error!(%chunk, "a chunk that a file has is not on the drive");
        }
        Ok(report)
    }
}
