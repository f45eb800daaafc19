//! Copies of chunks on another drive: discarded, unless a transaction makes them part of the store.

use std::sync::Arc;

use afs_drive::{ChunkRef, Drive, DriveError, DriveId};
use afs_kv::Txn;
use bytes::Bytes;

use super::Relocated;
use super::plan::Moving;
use crate::error::VolumeError;
use crate::exchange::{Exchange, exchange};
use crate::located::LocatedChunk;
use crate::store::Store;

pub(super) struct Copies {
    store: Arc<Store>,
    drive_id: DriveId,
    drive: Arc<dyn Drive>,
    copies: Vec<(Moving, ChunkRef)>,
    /// Those that are no part of the store.
    unused: Vec<ChunkRef>,
}

impl Drop for Copies {
    fn drop(&mut self) {
        if !self.unused.is_empty() {
            // The drive works on its own; chunks that it cannot free are found by the next sweep.
            drop(self.drive.discard(std::mem::take(&mut self.unused)));
        }
    }
}

impl Copies {
    pub(super) fn new(store: Arc<Store>, (drive_id, drive): (DriveId, Arc<dyn Drive>)) -> Self {
        Self { store, drive_id, drive, copies: Vec::new(), unused: Vec::new() }
    }

    /// Copies chunks, a few at a time. Those that are damaged are counted and passed over.
    pub(super) async fn write(
        &mut self,
        chunks: Vec<Moving>,
        report: &mut Relocated,
    ) -> Result<(), VolumeError> {
        for some in chunks.chunks(CHUNKS_IN_FLIGHT) {
            let read = self.read(some, report).await?;
            let writing: Vec<_> =
                read.into_iter().map(|(chunk, bytes)| (chunk, self.drive.write(bytes))).collect();
            for (chunk, write) in writing {
                let new = write.await?;
                self.unused.push(new);
                if (new.len, new.crc) != (chunk.at.chunk.len, chunk.at.chunk.crc) {
                    return Err(DriveError::Damaged { chunk: new.id }.into());
                }
                report.bytes += u64::from(new.len);
                self.copies.push((chunk, new));
            }
        }
        Ok(())
    }

    async fn read(
        &self,
        chunks: &[Moving],
        report: &mut Relocated,
    ) -> Result<Vec<(Moving, Bytes)>, VolumeError> {
        let start = |chunk: &Moving| {
            let read = self.store.read(chunk.at, 0..chunk.at.chunk.len)?;
            Ok::<_, VolumeError>((*chunk, read))
        };
        let reading = chunks.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let mut read = Vec::with_capacity(reading.len());
        for (chunk, bytes) in reading {
            match bytes.await {
                Ok(bytes) => read.push((chunk, bytes)),
                Err(error @ (DriveError::Damaged { .. } | DriveError::Unreadable { .. })) => {
                    tracing::error!(drive = %chunk.at.drive, %error, "a chunk cannot be moved");
                    report.bad += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(read)
    }

    /// Makes the copies durable, and then part of the store in place of the old chunks.
    pub(super) async fn finish(self, report: &mut Relocated) -> Result<(), VolumeError> {
        if self.copies.is_empty() {
            return Ok(());
        }
        self.drive.sync(&self.unused).await?;
        let kv = self.store.kv.clone();
        let exchanged = kv.update(move |txn| {
            let (used, counts) = self.exchange(txn)?;
            txn.unless_lost(move || self.keep(&used));
            Ok::<_, VolumeError>(counts)
        });
        let counts = exchanged.await?;
        report.chunks += counts.chunks;
        report.changed += counts.changed;
        report.bad += counts.bad;
        Ok(())
    }

    /// Returns the copies that are part of the store once this is durable.
    fn exchange(&self, txn: &mut Txn<'_>) -> Result<(Vec<ChunkRef>, Relocated), VolumeError> {
        let (mut used, mut counts) = (Vec::new(), Relocated::default());
        for (chunk, new) in &self.copies {
            let at = LocatedChunk { drive: self.drive_id, chunk: *new };
            match exchange(txn, chunk.place, Exchange { old: chunk.at, new: at }) {
                Ok(true) => used.push(*new),
                Ok(false) => counts.changed += 1,
                Err(VolumeError::Damaged { .. }) => counts.bad += 1,
                Err(error) => return Err(error),
            }
        }
        counts.chunks = used.len() as u64;
        Ok((used, counts))
    }

    /// Records that some copies have become part of the store.
    fn keep(mut self, used: &[ChunkRef]) {
        self.unused.retain(|chunk| !used.contains(chunk));
        self.store.work.notify_one();
    }
}

/// Chunks that are read or written at a time: at most 16 MiB.
const CHUNKS_IN_FLIGHT: usize = 4;
