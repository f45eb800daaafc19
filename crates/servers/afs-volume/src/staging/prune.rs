//! Deletes vnodes that the new state does not have, and counts those that it has.

use afs_wire::ids::VnodeId;

use super::Restore;
use crate::error::VolumeError;
use crate::header::VnodeNumbers;
use crate::location::Location;
use crate::record::VnodeRecord;
use crate::tx::VolumeTx;
use crate::walk::vnodes_between;

/// Result of a walk over all vnodes.
#[derive(Default)]
pub(super) struct Count {
    vnodes: u64,
    blocks: u64,
    highest: [u32; 2],
    unique: u32,
}

impl Restore {
    /// Deletes vnodes that were neither written nor kept, and corrects the counters of the staged header.
    pub(super) async fn prune(&mut self) -> Result<(), VolumeError> {
        let mut count = Count::default();
        let mut after = VnodeId(0);
        loop {
            let records = self.staged_after(after)?;
            let Some(last) = records.last() else { break };
            after = last.vnode;
            let (stay, go) = records.into_iter().partition(|record| self.seen.contains(record.vnode));
            count.add(stay);
            self.delete(go).await?;
        }
        count.set(self);
        Ok(())
    }

    pub(super) fn staged_after(&self, after: VnodeId) -> Result<Vec<VnodeRecord>, VolumeError> {
        let snapshot = self.store().kv.snapshot();
        let all = (after, VnodeId(u32::MAX));
        vnodes_between(&snapshot, Location::of(&self.staged), all, VNODES_PER_STEP, |_| true)
    }

    async fn delete(&mut self, records: Vec<VnodeRecord>) -> Result<(), VolumeError> {
        if records.is_empty() {
            return Ok(());
        }
        self.write(move |tx: &mut VolumeTx<'_, '_>| {
            records.iter().try_for_each(|record| tx.delete_image(record))
        })
        .await
    }
}

impl Count {
    fn add(&mut self, records: Vec<VnodeRecord>) {
        for record in records {
            self.vnodes += 1;
            self.blocks += record.blocks();
            self.unique = self.unique.max(record.unique.0);
            let highest = &mut self.highest[usize::from(record.is_directory())];
            *highest = (*highest).max(record.vnode.0);
        }
    }

    fn set(&self, restore: &mut Restore) {
        let header = &mut restore.staged;
        (header.file_count, header.blocks_used) = (self.vnodes, self.blocks);
        let next = |numbers: &mut VnodeNumbers, highest: u32, first: u32| {
            // Numbers in the list of freed ones stay below.
            let next = first.max(highest + 2);
            numbers.next = if numbers.freed == 0 { next } else { numbers.next.max(next) };
        };
        next(&mut header.files, self.highest[0], 2);
        next(&mut header.directories, self.highest[1], 3);
        // A uniquifier is never given out twice.
        header.next_unique = header.next_unique.max(self.unique.saturating_add(1));
    }
}

const VNODES_PER_STEP: usize = 256;
