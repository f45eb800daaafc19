//! One bounded step of a scrub.

use std::collections::BTreeSet;
use std::sync::Arc;

use afs_drive::DriveError;
use afs_env::EnvExt;
use afs_kv::Snapshot;
use afs_wire::dir::{self, Blob, PAGE_LEN};
use afs_wire::ids::{DataVersion, Uniquifier};

use super::{BadData, BadPart, Scrub, ScrubReport};
use crate::data_walk::{SlotRow, WalkedState};
use crate::error::VolumeError;
use crate::extent::{SLOT_LEN, Slot, Source};
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::Rows;
use crate::store::VolumeStore;
use crate::volume::Volume;
use crate::walk::VnodeRow;

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

impl VolumeStore {
    /// Compares every page of the index with its checksum, as at the start: what the scrub reads of it may be in memory.
    ///
    /// # Errors
    /// What is damaged first.
    pub async fn verify_index(&self) -> Result<(), VolumeError> {
        let kv = self.store.kv.clone();
        match self.store.env.run_blocking(move || kv.verify_index()).await {
            Ok(verified) => Ok(verified?),
            // The environment ends.
            Err(_) => Ok(()),
        }
    }

    /// Checks some of the store: whether records can be decoded, directories are consistent, and chunks have
    /// their checksums. Reads about `bytes` of chunks (at least one file's mebibyte) and 256 records, and
    /// keeps the position in `scrub`. Data shared by several volumes is read once. Damage is in the report;
    /// an error concerns the scrub itself.
    pub async fn scrub_step(&self, scrub: &mut Scrub, bytes: u64) -> Result<ScrubReport, VolumeError> {
        let Some(volume) = scrub.walk.next_volume(self) else {
            return Ok(ScrubReport { complete: true, ..ScrubReport::default() });
        };
        let (plan, _lease) = {
            let snapshot = self.store.kv.snapshot();
            // Protects the chunks until they are read.
            let lease = self.store.leases.take(snapshot.sequence(), self.store.work.clone());
            (plan(&snapshot, &volume, scrub, bytes)?, lease)
        };
        self.read(plan).await
    }

    async fn read(&self, plan: Plan) -> Result<ScrubReport, VolumeError> {
        let mut report = ScrubReport { vnodes: plan.vnodes, bad: plan.bad, ..ScrubReport::default() };
        // Each chunk of a drive that is away would wait for it again.
        let mut away = BTreeSet::new();
        for ChunkRead { mut bad, at } in plan.chunks {
            if away.contains(&at.drive) {
                report.unread += 1;
                continue;
            }
            match self.read_chunk(at).await {
                Err(VolumeError::Drive(DriveError::Away { .. })) => {
                    away.insert(at.drive);
                    report.unread += 1;
                    continue;
                }
                Err(error) => {
                    if let BadPart::Chunk { what, .. } = &mut bad.part {
                        *what = error.to_string();
                    }
                    report.bad.push(bad);
                }
                Ok(()) => {}
            }
            report.chunks += 1;
            report.bytes += u64::from(at.chunk.len);
        }
        Ok(report)
    }

    async fn read_chunk(&self, at: LocatedChunk) -> Result<(), VolumeError> {
        self.store.drives.read(at, 0..at.chunk.len)?.await?;
        Ok(())
    }
}

fn plan(
    snapshot: &Snapshot,
    volume: &Arc<Volume>,
    scrub: &mut Scrub,
    bytes: u64,
) -> Result<Plan, VolumeError> {
    let mut plan = Plan::default();
    scrub.walk.step(snapshot, volume, |state, row, from| plan.vnode(state, row, from, bytes))?;
    Ok(plan)
}

impl Plan {
    /// Checks one vnode; returns the slot to continue with if the step is full.
    fn vnode(
        &mut self,
        state: &WalkedState<'_>,
        row: &VnodeRow,
        from: SlotIndex,
        bytes: u64,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        self.vnodes += 1;
        let Ok(record) = VnodeRecord::decode(row.vnode, row.row.clone()) else {
            self.bad.push(BadData {
                volume: state.volume,
                vnode: row.vnode,
                unique: Uniquifier(0),
                data_version: DataVersion(0),
                part: BadPart::Record,
            });
            return Ok(None);
        };
        if !record.is_directory() {
            return self.slots(state, &record, from, bytes);
        }
        if state.is_own(row.written)
            && let Err(what) = directory(state, &record)?
        {
            self.bad.push(bad(state, &record, BadPart::Directory(what)));
        }
        Ok(None)
    }

    fn slots(
        &mut self,
        state: &WalkedState<'_>,
        record: &VnodeRecord,
        from: SlotIndex,
        bytes: u64,
    ) -> Result<Option<SlotIndex>, VolumeError> {
        for (number, row) in state.slots(record.content, from).enumerate() {
            let row = row?;
            // A step has one slot at least.
            if number > 0 && self.bytes >= bytes {
                return Ok(Some(row.index));
            }
            self.slot(state, record, row);
        }
        Ok(None)
    }

    fn slot(&mut self, state: &WalkedState<'_>, record: &VnodeRecord, row: SlotRow) {
        if row.row.is_empty() || !state.is_own(row.written) {
            return;
        }
        let start = u64::from(row.index.0) * SLOT_LEN;
        let Ok(slot) = Slot::decode(row.row) else {
            return self.bad.push(bad(state, record, BadPart::Slot { position: start }));
        };
        if record.cuts.hide(row.index, slot.version) {
            return;
        }
        let mut last = None;
        for extent in &slot.extents {
            let Source::Chunk { chunk, len, .. } = &extent.source else { continue };
            // A chunk that was overwritten in its middle appears in two parts.
            if last.replace(chunk.at) == Some(chunk.at) {
                continue;
            }
            self.bytes += u64::from(chunk.at.chunk.len);
            let (position, len) = (start + u64::from(extent.start), u64::from(*len));
            let part = BadPart::Chunk { position, len, what: String::new(), chunk: chunk.at };
            self.chunks.push(ChunkRead { bad: bad(state, record, part), at: chunk.at });
        }
    }
}

fn bad(state: &WalkedState<'_>, record: &VnodeRecord, part: BadPart) -> BadData {
    BadData {
        volume: state.volume,
        vnode: record.vnode,
        unique: record.unique,
        data_version: record.data_version,
        part,
    }
}

/// Checks the pages of a directory.
fn directory(state: &WalkedState<'_>, record: &VnodeRecord) -> Result<Result<(), String>, VolumeError> {
    let location = state.location;
    let mut bytes = Vec::new();
    for page in 0..record.length.div_ceil(PAGE_LEN as u64).min(dir::PAGES_MAX.into()) {
        let page = SlotIndex(page as u32);
        match state.snapshot.page_row(location.group, record.content, page, location.epoch)? {
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
