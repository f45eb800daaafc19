//! One bounded step of a scrub.

use std::sync::Arc;

use afs_kv::Snapshot;
use afs_wire::dir::{self, Blob, PAGE_LEN};
use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};

use super::{BadData, BadPart, Scrub, ScrubReport};
use crate::error::VolumeError;
use crate::extent::{SLOT_LEN, Slot, Source};
use crate::group::epochs;
use crate::ids::{Epoch, SlotIndex};
use crate::key::{self, SLOTS};
use crate::located::LocatedChunk;
use crate::location::Location;
use crate::record::VnodeRecord;
use crate::rows::Rows;
use crate::store::VolumeStore;
use crate::volume::Volume;
use crate::walk::{VnodeRow, vnode_rows_between};

/// The reads of a step, determined in one snapshot.
#[derive(Default)]
struct Plan {
    bad: Vec<BadData>,
    chunks: Vec<ChunkRead>,
    bytes: u64,
    vnodes: u64,
}

/// A chunk to read, and the position of its bytes in a file.
struct ChunkRead {
    bad: BadData,
    at: LocatedChunk,
}

/// The state that is examined.
struct ScrubbedState<'s> {
    snapshot: &'s Snapshot,
    volume: VolumeId,
    location: Location,
    /// Rows written in or before this epoch are examined with the volume that references it.
    older: Option<Epoch>,
}

impl VolumeStore {
    /// Checks some of the store: whether records can be decoded, directories are consistent, and chunks have
    /// their checksums. Reads about `bytes` of chunks (at least one file's mebibyte) and 256 records, and
    /// keeps the position in `scrub`. Data shared by several volumes is read once. Damage is in the report;
    /// an error concerns the scrub itself.
    pub async fn scrub_step(&self, scrub: &mut Scrub, bytes: u64) -> Result<ScrubReport, VolumeError> {
        let Some(volume) = self.volumes().into_iter().find(|volume| volume.id() >= scrub.volume) else {
            *scrub = Scrub::default();
            return Ok(ScrubReport { complete: true, ..ScrubReport::default() });
        };
        if scrub.volume != volume.id() {
            *scrub = Scrub { volume: volume.id(), ..Scrub::default() };
        }
        let (plan, _lease) = {
            let snapshot = self.store.kv.snapshot();
            // Protects the chunks until they are read.
            let lease = self.store.leases.take(snapshot.sequence(), self.store.work.clone());
            (self.plan(&snapshot, &volume, scrub, bytes)?, lease)
        };
        self.read(plan).await
    }

    fn plan(
        &self,
        snapshot: &Snapshot,
        volume: &Arc<Volume>,
        scrub: &mut Scrub,
        bytes: u64,
    ) -> Result<Plan, VolumeError> {
        let mut plan = Plan::default();
        let location = match volume.location_at(snapshot) {
            // Deleted, or moved just now: the next step tries again.
            Err(VolumeError::NoVolume | VolumeError::Busy) => return Ok(plan),
            location => location?,
        };
        let older = epochs::newest_held_before(snapshot, location)?;
        let state = ScrubbedState { snapshot, volume: volume.id(), location, older };
        let all = (scrub.after, VnodeId(u32::MAX));
        let rows = vnode_rows_between(snapshot, location, all, VNODES_PER_STEP, |_| true)?;
        for row in &rows {
            let from = scrub.within.take().filter(|(vnode, _)| *vnode == row.vnode);
            let from = from.map_or(SlotIndex(0), |(_, slot)| slot);
            if let Some(next) = state.vnode(row, from, bytes, &mut plan)? {
                scrub.within = Some((row.vnode, next));
                return Ok(plan);
            }
            scrub.after = row.vnode;
        }
        if rows.len() < VNODES_PER_STEP {
            *scrub = Scrub { volume: VolumeId(volume.id().0.saturating_add(1)), ..Scrub::default() };
        }
        Ok(plan)
    }

    async fn read(&self, plan: Plan) -> Result<ScrubReport, VolumeError> {
        let mut report = ScrubReport { vnodes: plan.vnodes, bad: plan.bad, ..ScrubReport::default() };
        for ChunkRead { mut bad, at } in plan.chunks {
            report.chunks += 1;
            report.bytes += u64::from(at.chunk.len);
            if let Err(error) = self.read_chunk(at).await {
                if let BadPart::Chunk { what, .. } = &mut bad.part {
                    *what = error.to_string();
                }
                report.bad.push(bad);
            }
        }
        Ok(report)
    }

    async fn read_chunk(&self, at: LocatedChunk) -> Result<(), VolumeError> {
        self.store.drives.read(at, 0..at.chunk.len)?.await?;
        Ok(())
    }
}

impl ScrubbedState<'_> {
    /// Checks one vnode; returns the slot to continue with if the step is full.
    fn vnode(
        &self,
        row: &VnodeRow,
        from: SlotIndex,
        bytes: u64,
        plan: &mut Plan,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        plan.vnodes += 1;
        let Ok(record) = VnodeRecord::decode(row.vnode, row.row.clone()) else {
            plan.bad.push(BadData {
                volume: self.volume,
                vnode: row.vnode,
                unique: Uniquifier(0),
                data_version: DataVersion(0),
                part: BadPart::Record,
            });
            return Ok(None);
        };
        if !record.is_directory() {
            return self.slots(&record, from, bytes, plan);
        }
        if self.is_own(row.written)
            && let Err(what) = self.directory(&record)?
        {
            plan.bad.push(self.bad(&record, BadPart::Directory(what)));
        }
        Ok(None)
    }

    fn is_own(&self, written: Epoch) -> bool {
        self.older.is_none_or(|older| written > older)
    }

    fn bad(&self, record: &VnodeRecord, part: BadPart) -> BadData {
        BadData {
            volume: self.volume,
            vnode: record.vnode,
            unique: record.unique,
            data_version: record.data_version,
            part,
        }
    }

    fn directory(&self, record: &VnodeRecord) -> Result<Result<(), String>, VolumeError> {
        let mut bytes = Vec::new();
        for page in 0..record.length.div_ceil(PAGE_LEN as u64).min(dir::PAGES_MAX.into()) {
            let page = SlotIndex(page as u32);
            match self.snapshot.page_row(self.location.group, record.content, page, self.location.epoch)? {
                Some(row) => bytes.extend_from_slice(&row),
                None => return Ok(Err(format!("page {} is missing", page.0))),
            }
        }
        let Ok(mut blob) = Blob::from_bytes(bytes) else { return Ok(Err("its pages are not whole".into())) };
        Ok(match dir::check(&mut blob) {
            Ok(summary) if summary.this == (record.vnode, record.unique) => Ok(()),
            Ok(_) => Err("its entry \".\" is another directory".into()),
            Err(error) => Err(error.to_string()),
        })
    }

    fn slots(
        &self,
        record: &VnodeRecord,
        from: SlotIndex,
        bytes: u64,
        plan: &mut Plan,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        let prefix = key::content_prefix(self.location.group, record.content);
        let mut first = prefix.to_vec();
        first.extend_from_slice(&from.0.to_be_bytes());
        let end = key::after_prefix(&prefix);
        let mut newest: Option<(SlotIndex, Epoch, bytes::Bytes)> = None;
        for row in self.snapshot.range(SLOTS, key::bounds(&first, end.as_deref()), false) {
            let (key, row) = row?;
            let index = key.get(12..16).and_then(|index| index.try_into().ok()).map(u32::from_be_bytes);
            let (Some(index), Some(written)) = (index.map(SlotIndex), key::epoch_of_row(&key)) else {
                continue;
            };
            if written > self.location.epoch {
                continue;
            }
            if newest.as_ref().is_some_and(|(other, ..)| *other != index) {
                self.slot(record, newest.take(), plan);
                if plan.bytes >= bytes {
                    return Ok(Some(index));
                }
            }
            newest = Some((index, written, row));
        }
        self.slot(record, newest, plan);
        Ok(None)
    }

    fn slot(&self, record: &VnodeRecord, newest: Option<(SlotIndex, Epoch, bytes::Bytes)>, plan: &mut Plan) {
        let Some((index, written, row)) = newest else { return };
        if row.is_empty() || !self.is_own(written) {
            return;
        }
        let start = u64::from(index.0) * SLOT_LEN;
        let Ok(slot) = Slot::decode(row) else {
            return plan.bad.push(self.bad(record, BadPart::Slot { position: start }));
        };
        if record.cuts.hide(index, slot.version) {
            return;
        }
        let mut last = None;
        for extent in &slot.extents {
            let Source::Chunk { chunk, len, .. } = &extent.source else { continue };
            // A chunk that was overwritten in its middle appears in two parts.
            if last.replace(chunk.at) == Some(chunk.at) {
                continue;
            }
            plan.bytes += u64::from(chunk.at.chunk.len);
            let (position, len) = (start + u64::from(extent.start), u64::from(*len));
            let part = BadPart::Chunk { position, len, what: String::new(), chunk: chunk.at };
            plan.chunks.push(ChunkRead { bad: self.bad(record, part), at: chunk.at });
        }
    }
}

const VNODES_PER_STEP: usize = 256;
