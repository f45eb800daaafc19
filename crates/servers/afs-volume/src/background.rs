//! Background work of the store: discards dead chunks, removes deleted contents, cuts and groups, compacts
//! slots.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_env::EnvExt;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::ids::GroupId;
use crate::key::{self, DEAD, WORK};
use crate::located::LocatedChunk;
use crate::rows::index_damaged;
use crate::store::{Store, VolumeStore};
use crate::{compact, copies};

impl VolumeStore {
    /// Works in the background for as long as the future is polled: spawn it once. It waits while there is
    /// nothing to do. An error is logged, and the work retried when the next arrives.
    pub async fn run_background(self) {
        loop {
            match self.background_step().await {
                Ok(true) => {}
                Ok(false) => self.store.work.notified().await,
                Err(error) => {
                    tracing::warn!(%error, "background work of the volume store failed");
                    self.store.work.notified().await;
                }
            }
        }
    }

    /// Does one bounded step of background work; false when there is none that can be done now.
    pub async fn background_step(&self) -> Result<bool, VolumeError> {
        let mut worked = false;
        if let Some((volume, vnode, slot)) = self.store.compactions.take() {
            worked = true;
            if let Some(volume) = self.volume(volume) {
                compact::compact(&self.store, &volume, vnode, slot).await?;
            }
        }
        worked |= self.reclaim_content().await?;
        worked |= self.complete_cuts().await?;
        worked |= self.reclaim_groups().await?;
        worked |= self.discard_dead().await?;
        Ok(worked)
    }

    /// Discards chunks freed by commits that no reader's snapshot precedes any longer.
    async fn discard_dead(&self) -> Result<bool, VolumeError> {
        let dead = self.store.discardable()?;
        let Some((last, _)) = dead.last().cloned() else { return Ok(false) };
        // Behind the last one, which stays in the queue if its drive is away.
        *self.store.discarded.lock() = [&last[..], &[0]].concat();
        let gone = self.store.discard(dead).await;
        if !gone.is_empty() {
            self.forget_dead(gone).await?;
        }
        Ok(true)
    }

    /// Removes the rows of chunks that were discarded.
    async fn forget_dead(&self, gone: Vec<(Bytes, LocatedChunk)>) -> Result<(), VolumeError> {
        let forgotten = self.store.kv.update(move |txn| {
            for (key, at) in gone {
                txn.delete(DEAD, &key);
                copies::forget(txn, at)?;
            }
            Ok::<_, VolumeError>(())
        });
        // The index has failed: what is gone is discarded again, which does no harm.
        forgotten.await.inspect_err(|_| self.store.discarded.lock().clear())?;
        Ok(())
    }
}

impl Store {
    /// Discards chunks on their drives, one drive after the other, and returns those that are gone. Those of a drive that
    /// is away wait, and no others for them.
    async fn discard(self: &Arc<Self>, dead: Vec<(Bytes, LocatedChunk)>) -> Vec<(Bytes, LocatedChunk)> {
        let mut gone = Vec::new();
        for of_one in dead.chunk_by(|(_, one), (_, next)| one.drive == next.drive) {
            let Some((_, first)) = of_one.first() else { continue };
            let chunks = of_one.iter().map(|(_, at)| at.chunk).collect();
            let Ok(drive) = self.drives.get(first.drive) else { continue };
            match drive.discard(chunks).await {
                Ok(()) => gone.extend_from_slice(of_one),
                Err(error) => {
                    tracing::warn!(drive = %first.drive, %error, "chunks could not be discarded; they wait");
                    self.retry_later();
                }
            }
        }
        gone
    }

    /// Has the queue of dead chunks gone through again after a while.
    fn retry_later(self: &Arc<Self>) {
        if !self.retry.swap(true, Ordering::Relaxed) {
            let (store, timer) = (self.clone(), self.env.sleep(RETRY));
            self.env.spawn(Box::pin(async move {
                timer.await;
                store.retry.store(false, Ordering::Relaxed);
                store.retry_discards();
            }));
        }
    }

    /// Has the queue of dead chunks gone through from its beginning.
    pub(crate) fn retry_discards(&self) {
        self.discarded.lock().clear();
        self.work.notify_one();
    }

    /// Dead chunks that may be discarded, with the keys of their rows.
    fn discardable(&self) -> Result<Vec<(Bytes, LocatedChunk)>, VolumeError> {
        // Snapshots first, then leases: a reader that exchanges one for the other in between is seen by the
        // second look.
        let horizon = self.kv.oldest_snapshot();
        let horizon = self.leases.oldest().map_or(horizon, |lease| lease.min(horizon));
        let from = self.discarded.lock().clone();
        let snapshot = self.kv.snapshot();
        let mut dead = Vec::new();
        for row in snapshot.range(DEAD, key::bounds(&from, None), false).take(CHUNKS_PER_STEP) {
            let (key, value) = row?;
            let freed = key.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
            if freed > horizon {
                break;
            }
            let at = LocatedChunk::decode_row(value).ok();
            // A chunk on a drive that is absent waits.
            dead.extend(at.filter(|at| self.drives.get(at.drive).is_ok()).map(|at| (key, at)));
        }
        Ok(dead)
    }

    /// Groups with work, starting after the last one worked on.
    pub(crate) fn groups_with_work(&self) -> Result<Vec<GroupId>, VolumeError> {
        let last = *self.last_group.lock();
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
        *self.last_group.lock() = group;
    }
}

const CHUNKS_PER_STEP: usize = 256;
/// Pause before chunks are discarded again that a drive did not discard.
const RETRY: Duration = Duration::from_secs(60);
