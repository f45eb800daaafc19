//! The life of chunks, as the index tells it.

use afs_drive::ChunkRef;

use super::VolumeTx;
use crate::codec::Put;
use crate::extent::OwnedChunk;
use crate::key::{self, CHUNKS, DEAD, DEADLISTS};

impl VolumeTx<'_, '_> {
    /// A chunk becomes part of this volume.
    pub(super) fn adopt_chunk(&mut self, chunk: ChunkRef) -> OwnedChunk {
        let owned = OwnedChunk { chunk, birth: self.header.epoch };
        let mut row = Vec::with_capacity(16);
        row.put_u32(self.header.group.0);
        row.put_u32(owned.birth.0);
        row.put_u32(chunk.len);
        row.put_u32(chunk.crc);
        self.txn.put(CHUNKS, &chunk.id.to_bytes(), row);
        owned
    }

    /// No row of the present epoch has the chunk any longer. It goes once this is durable and nobody reads it, or with the
    /// newest clone that may have it.
    pub(super) fn drop_chunk(&mut self, owned: OwnedChunk) {
        let chunk = owned.chunk;
        match self.header.newest_clone.filter(|clone| owned.birth <= *clone) {
            Some(clone) => {
                let key = key::deadlist(self.header.group, clone, chunk.id);
                self.txn.put(DEADLISTS, &key, chunk.to_bytes().to_vec());
            }
            None => {
                let key = key::dead(self.txn.sequence(), chunk.id);
                self.txn.put(DEAD, &key, chunk.to_bytes().to_vec());
                self.work = true;
            }
        }
    }
}
