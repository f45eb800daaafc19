//! What the store does when nobody waits for it: discarding dead chunks, taking down contents and volumes, compacting.

use std::sync::{Arc, PoisonError};

use afs_drive::ChunkRef;
use afs_kv::{KvError, Snapshot, Txn};
use afs_wire::ids::VolumeId;
use bytes::Bytes;

use crate::compact;
use crate::error::VolumeError;
use crate::extent::Slot;
use crate::ids::Epoch;
use crate::key::{self, CHUNKS, DEAD, DEADLISTS, DOOMED, FREE, HEADERS, PAGES, SLOTS, VNODES};
use crate::store::{Store, VolumeStore, decode_header};

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
        worked |= self.take_down_volume().await?;
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

    /// Takes down some rows of a doomed content.
    async fn take_down_content(&self) -> Result<bool, VolumeError> {
        if self.store.kv.snapshot().range(DOOMED, .., false).next().transpose()?.is_none() {
            return Ok(false);
        }
        self.store
            .kv
            .update(|txn| {
                let Some((prefix, clone)) = txn.range(DOOMED, .., false).next().transpose()? else {
                    return Ok(());
                };
                let clone = clone.first_chunk().map(|bytes| Epoch(u32::from_be_bytes(*bytes)));
                let clone = clone.filter(|clone| clone.0 != 0);
                if take_down(txn, &prefix, clone, &[SLOTS, PAGES])? {
                    txn.delete(DOOMED, &prefix);
                }
                Ok::<_, VolumeError>(())
            })
            .await?;
        Ok(true)
    }

    /// Takes down some rows of a volume that was deleted.
    async fn take_down_volume(&self) -> Result<bool, VolumeError> {
        let Some(id) = self.store.doomed_volume()? else { return Ok(false) };
        self.store
            .kv
            .update(move |txn| {
                let group = key::volume(id);
                if take_down(txn, &group, None, &[SLOTS, PAGES, VNODES, FREE, DOOMED])? {
                    txn.delete(HEADERS, &group);
                }
                Ok::<_, VolumeError>(())
            })
            .await?;
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
        for row in snapshot.range(DEAD, key::bounds(&from, None), false).take(ROWS_PER_STEP) {
            let (key, value) = row?;
            let freed = key.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
            if freed > horizon {
                break;
            }
            dead.extend(ChunkRef::from_bytes(&value).map(|chunk| (key, chunk)));
        }
        Ok(dead)
    }

    fn doomed_volume(self: &Arc<Self>) -> Result<Option<VolumeId>, VolumeError> {
        let snapshot: Snapshot = self.kv.snapshot();
        for row in snapshot.range(HEADERS, .., false) {
            let header = decode_header(row?.1)?;
            if header.doomed {
                return Ok(Some(header.id));
            }
        }
        Ok(None)
    }
}

/// Deletes up to a step's worth of rows whose keys begin with `prefix`, and their chunks; true when none is left. Rows and chunks
/// that the clone of this epoch may have stay with it.
fn take_down(
    txn: &mut Txn<'_>,
    prefix: &[u8],
    clone: Option<Epoch>,
    tables: &[&str],
) -> Result<bool, KvError> {
    let end = key::after_prefix(prefix);
    let mut budget = ROWS_PER_STEP;
    for table in tables {
        let rows = txn.range(table, key::bounds(prefix, end.as_deref()), false);
        let rows = rows.filter(|row| row.as_ref().map_or(true, |(key, _)| newer_than(key, clone)));
        let rows = rows.take(budget).collect::<Result<Vec<_>, _>>()?;
        for (key, value) in &rows {
            if *table == SLOTS {
                drop_chunks(txn, prefix, value, clone)?;
            }
            txn.delete(table, key);
        }
        budget -= rows.len();
        if budget == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn newer_than(key: &[u8], clone: Option<Epoch>) -> bool {
    let epoch = key.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    clone.is_none_or(|clone| epoch > clone.0)
}

fn drop_chunks(txn: &mut Txn<'_>, prefix: &[u8], row: &Bytes, clone: Option<Epoch>) -> Result<(), KvError> {
    if row.is_empty() {
        return Ok(());
    }
    let slot = Slot::decode(row.clone()).map_err(|_| KvError::Corrupt("a slot cannot be decoded".into()))?;
    let group = prefix.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    for owned in slot.chunks() {
        let (table, key) = match clone.filter(|clone| owned.birth <= *clone) {
            Some(clone) => (DEADLISTS, key::deadlist(crate::ids::GroupId(group), clone, owned.chunk.id)),
            None => (DEAD, key::dead(txn.sequence(), owned.chunk.id)),
        };
        txn.put(table, &key, owned.chunk.to_bytes().to_vec());
    }
    Ok(())
}

const ROWS_PER_STEP: usize = 256;
