//! Check of a drive: reads every chunk that the store has there, one after the other.

use std::ops::Bound;

use afs_drive::{ChunkId, ChunkRef, DriveError, DriveId};

use crate::chunk_rows;
use crate::error::VolumeError;
use crate::key::{self, CHUNKS, DRIVE_CHUNKS};
use crate::store::VolumeStore;

/// What a check of a drive found.
#[derive(Clone, Debug, Default)]
pub struct CheckedDrive {
    /// Chunks that were read.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that could not be read, or are not what was written.
    pub bad: u64,
    /// The first of them, with the error: at most [`SHOWN_MAX`].
    pub first_bad: Vec<String>,
}

/// What a store has on a drive, chunks that wait for their discard included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveContents {
    /// Number of chunks.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Bad chunks that are told one by one.
pub const SHOWN_MAX: usize = 20;
/// Chunks whose rows are read together.
const BATCH: usize = 256;

impl CheckedDrive {
    /// Counts a chunk that is not whole, and lists it if it is among the first.
    fn note_bad(&mut self, error: &DriveError) {
        self.bad += 1;
        if self.first_bad.len() < SHOWN_MAX {
            self.first_bad.push(error.to_string());
        }
    }
}

impl VolumeStore {
    /// Reads all chunks of the store on a drive against their checksums. At most one chunk is read at a time, so that others
    /// have the drive too; chunks that are written or freed meanwhile may or may not be among them.
    ///
    /// # Errors
    /// `UnknownDrive`, errors of the index. What the drive cannot give is counted.
    pub async fn check_drive(&self, id: DriveId) -> Result<CheckedDrive, VolumeError> {
        let drive = self.store.drives.get(id)?;
        let mut checked = CheckedDrive::default();
        let mut after = None;
        loop {
            let chunks = self.chunks_after(id, after)?;
            let Some(last) = chunks.last() else { return Ok(checked) };
            after = Some(last.id);
            for chunk in chunks {
                let read = drive.read(chunk, 0..chunk.len).await;
                checked.chunks += 1;
                checked.bytes += u64::from(chunk.len);
                // A chunk that was discarded since its row was read is no loss.
                if let Err(error) = read
                    && self.has_chunk(id, chunk)?
                {
                    checked.note_bad(&error);
                }
            }
        }
    }

    /// What the store has on a drive. Reads the rows of all these chunks, and so may block on a disk for a while: about 50
    /// bytes for each.
    ///
    /// # Errors
    /// Errors of the index.
    pub fn contents_of_drive(&self, id: DriveId) -> Result<DriveContents, VolumeError> {
        let mut contents = DriveContents::default();
        let mut after = None;
        loop {
            let chunks = self.chunks_after(id, after)?;
            let Some(last) = chunks.last() else { return Ok(contents) };
            after = Some(last.id);
            contents.chunks += chunks.len() as u64;
            contents.bytes += chunks.iter().map(|chunk| u64::from(chunk.len)).sum::<u64>();
        }
    }

    /// The next chunks of a drive, in the order of their ids.
    fn chunks_after(&self, drive: DriveId, after: Option<ChunkId>) -> Result<Vec<ChunkRef>, VolumeError> {
        let snapshot = self.store.kv.snapshot();
        let first = after.unwrap_or(ChunkId::MIN);
        let from = |key: &[u8]| match after {
            Some(_) => Bound::Excluded(key.to_vec()),
            None => Bound::Included(key.to_vec()),
        };
        let rows = |table: &str, first: &[u8], last: &[u8]| {
            let (first, last) = (from(first), Bound::Included(last.to_vec()));
            let range = (first.as_ref().map(Vec::as_slice), last.as_ref().map(Vec::as_slice));
            let rows = snapshot.range(table, range, false).take(BATCH);
            rows.map(|row| chunk_rows::chunk_of_row(row?)).collect::<Result<Vec<_>, VolumeError>>()
        };
        let mut chunks = match drive {
            DriveId::OWN => rows(CHUNKS, &first.to_bytes(), &ChunkId::MAX.to_bytes())?,
            _ => Vec::new(),
        };
        let [first, last] = [first, ChunkId::MAX].map(|id| key::drive_chunk(drive, id));
        chunks.extend(rows(DRIVE_CHUNKS, &first, &last)?);
        chunks.sort_unstable();
        // Of two tables each may have more behind the last one of the other's batch.
        chunks.truncate(BATCH);
        Ok(chunks)
    }

    fn has_chunk(&self, drive: DriveId, chunk: ChunkRef) -> Result<bool, VolumeError> {
        let snapshot = self.store.kv.snapshot();
        let is_old = drive == DriveId::OWN && snapshot.get(CHUNKS, &chunk.id.to_bytes())?.is_some();
        Ok(is_old || snapshot.get(DRIVE_CHUNKS, &key::drive_chunk(drive, chunk.id))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_are_not_whole_are_counted_and_the_first_are_listed() {
        let mut checked = CheckedDrive::default();
        (0..3 * SHOWN_MAX).for_each(|_| checked.note_bad(&DriveError::NoSpace));
        assert_eq!((checked.bad, checked.first_bad.len()), (3 * SHOWN_MAX as u64, SHOWN_MAX));
    }
}
