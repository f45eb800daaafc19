//! Sweep of a drive: frees the chunks without a row in the index, a day after the opening or when room is short.
//!
//! An index of which rows were lost, or that is an older copy, names less than the drive has. Until the sweep the drive
//! has it still, for who puts the index right. No list of it is kept: each sweep finds it anew, and the day begins with each
//! opening.

use afs_drive::{ChunkId, ChunkRef, DriveError, DriveId, LiveChunks, SweepReport};
use afs_env::{EnvExt, Instant};
use afs_kv::{Kv, Snapshot};
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::chunk_rows::chunk;
use crate::error::VolumeError;
use crate::key::{self, CHUNKS, DRIVE_CHUNKS};
use crate::store::{Store, VolumeStore};

/// How long chunks without a row stay on a drive after the opening of the store.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// They go earlier when less than this part of the drive is free.
const ONE_IN: u64 = 10;
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(60);

/// The chunks of one drive that have rows.
struct LiveInIndex {
    kv: Kv,
    drive: DriveId,
}

impl LiveChunks for LiveInIndex {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        let snapshot = self.kv.snapshot();
        let mut live = match self.drive {
            DriveId::OWN => live_in(&snapshot, CHUNKS, &first.to_bytes(), &last.to_bytes())?,
            _ => Vec::new(),
        };
        let [first, last] = [first, last].map(|name| key::drive_chunk(self.drive, name));
        live.extend(live_in(&snapshot, DRIVE_CHUNKS, &first, &last)?);
        live.sort_unstable();
        Ok(live)
    }
}

fn live_in(snapshot: &Snapshot, table: &str, first: &[u8], last: &[u8]) -> Result<Vec<ChunkRef>, DriveError> {
    let failed = |error: io::Error| DriveError::Io(Arc::new(error));
    let rows = snapshot.range(table, (Bound::Included(first), Bound::Included(last)), false);
    rows.map(|row| {
        let (key, value) = row.map_err(|error| failed(io::Error::other(error)))?;
        let bad = "a row of the table of chunks cannot be decoded";
        chunk(&key, &value).ok_or_else(|| failed(io::Error::new(io::ErrorKind::InvalidData, bad)))
    })
    .collect()
}

impl VolumeStore {
    /// Frees what crashes left on the store's own drive, when it may go: [`KEPT_FOR`] after this call, which is to follow the
    /// opening, or when less than a tenth of the drive is free. Once after each start is enough; the store is fully usable meanwhile.
    ///
    /// # Errors
    /// The errors of the drive.
    pub async fn sweep_when_due(&self) -> Result<SweepReport, VolumeError> {
        let opened = self.store.env.now();
        while !self.is_sweep_due(DriveId::OWN, opened)? {
            self.store.env.sleep(LOOK).await;
        }
        self.sweep().await
    }

    /// Whether what crashes left on a drive that was added at `opened` may go.
    ///
    /// # Errors
    /// `UnknownDrive`.
    pub fn is_sweep_due(&self, drive: DriveId, opened: Instant) -> Result<bool, VolumeError> {
        let drive = self.store.drives.get(drive)?;
        // One that does not say how much is free cannot be swept either.
        let is_short = drive.usage().is_ok_and(|usage| usage.free < usage.total / ONE_IN);
        Ok(is_short || self.store.env.now().0.saturating_sub(opened.0) >= KEPT_FOR.as_nanos() as u64)
    }

    /// Frees chunks that crashes left on the store's own drive, at once.
    pub async fn sweep(&self) -> Result<SweepReport, VolumeError> {
        self.sweep_drive(DriveId::OWN).await
    }

    /// As [`VolumeStore::sweep`], for any of the store's drives.
    ///
    /// # Errors
    /// `UnknownDrive`, and the errors of the drive.
    pub async fn sweep_drive(&self, drive: DriveId) -> Result<SweepReport, VolumeError> {
        let live = Arc::new(LiveInIndex { kv: self.store.kv.clone(), drive });
        let report = self.store.drives.get(drive)?.sweep(live).await?;
        for chunk in &report.missing {
            tracing::error!(%drive, %chunk, "a chunk that a file has is not on the drive");
        }
        Ok(report)
    }

    /// Frees what operations without an answer have left on a drive since it was added. To be called again and again: it costs nothing
    /// if there were none. Waits for the stores that are under way.
    ///
    /// # Errors
    /// `UnknownDrive`, the errors of the drive, and of the index.
    pub async fn sweep_left(&self, drive: DriveId) -> Result<SweepReport, VolumeError> {
        let live = Arc::new(LiveInIndex { kv: self.store.kv.clone(), drive });
        let store = self.store.clone();
        let settled = Box::pin(async move { store.settle(drive).await });
        // No handle of the drive is kept, for its end is waited for.
        let sweeping = self.store.drives.get(drive)?.sweep_left(live, settled);
        Ok(sweeping.await?)
    }
}

impl Store {
    /// Completes when each chunk that was written to a drive before is named by a row, or was given up.
    async fn settle(self: &Arc<Self>, drive: DriveId) -> Result<(), DriveError> {
        if let Some(end) = self.drives.end_of_handles(drive) {
            // An error is the end.
            _ = end.await;
        }
        // Changes that were durable and not visible yet are visible after another one. One whose record could not be written may be
        // there at the next start, until another record takes its place: so this one must not be empty.
        let recorded = self.kv.update(|txn| {
            txn.delete(DRIVE_CHUNKS, &[]);
            Ok::<_, VolumeError>(())
        });
        recorded.await.map_err(|error| DriveError::Io(Arc::new(io::Error::other(error.to_string()))))
    }
}
