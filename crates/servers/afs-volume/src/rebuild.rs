//! Rebuild: makes the copies that chunks should have and do not, in the background.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use afs_drive::{ChunkRef, Drive, DriveId};
use afs_env::sync::Notify;
use afs_kv::{Snapshot, Txn};
use afs_wire::vol::{DriveCount, Placement};

use crate::chunk_rows;
use crate::chunks;
use crate::copies;
use crate::error::VolumeError;
use crate::ids::GroupId;
use crate::key::DRIVE_CHUNKS;
use crate::located::{COPIES_MAX, LocatedChunk};
use crate::rows::index_damaged;
use crate::store::{Store, VolumeStore};
use crate::targets::round;

/// A pass over all chunks. It has no state on disk: one that is begun anew passes over what has its copies.
#[derive(Clone, Debug, Default)]
pub struct Rebuild {
    /// Key of the last chunk that was looked at.
    after: Option<Vec<u8>>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Whether the last step of a pass is done; the next begins again.
    pub complete: bool,
    /// Rows of chunks that were read.
    pub rows: u64,
    /// Copies that were made.
    pub copies: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Copies that are still missing, because a drive is away or full, the chunk cannot be read, or it changed meanwhile.
    pub missing: u64,
}

/// A chunk without all of its copies.
struct Lacking {
    chunk: LocatedChunk,
    copies: Vec<LocatedChunk>,
    targets: Vec<DriveId>,
}

/// A copy that is no part of the store yet: discarded when dropped.
struct NewCopy {
    drive: Arc<dyn Drive>,
    at: LocatedChunk,
    kept: bool,
}

impl Drop for NewCopy {
    fn drop(&mut self) {
        if !self.kept {
            // The drive works on its own; a chunk that it cannot free is found by the next sweep.
            drop(self.drive.discard(vec![self.at.chunk]));
        }
    }
}

impl VolumeStore {
    /// Makes copies of about `bytes` of chunks, at least of one, so that each chunk is on as many of the drives for new data
    /// ([`VolumeStore::use_drives`]) as the placement of its volume says, or on all of them, and keeps the position in `rebuild`.
    /// Nothing to do if that is one drive. What clones share has the placement of their read-write volume.
    ///
    /// A chunk that format 2 wrote and nothing has moved since gets none.
    ///
    /// # Errors
    /// Errors of the index. What drives refuse is counted.
    pub async fn rebuild_step(&self, rebuild: &mut Rebuild, bytes: u64) -> Result<Rebuilt, VolumeError> {
        let wanted = self.drives_in_use();
        let mut report = Rebuilt::default();
        if wanted.len() < 2 {
            *rebuild = Rebuild::default();
            return Ok(Rebuilt { complete: true, ..report });
        }
        let mut after = rebuild.after.clone();
        let (lacking, _lease) = {
            let snapshot = self.store.kv.snapshot();
            // Protects the chunks until they are copied.
            let lease = self.store.leases.take(snapshot.sequence(), self.store.work.clone());
            let wanted = Wanted { list: wanted, placements: self.placements() };
            (plan(&snapshot, &wanted, &mut after, bytes, &mut report)?, lease)
        };
        let mut made = Vec::new();
        for one in lacking {
            let copies = self.store.copy(&one, &mut report).await;
            if !copies.is_empty() {
                made.push((one, copies));
            }
        }
        self.store.keep_copies(made, &mut report).await?;
        rebuild.after = after;
        Ok(report)
    }
}

/// The next chunks that lack copies; moves the position behind them.
fn plan(
    snapshot: &Snapshot,
    wanted: &Wanted,
    after: &mut Option<Vec<u8>>,
    bytes_max: u64,
    report: &mut Rebuilt,
) -> Result<Vec<Lacking>, VolumeError> {
    let from = after.take();
    let first = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let (mut found, mut bytes) = (Vec::new(), 0);
    for row in snapshot.range(DRIVE_CHUNKS, (first, Bound::Unbounded), false) {
        if bytes >= bytes_max && !found.is_empty() || report.rows >= ROWS_PER_STEP {
            return Ok(found);
        }
        let row = row?;
        *after = Some(row.0.to_vec());
        report.rows += 1;
        if chunks::is_live_row(&row.1)
            && let Some(one) = lacking(snapshot, wanted, row)?
        {
            bytes += u64::from(one.chunk.chunk.len) * one.targets.len() as u64;
            found.push(one);
        }
    }
    (*after, report.complete) = (None, true);
    Ok(found)
}

fn lacking(snapshot: &Snapshot, wanted: &Wanted, row: afs_kv::Row) -> Result<Option<Lacking>, VolumeError> {
    let group = row.1.first_chunk().map(|group| GroupId(u32::from_be_bytes(*group)));
    let group = group.ok_or_else(|| index_damaged("the row of a chunk is too short"))?;
    let drive = row.0.first_chunk().map(|drive| DriveId(u32::from_be_bytes(*drive)));
    let drive = drive.ok_or_else(|| index_damaged("the key of a chunk is too short"))?;
    let chunk = LocatedChunk { drive, chunk: chunk_rows::chunk_of_row(row)? };
    let copies = copies::of(snapshot, chunk)?;
    let has = |wanted: &DriveId| chunk.drive == *wanted || copies.iter().any(|copy| copy.drive == *wanted);
    let mut targets = wanted.missing(group, chunk.drive, has);
    targets.truncate(COPIES_MAX - 1 - copies.len());
    Ok((!targets.is_empty()).then_some(Lacking { chunk, copies, targets }))
}

/// Where chunks should be.
struct Wanted {
    /// The drives for new data.
    list: Vec<DriveId>,
    placements: BTreeMap<GroupId, Placement>,
}

impl Wanted {
    /// The drives that should have a copy of a chunk of a group and do not: the next ones of the list behind the chunk's own.
    fn missing(&self, group: GroupId, own: DriveId, has: impl Fn(&DriveId) -> bool) -> Vec<DriveId> {
        let copies = self.placements.get(&group).and_then(|placement| placement.copies);
        let count = match copies {
            None => self.list.len(),
            // No copy is wanted, wherever the chunk is.
            Some(DriveCount::ONE) => return Vec::new(),
            Some(count) => usize::from(count.get()),
        };
        let lacks = count.saturating_sub(self.list.iter().filter(|drive| has(drive)).count());
        let from = self.list.iter().position(|drive| *drive == own).unwrap_or(0);
        round(&self.list, from).copied().filter(|drive| !has(drive)).take(lacks).collect()
    }
}

impl VolumeStore {
    /// The placement of each group: that of its read-write volume, or of one of its clones if it has none.
    fn placements(&self) -> BTreeMap<GroupId, Placement> {
        let mut placements = BTreeMap::new();
        for header in self.volumes().iter().map(|volume| volume.header()) {
            if header.is_writable() {
                placements.insert(header.group, header.placement);
            } else {
                placements.entry(header.group).or_insert(header.placement);
            }
        }
        placements
    }

    /// Signals `wake` from now on when data were stored that lack copies and could have them.
    pub fn wake_for_copies(&self, wake: Arc<Notify>) {
        *self.store.lacks_copies.lock() = Some(wake);
    }
}

impl Store {
    /// Has a rebuild look for chunks that lack copies.
    pub(crate) fn wake_rebuild(&self) {
        if let Some(wake) = self.lacks_copies.lock().as_ref() {
            wake.notify_one();
        }
    }

    /// Writes the copies that a chunk lacks, where that is possible now.
    async fn copy(self: &Arc<Self>, one: &Lacking, report: &mut Rebuilt) -> Vec<NewCopy> {
        let mut made = Vec::new();
        match self.copy_to_targets(one, &mut made).await {
            Ok(()) => {}
            Err(error) => tracing::warn!(chunk = %one.chunk.chunk.id, %error, "a chunk cannot be copied"),
        }
        report.missing += (one.targets.len() - made.len()) as u64;
        report.bytes += u64::from(one.chunk.chunk.len) * made.len() as u64;
        made
    }

    async fn copy_to_targets(
        self: &Arc<Self>,
        one: &Lacking,
        made: &mut Vec<NewCopy>,
    ) -> Result<(), VolumeError> {
        // Not before it is known that a target is there: an attempt to reach one that is not takes long.
        let targets: Vec<_> = one.targets.iter().filter(|target| !self.is_away(**target)).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let bytes = self.read(one.chunk, 0..one.chunk.chunk.len)?.await?;
        for target in targets {
            let Ok(drive) = self.drives.get(*target) else { continue };
            match write_durably(&drive, bytes.clone(), one.chunk.chunk).await {
                Ok(chunk) => {
                    made.push(NewCopy { drive, at: LocatedChunk { drive: *target, chunk }, kept: false })
                }
                Err(error) => {
                    if let VolumeError::Drive(error) = &error {
                        self.note_failure(*target, error);
                    }
                    tracing::warn!(drive = %target, %error, "a copy cannot be written now");
                }
            }
        }
        Ok(())
    }

    /// Makes copies part of the store where the chunk is still what was copied.
    async fn keep_copies(
        self: &Arc<Self>,
        made: Vec<(Lacking, Vec<NewCopy>)>,
        report: &mut Rebuilt,
    ) -> Result<(), VolumeError> {
        if made.is_empty() {
            return Ok(());
        }
        // Before a reader can meet one.
        self.has_copies.store(true, std::sync::atomic::Ordering::Relaxed);
        let store = self.clone();
        let kept = self.kv.update(move |txn| {
            let (mut kept, mut counts) = (Vec::new(), (0, 0));
            for (one, copies) in made {
                let count = copies.len() as u64;
                if put_copies(txn, &one, &copies)? {
                    counts.0 += count;
                    kept.extend(copies);
                } else {
                    counts.1 += count;
                }
            }
            txn.unless_lost(move || {
                kept.into_iter().for_each(|mut copy| copy.kept = true);
                store.work.notify_one();
            });
            Ok::<_, VolumeError>(counts)
        });
        let (kept, changed) = kept.await?;
        report.copies += kept;
        report.missing += changed;
        Ok(())
    }
}

fn put_copies(txn: &mut Txn<'_>, one: &Lacking, made: &[NewCopy]) -> Result<bool, VolumeError> {
    if !chunks::is_live(txn, one.chunk)? || copies::of(txn, one.chunk)? != one.copies {
        return Ok(false);
    }
    let all: Vec<_> = one.copies.iter().copied().chain(made.iter().map(|copy| copy.at)).collect();
    copies::put(txn, one.chunk, &all)?;
    Ok(true)
}

/// Writes a chunk that must become the same as another one.
async fn write_durably(
    drive: &Arc<dyn Drive>,
    bytes: bytes::Bytes,
    like: ChunkRef,
) -> Result<ChunkRef, VolumeError> {
    let chunk = drive.write(bytes).await?;
    if (chunk.len, chunk.crc) != (like.len, like.crc) {
        drop(drive.discard(vec![chunk]));
        return Err(afs_drive::DriveError::Damaged { chunk: chunk.id }.into());
    }
    if let Err(error) = drive.sync(&[chunk]).await {
        drop(drive.discard(vec![chunk]));
        return Err(error.into());
    }
    Ok(chunk)
}

/// Rows that one step reads.
const ROWS_PER_STEP: u64 = 4096;
