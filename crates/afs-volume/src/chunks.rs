//! The life of chunks, as the index tells it.
//!
//! A row of the second format is read where it is and goes with its chunk; what is written is of the third.

use afs_kv::{KvError, Txn};
use bytes::Bytes;

use crate::codec::Put;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, DEAD, DEADLISTS, DRIVE_CHUNKS, TableKey};
use crate::located::LocatedChunk;

/// A chunk becomes part of a group.
pub(crate) fn adopt(txn: &mut Txn<'_>, group: GroupId, owned: OwnedChunk) {
    let mut row = Vec::with_capacity(ROW_LEN);
    row.put_u32(group.0);
    row.put_u32(owned.birth.0);
    row.put_u32(owned.at.chunk.len);
    row.put_u32(owned.at.chunk.crc);
    txn.put(DRIVE_CHUNKS, &key::drive_chunk(owned.at.drive, owned.at.chunk.id), row);
}

/// The newest state of a group lets go of a chunk: it goes once this is durable and nobody reads it, or with the newest clone
/// that has it.
pub(crate) fn let_go(
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

/// Has a chunk discarded that only one row ever had.
pub(crate) fn free(txn: &mut Txn<'_>, at: LocatedChunk) {
    txn.put(DEAD, &key::dead(txn.sequence(), at), at.to_bytes().to_vec());
}

/// Has a chunk discarded that several rows may have, of which others may have been taken down before.
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

/// A chunk has been discarded.
pub(crate) fn forget(txn: &mut Txn<'_>, at: LocatedChunk) {
    for (table, key) in key::of_chunk(at) {
        txn.delete(table, &key);
    }
}

/// The row of a chunk, wherever it is.
fn row(txn: &Txn<'_>, at: LocatedChunk) -> Result<Option<(TableKey, Bytes)>, KvError> {
    for (table, key) in key::of_chunk(at) {
        if let Some(row) = txn.get(table, &key)? {
            return Ok(Some(((table, key), row)));
        }
    }
    Ok(None)
}

/// Bytes of a row, without the mark that the chunk is to be discarded.
const ROW_LEN: usize = 16;
const FREED: u8 = 1;
