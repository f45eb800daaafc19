//! Stream reader of an object's data, slot by slot.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_drive::{BoxFuture, DriveError};
use afs_kv::Snapshot;
use afs_wire::dir::PAGE_LEN;
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use crate::depth::Depth;
use crate::error::VolumeError;
use crate::extent::{SLOT_LEN, Source};
use crate::ids::SlotIndex;
use crate::key::{self, SLOTS};
use crate::leases::Lease;
use crate::located::LocatedChunk;
use crate::record::VnodeRecord;
use crate::rows::{Rows, RowsTo, damaged};
use crate::store::Store;
use crate::volume::Volume;

/// One version of an object's data, or a part of it, as a stream.
///
/// All data are of the version in [`DataReader::record`], whatever is stored meanwhile; only a read over more
/// than [`WINDOW_SLOTS`] slots (64 MiB) can meet a change between two windows, and then ends with
/// [`VolumeError::Busy`], on which the client retries, or with [`VolumeError::NoVolume`] if the volume was
/// deleted meanwhile.
pub struct DataReader {
    store: Arc<Store>,
    volume: Arc<Volume>,
    record: Arc<VnodeRecord>,
    /// Keeps the chunks of this version on the drive.
    _lease: Lease,
    position: u64,
    end: u64,
    /// Bytes of the hole before `position` that were not returned yet.
    zeros: u64,
    /// First byte whose rows were not read yet.
    planned: u64,
    plan: VecDeque<Part>,
    reading: VecDeque<Reading>,
}

/// A stretch of an object's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Bytes, at most one slot.
    Bytes(Bytes),
    /// Zeros that are not stored: at least one.
    Hole(u64),
}

/// A contiguous piece of data.
enum Part {
    Ready(Bytes),
    Zeros(u64),
    Chunk { at: LocatedChunk, from: u32, to: u32 },
}

enum Reading {
    Ready(Bytes),
    Zeros(u64),
    Chunk(BoxFuture<Result<Bytes, DriveError>>),
    /// A read that could not be started.
    Lost(VolumeError),
}

impl DataReader {
    pub(crate) fn open(
        volume: &Arc<Volume>,
        vnode: VnodeId,
        position: u64,
        len: u64,
        depth: Depth,
    ) -> Result<Option<Self>, VolumeError> {
        let store = volume.store();
        let snapshot = store.kv.snapshot();
        let lease = store.leases.take(snapshot.sequence(), store.work.clone());
        if let Some((record, content)) = store.cache.get_content(volume.id(), vnode) {
            return Ok(Some(Self::of_content(volume, lease, record, content, position, len)));
        }
        let Some(record) = volume.reads(depth).record_at(&snapshot, vnode)? else { return Ok(None) };
        let mut reader = Self::new(volume, lease, record, position, len);
        reader.plan_window(&RowsTo { snapshot: &snapshot, depth })?;
        reader.keep_content(snapshot.sequence());
        // The drive works while the caller changes threads.
        reader.read_ahead();
        Ok(Some(reader))
    }

    fn new(volume: &Arc<Volume>, lease: Lease, record: Arc<VnodeRecord>, position: u64, len: u64) -> Self {
        let end = record.length.min(position.saturating_add(len)).max(position);
        Self {
            store: volume.store().clone(),
            volume: volume.clone(),
            record,
            _lease: lease,
            position,
            end,
            zeros: 0,
            planned: position,
            plan: VecDeque::new(),
            reading: VecDeque::new(),
        }
    }

    /// A reader of a content that is completely in memory.
    fn of_content(
        volume: &Arc<Volume>,
        lease: Lease,
        record: Arc<VnodeRecord>,
        content: Bytes,
        position: u64,
        len: u64,
    ) -> Self {
        let mut reader = Self::new(volume, lease, record, position, len);
        if position < reader.end {
            reader.plan.push_back(Part::Ready(content.slice(position as usize..reader.end as usize)));
        }
        reader.planned = reader.end;
        reader
    }

    /// Caches a small content that was planned, and is in the index, as a whole.
    fn keep_content(&self, sequence: u64) {
        let whole = self.position == 0 && self.end == self.record.length && self.planned == self.end;
        if !whole || self.end > CONTENT_MAX {
            return;
        }
        let mut content = Vec::with_capacity(self.end as usize);
        for part in &self.plan {
            match part {
                Part::Ready(bytes) => content.extend_from_slice(bytes),
                Part::Zeros(len) => content.resize(content.len() + *len as usize, 0),
                Part::Chunk { .. } => return,
            }
        }
        self.store.cache.insert_content(self.volume.id(), self.record.clone(), content.into(), sequence);
    }

    /// The record of the version being read.
    pub fn record(&self) -> &Arc<VnodeRecord> {
        &self.record
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> u64 {
        self.end - self.position + self.zeros
    }

    /// The next bytes, at most one slot; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        if self.zeros == 0 {
            match self.next_span().await? {
                Some(Span::Hole(len)) => self.zeros = len,
                Some(Span::Bytes(bytes)) => return Ok(Some(bytes)),
                None => return Ok(None),
            }
        }
        let now = self.zeros.min(ZEROS.len() as u64);
        self.zeros -= now;
        Ok(Some(Bytes::from_static(&ZEROS[..now as usize])))
    }

    /// As [`DataReader::next`], but holes are returned as such: the cost depends on the stored data, not on
    /// the file's length.
    pub async fn next_span(&mut self) -> Result<Option<Span>, VolumeError> {
        if self.zeros > 0 {
            return Ok(Some(Span::Hole(std::mem::take(&mut self.zeros))));
        }
        if self.position == self.end {
            return Ok(None);
        }
        if self.must_plan() {
            self.plan()?;
        }
        self.read_ahead();
        let bytes = match self.reading.pop_front() {
            Some(Reading::Ready(bytes)) => bytes,
            Some(Reading::Chunk(read)) => read.await?,
            Some(Reading::Lost(error)) => return Err(error),
            Some(Reading::Zeros(len)) => {
                self.position += len;
                return Ok(Some(Span::Hole(len)));
            }
            None => return Err(damaged(self.record.vnode, "its data ends too early")),
        };
        self.position += bytes.len() as u64;
        Ok(Some(Span::Bytes(bytes)))
    }

    /// Whether [`DataReader::next`] must read the index before it can return bytes, and so may block on a
    /// disk.
    pub fn must_plan(&self) -> bool {
        self.zeros == 0 && self.position < self.end && self.plan.is_empty() && self.reading.is_empty()
    }

    /// Reads the rows of the next window from the index, which may block on a disk.
    ///
    /// # Errors
    /// As [`DataReader::next`].
    pub fn plan(&mut self) -> Result<(), VolumeError> {
        let snapshot = self.store.kv.snapshot();
        self.look_again(&snapshot)?;
        self.plan_window(&RowsTo { snapshot: &snapshot, depth: Depth::Disk })?;
        self.read_ahead();
        Ok(())
    }

    fn read_ahead(&mut self) {
        while self.reading.len() < READING_MAX {
            let Some(part) = self.plan.pop_front() else { return };
            self.reading.push_back(match part {
                Part::Ready(bytes) => Reading::Ready(bytes),
                Part::Zeros(len) => Reading::Zeros(len),
                Part::Chunk { at, from, to } => match self.store.read(at, from..to) {
                    Ok(read) => Reading::Chunk(read),
                    Err(error) => Reading::Lost(error),
                },
            });
        }
    }

    /// Finds the same version of the object again: a reclone or a restore may have moved its rows.
    fn look_again(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        let version = |record: &VnodeRecord| (record.unique, record.data_version, record.length);
        let record = self.volume.reads(Depth::Disk).record_at(snapshot, self.record.vnode)?;
        let same = record.filter(|record| version(record) == version(&self.record));
        self.record = same.ok_or(VolumeError::Busy)?;
        Ok(())
    }

    fn plan_window(&mut self, rows: &RowsTo<'_>) -> Result<(), VolumeError> {
        if self.record.is_directory() {
            return self.plan_pages(rows);
        }
        for _ in 0..WINDOW_SLOTS {
            if self.planned == self.end {
                break;
            }
            self.plan_slot(rows)?;
            self.pass_holes(rows)?;
        }
        Ok(())
    }

    /// Skips slots without rows.
    fn pass_holes(&mut self, rows: &RowsTo<'_>) -> Result<(), VolumeError> {
        if !matches!(self.plan.back(), Some(Part::Zeros(_))) || self.planned == self.end {
            return Ok(());
        }
        if rows.depth == Depth::Memory {
            return Err(VolumeError::NotInMemory);
        }
        let snapshot = rows.snapshot;
        let location = self.volume.location_at(snapshot)?;
        let prefix = key::content_prefix(location.group, self.record.content);
        let first = [&prefix[..], &((self.planned / SLOT_LEN) as u32).to_be_bytes()].concat();
        let end = key::after_prefix(&prefix);
        let next = snapshot.range(SLOTS, key::bounds(&first, end.as_deref()), false).next().transpose()?;
        let slot = next.and_then(|(key, _)| Some(u32::from_be_bytes(key.get(12..16)?.try_into().ok()?)));
        let next = slot.map_or(self.end, |slot| (u64::from(slot) * SLOT_LEN).min(self.end));
        if next > self.planned {
            self.plan_zeros(next - self.planned);
            self.planned = next;
        }
        Ok(())
    }

    fn plan_zeros(&mut self, len: u64) {
        match self.plan.back_mut() {
            Some(Part::Zeros(before)) => *before += len,
            _ => self.plan.push_back(Part::Zeros(len)),
        }
    }

    fn plan_slot(&mut self, rows: &RowsTo<'_>) -> Result<(), VolumeError> {
        let location = self.volume.location_at(rows.snapshot)?;
        let slot = SlotIndex((self.planned / SLOT_LEN) as u32);
        let base = self.planned / SLOT_LEN * SLOT_LEN;
        let mut at = (self.planned - base) as u32;
        let end = (self.end - base).min(SLOT_LEN) as u32;
        for extent in rows.slot_row(location.group, &self.record, slot, location.epoch)?.extents {
            let (from, to) = (extent.start.max(at), extent.end().min(end));
            if from >= to {
                continue;
            }
            if from > at {
                self.plan_zeros(u64::from(from - at));
            }
            let skip = from - extent.start;
            self.plan.push_back(match extent.source {
                Source::Literal(bytes) => {
                    Part::Ready(bytes.slice(skip as usize..(skip + to - from) as usize))
                }
                Source::Chunk { chunk, offset, .. } => {
                    Part::Chunk { at: chunk.at, from: offset + skip, to: offset + skip + to - from }
                }
            });
            at = to;
        }
        if at < end {
            self.plan_zeros(u64::from(end - at));
        }
        self.planned = base + u64::from(end);
        Ok(())
    }

    /// A directory has 2 MiB at most, so all of it is one window.
    fn plan_pages(&mut self, rows: &RowsTo<'_>) -> Result<(), VolumeError> {
        let location = self.volume.location_at(rows.snapshot)?;
        while self.planned < self.end {
            let page = SlotIndex((self.planned / PAGE_LEN as u64) as u32);
            let row = rows.page_row(location.group, self.record.content, page, location.epoch)?;
            let row = row.filter(|row| row.len() == PAGE_LEN);
            let row = row.ok_or_else(|| damaged(self.record.vnode, "a page of the directory is missing"))?;
            let from = self.planned as usize % PAGE_LEN;
            let to = PAGE_LEN.min(from + (self.end - self.planned) as usize);
            self.plan.push_back(Part::Ready(row.slice(from..to)));
            self.planned += (to - from) as u64;
        }
        Ok(())
    }
}

/// The largest content kept in memory, in bytes: a directory of about 1,000 entries.
const CONTENT_MAX: u64 = 64 << 10;
/// Slots whose rows are read together, from one snapshot of the index.
pub const WINDOW_SLOTS: u64 = 64;
/// Parts that are read ahead.
const READING_MAX: usize = 4;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
