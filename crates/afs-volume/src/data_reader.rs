//! Reading data, slot by slot.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_drive::{BoxFuture, DriveError};
use afs_kv::Snapshot;
use afs_wire::dir::PAGE_LEN;
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::extent::{SLOT_LEN, Source};
use crate::ids::SlotIndex;
use crate::key::{self, SLOTS};
use crate::leases::Lease;
use crate::record::VnodeRecord;
use crate::rows::{Rows, damaged};
use crate::store::Store;
use crate::volume::Volume;

/// One version of an object's data, or a part of it, as a stream.
///
/// What is read is of the version that [`DataReader::record`] tells, whatever is stored meanwhile; only a read over more than
/// [`WINDOW_SLOTS`] slots (64 MiB) can meet a change between two windows, and then ends with [`VolumeError::Busy`], which has
/// the client ask again, or with [`VolumeError::NoVolume`] where the volume was deleted meanwhile.
pub struct DataReader {
    store: Arc<Store>,
    volume: Arc<Volume>,
    record: Arc<VnodeRecord>,
    /// Keeps the chunks of this version on the drive.
    _lease: Lease,
    position: u64,
    end: u64,
    /// Of a hole behind which `position` is, so much was not handed out as bytes yet.
    zeros: u64,
    /// First byte whose rows were not read yet.
    planned: u64,
    plan: VecDeque<Part>,
    reading: VecDeque<Reading>,
}

/// What comes next of an object's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Bytes, at most one slot.
    Bytes(Bytes),
    /// So many zeros that are not stored: at least one.
    Hole(u64),
}

/// Bytes one behind the other.
enum Part {
    Ready(Bytes),
    Zeros(u64),
    Chunk { chunk: afs_drive::ChunkRef, from: u32, to: u32 },
}

enum Reading {
    Ready(Bytes),
    Zeros(u64),
    Chunk(BoxFuture<Result<Bytes, DriveError>>),
}

impl DataReader {
    pub(crate) fn open(
        store: &Arc<Store>,
        volume: &Arc<Volume>,
        vnode: VnodeId,
        position: u64,
        len: u64,
    ) -> Result<Option<Self>, VolumeError> {
        let snapshot = store.kv.snapshot();
        let lease = store.leases.take(snapshot.sequence(), store.work.clone());
        let Some(record) = volume.record_at(&snapshot, vnode)? else { return Ok(None) };
        let end = record.length.min(position.saturating_add(len)).max(position);
        let mut reader = Self {
            store: store.clone(),
            volume: volume.clone(),
            record,
            _lease: lease,
            position,
            end,
            zeros: 0,
            planned: position,
            plan: VecDeque::new(),
            reading: VecDeque::new(),
        };
        reader.plan_window(&snapshot)?;
        Ok(Some(reader))
    }

    /// The object as of the version that is read.
    pub fn record(&self) -> &Arc<VnodeRecord> {
        &self.record
    }

    /// How many bytes are still to come.
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

    /// As [`DataReader::next`], with holes as what they are: takes as long as there are data, however long the file is.
    pub async fn next_span(&mut self) -> Result<Option<Span>, VolumeError> {
        if self.zeros > 0 {
            return Ok(Some(Span::Hole(std::mem::take(&mut self.zeros))));
        }
        if self.position == self.end {
            return Ok(None);
        }
        if self.plan.is_empty() && self.reading.is_empty() {
            let snapshot = self.store.kv.snapshot();
            self.look_again(&snapshot)?;
            self.plan_window(&snapshot)?;
        }
        self.read_ahead();
        let bytes = match self.reading.pop_front() {
            Some(Reading::Ready(bytes)) => bytes,
            Some(Reading::Chunk(read)) => read.await?,
            Some(Reading::Zeros(len)) => {
                self.position += len;
                return Ok(Some(Span::Hole(len)));
            }
            None => return Err(damaged(self.record.vnode, "its data ends too early")),
        };
        self.position += bytes.len() as u64;
        Ok(Some(Span::Bytes(bytes)))
    }

    fn read_ahead(&mut self) {
        while self.reading.len() < READING_MAX {
            let Some(part) = self.plan.pop_front() else { return };
            self.reading.push_back(match part {
                Part::Ready(bytes) => Reading::Ready(bytes),
                Part::Zeros(len) => Reading::Zeros(len),
                Part::Chunk { chunk, from, to } => Reading::Chunk(self.store.drive.read(chunk, from..to)),
            });
        }
    }

    /// Goes on where the same version of the object is by now: a reclone or a restore may have brought it elsewhere.
    fn look_again(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        let version = |record: &VnodeRecord| (record.unique, record.data_version, record.length);
        let record = self.volume.record_at(snapshot, self.record.vnode)?;
        let same = record.filter(|record| version(record) == version(&self.record));
        self.record = same.ok_or(VolumeError::Busy)?;
        Ok(())
    }

    fn plan_window(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        if self.record.is_directory() {
            return self.plan_pages(snapshot);
        }
        for _ in 0..WINDOW_SLOTS {
            if self.planned == self.end {
                break;
            }
            self.plan_slot(snapshot)?;
            self.pass_holes(snapshot)?;
        }
        Ok(())
    }

    /// Slots without rows are passed over together.
    fn pass_holes(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        if !matches!(self.plan.back(), Some(Part::Zeros(_))) || self.planned == self.end {
            return Ok(());
        }
        let place = self.volume.place_at(snapshot)?;
        let prefix = key::content_prefix(place.group, self.record.content);
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

    fn plan_slot(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        let place = self.volume.place_at(snapshot)?;
        let slot = SlotIndex((self.planned / SLOT_LEN) as u32);
        let base = self.planned / SLOT_LEN * SLOT_LEN;
        let mut at = (self.planned - base) as u32;
        let end = (self.end - base).min(SLOT_LEN) as u32;
        for extent in snapshot.slot_row(place.group, &self.record, slot, place.epoch)?.extents {
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
                    Part::Chunk { chunk: chunk.chunk, from: offset + skip, to: offset + skip + to - from }
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

    /// A directory has 2 MiB at most, so that all of it is one window.
    fn plan_pages(&mut self, snapshot: &Snapshot) -> Result<(), VolumeError> {
        let place = self.volume.place_at(snapshot)?;
        while self.planned < self.end {
            let page = SlotIndex((self.planned / PAGE_LEN as u64) as u32);
            let row = snapshot.page_row(place.group, self.record.content, page, place.epoch)?;
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

/// Slots whose rows are read together, from one state of the index.
pub const WINDOW_SLOTS: u64 = 64;
/// Parts being read ahead of the reader.
const READING_MAX: usize = 4;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
