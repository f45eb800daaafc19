//! Rows of the tables of chunks: the chunk that a row is of, and the last one of a drive.

use afs_drive::{ChunkId, ChunkRef, DriveId};
use afs_kv::{Kv, KvError, Row};
use std::ops::Bound;

use crate::error::VolumeError;
use crate::key::{self, CHUNKS, DRIVE_CHUNKS};
use crate::rows::index_damaged;

/// The chunk of a row of either table of chunks.
pub(crate) fn chunk_of_row((key, value): Row) -> Result<ChunkRef, VolumeError> {
    chunk(&key, &value).ok_or_else(|| index_damaged("a row of the table of chunks cannot be decoded"))
}

pub(crate) fn chunk(key: &[u8], value: &[u8]) -> Option<ChunkRef> {
    let word =
        |at: usize| value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    Some(ChunkRef { id: name(key)?, len: word(8)?, crc: word(12)? })
}

/// The chunk id at the end of a key of either table.
fn name(key: &[u8]) -> Option<ChunkId> {
    key.last_chunk().map(|name| ChunkId::from_bytes(*name))
}

/// The greatest id of a chunk of a drive that has a row. A dead chunk has one until its discard is known.
pub(crate) fn last_chunk(kv: &Kv, drive: DriveId) -> Result<Option<ChunkId>, KvError> {
    let snapshot = kv.snapshot();
    let [first, last] = [ChunkId::MIN, ChunkId::MAX].map(|name| key::drive_chunk(drive, name));
    let of_drive = (Bound::Included(&first[..]), Bound::Included(&last[..]));
    let newest = |row: Option<Row>| row.and_then(|(key, _)| name(&key));
    let old = match drive {
        DriveId::OWN => newest(snapshot.range(CHUNKS, .., true).next().transpose()?),
        _ => None,
    };
    Ok(old.max(newest(snapshot.range(DRIVE_CHUNKS, of_drive, true).next().transpose()?)))
}
