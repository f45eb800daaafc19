//! The life of chunks, as the index tells it.

use afs_drive::ChunkRef;
use afs_kv::Txn;

use crate::codec::Put;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, CHUNKS, DEAD, DEADLISTS};

/// A chunk becomes part of a group.
pub(crate) fn adopt(txn: &mut Txn<'_>, group: GroupId, owned: OwnedChunk) {
    let mut row = Vec::with_capacity(16);
    row.put_u32(group.0);
    row.put_u32(owned.birth.0);
    row.put_u32(owned.chunk.len);
    row.put_u32(owned.chunk.crc);
    txn.put(CHUNKS, &owned.chunk.id.to_bytes(), row);
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
            let mut row = owned.chunk.to_bytes().to_vec();
            row.put_u32(owned.birth.0);
            txn.put(DEADLISTS, &key::deadlist(group, clone, owned.chunk.id), row);
            Ok(())
        }
        None => free_once(txn, owned.chunk),
    }
}

/// Has a chunk discarded that only one row ever had.
pub(crate) fn free(txn: &mut Txn<'_>, chunk: ChunkRef) {
    txn.put(DEAD, &key::dead(txn.sequence(), chunk.id), chunk.to_bytes().to_vec());
}

/// Has a chunk discarded that several rows may have, of which others may have been taken down before.
pub(crate) fn free_once(txn: &mut Txn<'_>, chunk: ChunkRef) -> Result<(), VolumeError> {
    let key = chunk.id.to_bytes();
    if let Some(row) = txn.get(CHUNKS, &key)?
        && row.len() == ROW_LEN
    {
        let mut freed = row.to_vec();
        freed.put_u8(FREED);
        txn.put(CHUNKS, &key, freed);
        free(txn, chunk);
    }
    Ok(())
}

/// Bytes of a row, without the mark that the chunk is to be discarded.
const ROW_LEN: usize = 16;
const FREED: u8 = 1;
