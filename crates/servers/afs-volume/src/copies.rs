//! Copies of chunks on other drives: their rows.
//!
//! A copy belongs to a chunk, not to a reference: references name one chunk, and a row of `volume.copies` tells where its bytes are
//! besides. So clones share copies, and nothing of a file changes when a copy is made or lost.

use std::ops::Bound;

use afs_drive::{ChunkId, ChunkRef, DriveId};
use afs_kv::{Row, Txn};
use bytes::Bytes;

use crate::chunk_rows;
use crate::chunks;
use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::key::{self, COPIES, DRIVE_CHUNKS};
use crate::located::{COPIES_MAX, LocatedChunk};
use crate::rows::{Rows, index_damaged};

/// Marks of the own row of a copy, after length and sum: in use, or to be discarded.
const COPY: u8 = 2;
const FREED_COPY: u8 = 3;
/// Length of that row: the chunk it is a copy of follows the mark.
const OWN_ROW_LEN: usize = 37;
/// Copies that one transaction releases.
const RELEASED_MAX: usize = 256;

/// The copies of a chunk.
pub(crate) fn of(rows: &impl Rows, at: LocatedChunk) -> Result<Vec<LocatedChunk>, VolumeError> {
    match rows.get_row(COPIES, &key::drive_chunk(at.drive, at.chunk.id))? {
        Some(row) => decode(at, row).map_err(|_| index_damaged("a row of copies cannot be decoded")),
        None => Ok(Vec::new()),
    }
}

/// Replaces the list of a chunk's copies. Those that are no longer in it are not freed.
pub(crate) fn put(txn: &mut Txn<'_>, at: LocatedChunk, copies: &[LocatedChunk]) -> Result<(), VolumeError> {
    let key = key::drive_chunk(at.drive, at.chunk.id);
    if copies.is_empty() {
        txn.delete(COPIES, &key);
        return Ok(());
    }
    let mut row = Vec::with_capacity(20 * copies.len());
    for copy in copies {
        let own = key::drive_chunk(copy.drive, copy.chunk.id);
        row.extend_from_slice(&own);
        txn.put(DRIVE_CHUNKS, &own, own_row(at, COPY));
    }
    txn.put(COPIES, &key, row);
    Ok(())
}

/// Removes and returns the list of a chunk's copies, which stay on their drives.
pub(crate) fn take(txn: &mut Txn<'_>, at: LocatedChunk) -> Result<Vec<LocatedChunk>, VolumeError> {
    let copies = of(txn, at)?;
    if !copies.is_empty() {
        txn.delete(COPIES, &key::drive_chunk(at.drive, at.chunk.id));
    }
    Ok(copies)
}

/// Gives the copies of a chunk to the one that takes its place. A copy on the drive of that one is freed.
pub(crate) fn hand_over(txn: &mut Txn<'_>, old: LocatedChunk, new: LocatedChunk) -> Result<(), VolumeError> {
    let (kept, useless): (Vec<_>, _) = take(txn, old)?.into_iter().partition(|copy| copy.drive != new.drive);
    useless.into_iter().for_each(|copy| release(txn, copy, new));
    put(txn, new, &kept)
}

/// Queues a copy for discard.
pub(crate) fn release(txn: &mut Txn<'_>, copy: LocatedChunk, of: LocatedChunk) {
    let key = key::drive_chunk(copy.drive, copy.chunk.id);
    txn.put(DRIVE_CHUNKS, &key, own_row(of, FREED_COPY));
    chunks::free(txn, copy);
}

/// Deletes the row of a discarded chunk, and queues its copies for discard.
pub(crate) fn forget(txn: &mut Txn<'_>, at: LocatedChunk) -> Result<(), VolumeError> {
    for copy in take(txn, at)? {
        release(txn, copy, at);
    }
    for (table, key) in key::of_chunk(at) {
        txn.delete(table, &key);
    }
    Ok(())
}

/// Releases copies on a drive, some of them, from behind a key of the table of chunks on. Returns the key to continue behind.
pub(crate) fn release_on(
    txn: &mut Txn<'_>,
    drive: DriveId,
    after: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, VolumeError> {
    let [first, last] = [ChunkId::MIN, ChunkId::MAX].map(|id| key::drive_chunk(drive, id));
    let first = after.as_deref().map_or(Bound::Included(&first[..]), Bound::Excluded);
    let rows = txn.range(DRIVE_CHUNKS, (first, Bound::Included(&last[..])), false).take(RELEASED_MAX);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    for (key, row) in &rows {
        if row.len() == OWN_ROW_LEN && row.get(16) == Some(&COPY) {
            release_one(txn, drive, (key.clone(), row.clone()))?;
        }
    }
    Ok(rows.last().filter(|_| rows.len() == RELEASED_MAX).map(|(key, _)| key.to_vec()))
}

fn release_one(txn: &mut Txn<'_>, drive: DriveId, row: Row) -> Result<(), VolumeError> {
    let bad = || index_damaged("the row of a copy cannot be decoded");
    let of_key: [u8; 20] = row.1.get(17..).and_then(|key| key.try_into().ok()).ok_or_else(bad)?;
    let copy = LocatedChunk { drive, chunk: chunk_rows::chunk_of_row(row)? };
    let (of_drive, id) = of_key.split_first_chunk::<4>().ok_or_else(bad)?;
    let id = id.try_into().map(ChunkId::from_bytes).map_err(|_| bad())?;
    let chunk =
        LocatedChunk { drive: DriveId(u32::from_be_bytes(*of_drive)), chunk: ChunkRef { id, ..copy.chunk } };
    let others: Vec<_> = of(txn, chunk)?.into_iter().filter(|other| *other != copy).collect();
    put(txn, chunk, &others)?;
    release(txn, copy, chunk);
    Ok(())
}

fn own_row(of: LocatedChunk, mark: u8) -> Vec<u8> {
    let mut row = Vec::with_capacity(OWN_ROW_LEN);
    row.put_u64(0);
    row.put_u32(of.chunk.len);
    row.put_u32(of.chunk.crc);
    row.put_u8(mark);
    row.extend_from_slice(&key::drive_chunk(of.drive, of.chunk.id));
    row
}

fn decode(at: LocatedChunk, row: Bytes) -> Decoded<Vec<LocatedChunk>> {
    let mut fields = Fields::new(row);
    let mut copies = Vec::new();
    while !fields.is_empty() {
        if copies.len() + 1 == COPIES_MAX {
            return Err(BadRecord);
        }
        let drive = DriveId(fields.u32()?);
        let id: [u8; 16] = fields.bytes(16)?.as_ref().try_into().map_err(|_| BadRecord)?;
        let chunk = ChunkRef { id: ChunkId::from_bytes(id), ..at.chunk };
        copies.push(LocatedChunk { drive, chunk });
    }
    Ok(copies)
}
