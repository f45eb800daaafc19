//! Rows of a volume as of an epoch, read from a snapshot or within a transaction.

use afs_kv::{KvError, Snapshot, Txn};
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use crate::depth::Depth;
use crate::error::VolumeError;
use crate::extent::Slot;
use crate::ids::{ContentId, Epoch, GroupId, SlotIndex};
use crate::key::RowId;
use crate::record::VnodeRecord;

/// A source of rows.
pub(crate) trait Rows {
    fn get_row(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError>;
    fn last_row(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Bytes>, KvError>;

    /// The newest row at or before an epoch. An empty row (tombstone) says that there is none from its epoch
    /// on.
    fn row(&self, id: RowId, epoch: Epoch) -> Result<Option<Bytes>, KvError> {
        let key = id.key(epoch);
        // A group that was never cloned has one epoch and so one row for each key.
        let row = match epoch {
            Epoch::FIRST => self.get_row(id.table(), &key)?,
            _ => self.last_row(id.table(), &id.key(Epoch(0)), &key)?,
        };
        Ok(row.filter(|row| !row.is_empty()))
    }

    fn vnode_row(
        &self,
        group: GroupId,
        vnode: VnodeId,
        epoch: Epoch,
    ) -> Result<Option<VnodeRecord>, VolumeError> {
        let Some(row) = self.row(RowId::Vnode(group, vnode), epoch)? else { return Ok(None) };
        let record =
            VnodeRecord::decode(vnode, row).map_err(|_| damaged(vnode, "its record cannot be decoded"))?;
        Ok(Some(record))
    }

    /// A slot of a file.
    fn slot_row(
        &self,
        group: GroupId,
        record: &VnodeRecord,
        index: SlotIndex,
        epoch: Epoch,
    ) -> Result<Slot, VolumeError> {
        let slot = self.kept_slot(group, record, index, epoch)?;
        Ok(if record.cuts.hide(index, slot.version) { Slot::default() } else { slot })
    }

    /// A slot of a file, or one that was cut out and not deleted yet.
    fn kept_slot(
        &self,
        group: GroupId,
        record: &VnodeRecord,
        slot: SlotIndex,
        epoch: Epoch,
    ) -> Result<Slot, VolumeError> {
        let Some(row) = self.row(RowId::Slot(group, record.content, slot), epoch)? else {
            return Ok(Slot::default());
        };
        Slot::decode(row).map_err(|_| damaged(record.vnode, "a slot of its data cannot be decoded"))
    }

    fn page_row(
        &self,
        group: GroupId,
        content: ContentId,
        page: SlotIndex,
        epoch: Epoch,
    ) -> Result<Option<Bytes>, KvError> {
        self.row(RowId::Page(group, content, page), epoch)
    }
}

impl Rows for Snapshot {
    fn get_row(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(table, key)
    }

    fn last_row(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Bytes>, KvError> {
        Ok(self.last_at_or_before(table, first, last)?.map(|(_, row)| row))
    }
}

/// The rows of a snapshot, at a depth.
pub(crate) struct RowsTo<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) depth: Depth,
}

impl Rows for RowsTo<'_> {
    fn get_row(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.depth {
            Depth::Memory => self.snapshot.get_in_memory(table, key),
            Depth::Disk => self.snapshot.get_row(table, key),
        }
    }

    fn last_row(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.depth {
            // No row can be nearer than the one at the end of the range; only the medium knows those before
            // it.
            Depth::Memory => match self.snapshot.get_in_memory(table, last)? {
                Some(row) => Ok(Some(row)),
                None => Err(KvError::NotInMemory),
            },
            Depth::Disk => self.snapshot.last_row(table, first, last),
        }
    }
}

impl Rows for Txn<'_> {
    fn get_row(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(table, key)
    }

    fn last_row(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Bytes>, KvError> {
        Ok(self.last_at_or_before(table, first, last)?.map(|(_, row)| row))
    }
}

/// An inconsistency that belongs to no vnode.
pub(crate) fn index_damaged(what: &str) -> VolumeError {
    VolumeError::Index(KvError::Corrupt(what.to_owned()))
}

pub(crate) fn damaged(vnode: VnodeId, what: &str) -> VolumeError {
    VolumeError::Damaged { vnode, what: what.to_owned() }
}
