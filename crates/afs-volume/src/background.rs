//! What the store does when nobody waits for it: discarding dead chunks, taking down contents, parts of them and groups, compacting.

use std::sync::PoisonError;

use afs_drive::ChunkRef;
use bytes::Bytes;

use crate::compact;
use crate::error::VolumeError;
use crate::ids::GroupId;
use crate::key::{self, CHUNKS, DEAD, WORK};
use crate::rows::index_damaged;
use crate::store::{Store, VolumeStore};

impl VolumeStore {
    /// Works in the background for as long as the future is polled: spawn it once. It waits while there is nothing to do.
    /// An error is logged, and the work tried again when the next arrives.
    pub async fn run_background(self) {
        loop {
            match self.background_step().await {
                Ok(true) => {}
                Ok(false) => self.store.work.wait().await,
                Err(error) => {
                    tracing::warn!(%error, "background work of the volume store failed");
                    self.store.work.wait().await;
                }
            }
        }
    }

    /// Does one bounded piece of background work; false when there is none that can be done now.
    pub async fn background_step(&self) -> Result<bool, VolumeError> {
        let mut worked = false;
        if let Some((volume, vnode, slot)) = self.store.compactions.take() {
            worked = true;
            if let Some(volume) = self.volume(volume) {
                compact::compact(&self.store, &volume, vnode, slot).await?;
            }
        }
        worked |= self.take_down_content().await?;
        worked |= self.work_off_cuts().await?;
        worked |= self.take_down_groups().await?;
        worked |= self.discard_dead().await?;
        Ok(worked)
    }

    /// Discards chunks freed by commits that no reader looks behind any longer.
    async fn discard_dead(&self) -> Result<bool, VolumeError> {
        let dead = self.store.discardable()?;
        let Some((last, _)) = dead.last().cloned() else { return Ok(false) };
        self.store.drive.discard(dead.iter().map(|(_, chunk)| *chunk).collect()).await?;
        self.store
            .kv
            .update(move |txn| {
                for (key, chunk) in dead {
                    txn.delete(DEAD, &key);
                    txn.delete(CHUNKS, &chunk.id.to_bytes());
                }
                Ok::<_, VolumeError>(())
            })
            .await?;
        *self.store.discarded.lock().unwrap_or_else(PoisonError::into_inner) = last.to_vec();
        Ok(true)
    }
}

impl Store {
    /// Dead chunks that may be discarded, with their rows' keys.
    fn discardable(&self) -> Result<Vec<(Bytes, ChunkRef)>, VolumeError> {
        // First the snapshots, then the leases: who goes from one to the other in between is seen by the second look.
        let horizon = self.kv.oldest_snapshot();
        let horizon = self.leases.oldest().map_or(horizon, |lease| lease.min(horizon));
        let from = self.discarded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = self.kv.snapshot();
        let mut dead = Vec::new();
        for row in snapshot.range(DEAD, key::bounds(&from, None), false).take(CHUNKS_PER_STEP) {
            let (key, value) = row?;
            let freed = key.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
            if freed > horizon {
                break;
            }
            dead.extend(ChunkRef::from_bytes(&value).map(|chunk| (key, chunk)));
        }
        Ok(dead)
    }

    /// Groups with something to take down, beginning behind the one that was last.
    pub(crate) fn groups_with_work(&self) -> Result<Vec<GroupId>, VolumeError> {
        let last = *self.last_group.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.kv.snapshot();
        let mut groups = Vec::new();
        for row in snapshot.range(WORK, .., false) {
            let key = row?.0.as_ref().try_into().map(u32::from_be_bytes);
            groups.push(GroupId(key.map_err(|_| index_damaged("the number of a group cannot be decoded"))?));
        }
        let behind = groups.partition_point(|group| *group <= last);
        groups.rotate_left(behind);
        Ok(groups)
    }

    pub(crate) fn had_its_turn(&self, group: GroupId) {
        *self.last_group.lock().unwrap_or_else(PoisonError::into_inner) = group;
    }
}

const CHUNKS_PER_STEP: usize = 256;
