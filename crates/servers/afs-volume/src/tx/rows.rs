//! Writes of rows in the present epoch, beside those that clones reference.

use super::VolumeTx;
use crate::chunks;
use crate::error::VolumeError;
use crate::extent::OwnedChunk;
use crate::group::rows::forget_row;
use crate::ids::Epoch;
use crate::key::{self, CHANGES, DEADROWS, RowId};
use crate::located::LocatedChunk;
use crate::rows::index_damaged;

impl VolumeTx<'_, '_> {
    /// Writes or deletes a row in the volume's present epoch.
    ///
    /// In a group that was never cloned this affects the row alone. Otherwise the row that it supersedes, if
    /// a clone references it, goes to the deadlist of the newest one, and the change is listed.
    pub(crate) fn put_row(&mut self, id: RowId, value: Option<Vec<u8>>) -> Result<(), VolumeError> {
        let epoch = self.header.epoch;
        if epoch == Epoch::FIRST {
            match value {
                Some(value) => self.txn.put(id.table(), &id.key(epoch), value),
                None => self.txn.delete(id.table(), &id.key(epoch)),
            }
            return Ok(());
        }
        let newest = self.newest_written(id, epoch)?;
        let older = newest.filter(|newest| *newest != epoch);
        if let Some(older) = older {
            self.retire(id, older);
        }
        // A clone may have an older row, which an empty one (tombstone) hides.
        let value = match value {
            None if self.newest_written(id, Epoch(epoch.0 - 1))?.is_some() => Some(Vec::new()),
            value => value,
        };
        match value {
            Some(value) => {
                self.txn.put(id.table(), &id.key(epoch), value);
                if newest != Some(epoch) && self.header.newest_clone.is_some() {
                    self.txn.put(CHANGES, &key::change(id, epoch), Vec::new());
                }
            }
            None if newest == Some(epoch) => forget_row(self.txn, id, epoch),
            None => {}
        }
        Ok(())
    }

    /// Releases a row whose content is no longer referenced: unlike [`VolumeTx::put_row`] it leaves no
    /// tombstone.
    pub(super) fn drop_row(&mut self, id: RowId) -> Result<(), VolumeError> {
        let epoch = self.header.epoch;
        match epoch {
            Epoch::FIRST => self.txn.delete(id.table(), &id.key(epoch)),
            _ => {
                if let Some(newest) = self.newest_written(id, epoch)? {
                    self.retire(id, newest);
                }
            }
        }
        Ok(())
    }

    /// Removes a row from the present state: a clone keeps it, or it is deleted.
    fn retire(&mut self, id: RowId, written: Epoch) {
        match self.header.newest_clone.filter(|clone| written <= *clone) {
            Some(clone) => self.txn.put(DEADROWS, &key::dead_row(clone, id, written), Vec::new()),
            None => forget_row(self.txn, id, written),
        }
    }

    /// The epoch of the newest row at or before an epoch.
    fn newest_written(&self, id: RowId, epoch: Epoch) -> Result<Option<Epoch>, VolumeError> {
        let row = self.txn.last_at_or_before(id.table(), &id.key(Epoch(0)), &id.key(epoch))?;
        let written =
            |key: &[u8]| key::epoch_of_row(key).ok_or_else(|| index_damaged("a row's key is too short"));
        row.map(|(key, _)| written(&key)).transpose()
    }

    /// Records that a chunk belongs to this volume.
    pub(super) fn adopt_chunk(&mut self, at: LocatedChunk) -> OwnedChunk {
        let owned = OwnedChunk { at, birth: self.header.epoch };
        chunks::adopt(self.txn, self.header.group, owned);
        owned
    }

    /// Releases a chunk that no row of the present epoch references any longer.
    pub(super) fn drop_chunk(&mut self, owned: OwnedChunk) -> Result<(), VolumeError> {
        self.work = true;
        match self.header.epoch {
            Epoch::FIRST => {
                chunks::free(self.txn, owned.at);
                Ok(())
            }
            _ => chunks::release(self.txn, self.header.group, self.header.newest_clone, owned),
        }
    }
}
