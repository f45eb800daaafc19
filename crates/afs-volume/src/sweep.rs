//! Sweep of a drive: frees the chunks without a row in the index.

use afs_drive::{ChunkId, ChunkRef, DriveError, DriveId, LiveChunks, SweepReport};
use afs_kv::{Kv, KvError, Row, Snapshot};
use std::io;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::VolumeError;
use crate::key::{self, CHUNKS, DRIVE_CHUNKS};
use crate::store::VolumeStore;

/// The chunks with rows, for the store's own drive.
struct LiveInIndex(Kv);

impl LiveChunks for LiveInIndex {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        let snapshot = self.0.snapshot();
        let mut live = live_in(&snapshot, CHUNKS, &first.to_bytes(), &last.to_bytes())?;
        let [first, last] = [first, last].map(|name| key::drive_chunk(DriveId::OWN, name));
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

fn chunk(key: &[u8], value: &[u8]) -> Option<ChunkRef> {
    let word =
        |at: usize| value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    Some(ChunkRef { id: name(key)?, len: word(8)?, crc: word(12)? })
}

/// The chunk id at the end of a key of either table.
fn name(key: &[u8]) -> Option<ChunkId> {
    key.last_chunk().map(|name| ChunkId::from_bytes(*name))
}

/// The greatest id of a chunk of the store's own drive that has a row. A dead chunk has one until its discard
/// is known.
pub(crate) fn last_chunk(kv: &Kv) -> Result<Option<ChunkId>, KvError> {
    let snapshot = kv.snapshot();
    let [first, last] = [ChunkId::MIN, ChunkId::MAX].map(|name| key::drive_chunk(DriveId::OWN, name));
    let own = (Bound::Included(&first[..]), Bound::Included(&last[..]));
    let newest = |row: Option<Row>| row.and_then(|(key, _)| name(&key));
    let old = newest(snapshot.range(CHUNKS, .., true).next().transpose()?);
    Ok(old.max(newest(snapshot.range(DRIVE_CHUNKS, own, true).next().transpose()?)))
}

impl VolumeStore {
    /// Frees chunks that crashes left on the drive. Once after each start is enough; the store is fully
    /// usable meanwhile.
    pub async fn sweep(&self) -> Result<SweepReport, VolumeError> {
        let live = Arc::new(LiveInIndex(self.store.kv.clone()));
        let report = self.store.drives.own().sweep(live).await?;
        for chunk in &report.missing {
            tracing::error!(%chunk, "a chunk that a file has is not on the drive");
        }
        Ok(report)
    }
}
