//! Transactions over the headers of a group, after leftovers of an abandoned restore are deleted.

use std::sync::Arc;

use afs_wire::ids::{UnixSeconds, VolumeId};

use super::{Members, epochs};
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::ids::GroupId;
use crate::store::{Store, VolumeStore};

impl VolumeStore {
    /// Changes headers in one transaction.
    pub(crate) async fn change_members<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Members<'_, '_>, UnixSeconds) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let store = self.store.clone();
        let changed = self.store.kv.update(move |txn| {
            let mut members = Members::new(txn, &store);
            let answer = change(&mut members, store.now())?;
            members.finish();
            Ok(answer)
        });
        Ok(changed.await?)
    }

    /// Deletes what an abandoned restore left above the newest state of a read-write volume, in bounded
    /// steps, before the volume continues in another epoch.
    pub(crate) async fn delete_leftovers(&self, id: VolumeId) -> Result<(), VolumeError> {
        loop {
            let volume = self.volume(id).ok_or(VolumeError::NoVolume)?;
            let header = volume.header();
            let newest = epochs::newest(&self.store.kv.snapshot(), header.group)?;
            if !header.is_writable() || newest.is_none_or(|newest| newest <= header.epoch) {
                return Ok(());
            }
            self.store.delete_leftovers_step(header.group).await?;
        }
    }
}

impl Store {
    /// One step of deleting the newest epoch of a group.
    pub(crate) async fn delete_leftovers_step(self: &Arc<Self>, group: GroupId) -> Result<(), VolumeError> {
        if self.is_staging(group) || !self.reclaim_group(group).await? {
            return Err(VolumeError::Busy);
        }
        Ok(())
    }
}

impl Members<'_, '_> {
    /// Refuses changes to a volume that is being restored.
    pub(crate) fn check_not_staged(&self, header: &VolumeHeader) -> Result<(), VolumeError> {
        if self.store().is_restoring(header.id) { Err(VolumeError::Busy) } else { Ok(()) }
    }

    fn store(&self) -> &Arc<Store> {
        self.store
    }
}
