//! Rows of chunks: ownership by a group, release, discard.
//!
//! A row of the second format is read where it is and deleted with its chunk; new rows have the third format.

use afs_kv::{KvError, Txn};
use bytes::Bytes;

use crate::codec::Put;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, DEAD, DEADLISTS, DRIVE_CHUNKS, TableKey};
use crate::located::LocatedChunk;

/// Records that a chunk belongs to a group.
pub(crate) fn adopt(txn: &mut Txn<'_>, group: GroupId, owned: OwnedChunk) {
    let mut row = Vec::with_capacity(ROW_LEN);
    row.put_u32(group.0);
    row.put_u32(owned.birth.0);
    row.put_u32(owned.at.chunk.len);
    row.put_u32(owned.at.chunk.crc);
    txn.put(DRIVE_CHUNKS, &key::drive_chunk(owned.at.drive, owned.at.chunk.id), row);
}

/// Releases a chunk from the newest state of a group: it is discarded once this is durable and no reader is
/// left, or with the newest clone that references it.
pub(crate) fn release(
    txn: &mut Txn<'_>,
    group: GroupId,
    clone: Option<Epoch>,
    owned: OwnedChunk,
) -> Result<(), VolumeError> {
    match clone.filter(|clone| owned.birth <= *clone) {
        Some(clone) => {
            txn.put(DEADLISTS, &key::deadlist(group, clone, owned.at), owned.to_row());
            Ok(())
        }
        None => free_once(txn, owned.at),
    }
}

/// Queues a chunk for discard that only one row ever referenced.
pub(crate) fn free(txn: &mut Txn<'_>, at: LocatedChunk) {
    txn.put(DEAD, &key::dead(txn.sequence(), at), at.to_bytes().to_vec());
}

/// Queues a chunk for discard that several rows may reference, some of which may have been deleted before.
pub(crate) fn free_once(txn: &mut Txn<'_>, at: LocatedChunk) -> Result<(), VolumeError> {
    if let Some(((table, key), row)) = row(txn, at)?
        && row.len() == ROW_LEN
    {
        let mut freed = row.to_vec();
        freed.put_u8(FREED);
        txn.put(table, &key, freed);
        free(txn, at);
    }
    Ok(())
}

/// Whether a chunk belongs to a group and is not to be discarded.
pub(crate) fn is_live(txn: &Txn<'_>, at: LocatedChunk) -> Result<bool, KvError> {
    Ok(row(txn, at)?.is_some_and(|(_, row)| is_live_row(&row)))
}

/// As [`is_live`], of the row in the table of all chunks. A copy of a chunk is not.
pub(crate) fn is_live_row(row: &[u8]) -> bool {
    row.len() == ROW_LEN
}

/// The row of a chunk, in either table.
fn row(txn: &Txn<'_>, at: LocatedChunk) -> Result<Option<(TableKey, Bytes)>, KvError> {
    for (table, key) in key::of_chunk(at) {
        if let Some(row) = txn.get(table, &key)? {
            return Ok(Some(((table, key), row)));
        }
    }
    Ok(None)
}

/// Length of a row without the mark that the chunk is to be discarded.
const ROW_LEN: usize = 16;
const FREED: u8 = 1;
