//! Writer of new file data: bytes to the drives, before a transaction makes them part of a file.
//!
//! A chunk goes to as many drives as the placement of its volume says, and all of them are flushed before the writer has finished.
//! One that fails is left out from there on, as long as another one has the bytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use afs_drive::{BoxFuture, ChunkRef, DriveError, DriveId};
use afs_env::EnvExt;
use afs_wire::vol::Placement;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::extent::{HOLE_MIN, LITERAL_MAX, SLOT_LEN};
use crate::gathering::Gathered;
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::new_data::{FILE_LEN_MAX, NewData, Stored};
use crate::store::Store;
use crate::targets::{NamedDrive, Targets};

/// Most ranges of one store.
pub const RANGES_MAX: usize = 1024;

/// Takes the bytes of one store as they arrive and writes them to the drives, in memory bounded by a few
/// slots, and by less when many stores are in progress: together they keep about 64 MiB, and 64 KiB each
/// beyond that, for as long as their senders are silent.
pub struct DataWriter {
    store: Arc<Store>,
    targets: Targets,
    data: NewData,
    /// Bytes of the current slot not written yet.
    gathered: Gathered,
    writing: VecDeque<Writing>,
    ranges: usize,
    keeps_zeros: bool,
}

/// A chunk that is being written to one drive or several.
struct Writing {
    position: u64,
    writes: Vec<(NamedDrive, Write)>,
}

type Write = BoxFuture<Result<ChunkRef, DriveError>>;

impl DataWriter {
    /// A writer for `position` of a file.
    pub(crate) fn new(store: &Arc<Store>, placement: Placement, position: u64) -> Result<Self, VolumeError> {
        Self::from_slot(store, placement, SlotIndex(0), position)
    }

    /// A writer whose positions count from the beginning of a slot of the file.
    pub(crate) fn from_slot(
        store: &Arc<Store>,
        placement: Placement,
        base: SlotIndex,
        position: u64,
    ) -> Result<Self, VolumeError> {
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        Ok(Self {
            store: store.clone(),
            targets: Targets::new(store.drives.list(), placement, base),
            data: NewData::begin(position),
            gathered: Gathered::new(store.gathering.clone()),
            writing: VecDeque::new(),
            ranges: 1,
            keeps_zeros: false,
        })
    }

    /// Stores zeros like other bytes. Otherwise blocks of zeros become holes.
    pub(crate) fn keeping_zeros(self) -> Self {
        Self { keeps_zeros: true, ..self }
    }

    /// Continues at another position; the file keeps its bytes in between. All ranges become part of the file
    /// together.
    ///
    /// # Errors
    /// `Invalid` for a position before the end of what was pushed, and for more than [`RANGES_MAX`] ranges
    /// and an end behind them; `TooLarge` beyond [`FILE_LEN_MAX`].
    pub async fn skip_to(&mut self, position: u64) -> Result<(), VolumeError> {
        if position < self.data.end() || self.ranges > RANGES_MAX {
            return Err(VolumeError::Invalid);
        }
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        if position > self.data.end() {
            self.end_range().await?;
            self.data.skip_to(position);
            self.ranges += 1;
        }
        Ok(())
    }

    /// Takes the next bytes. Waits when a drive is more than a few slots behind.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<(), VolumeError> {
        if self.data.end() + bytes.len() as u64 > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        while !bytes.is_empty() {
            let room = (SLOT_LEN - self.data.end() % SLOT_LEN) as usize;
            let part = bytes.split_to(room.min(bytes.len()));
            self.data.extend(part.len() as u64);
            let crowded = self.gathered.push(&part);
            if part.len() == room || crowded && self.gathered.bytes().len() >= HOLE_MIN as usize {
                self.write_gathered().await?;
            }
        }
        Ok(())
    }

    /// Takes a number of zeros, at a cost independent of the number.
    pub async fn push_hole(&mut self, len: u64) -> Result<(), VolumeError> {
        let end = self.data.end().checked_add(len).filter(|end| *end <= FILE_LEN_MAX);
        let end = end.ok_or(VolumeError::TooLarge)?;
        // Gathered bytes end with their slot; whole slots need no bytes.
        let to_slot = self.data.end().next_multiple_of(SLOT_LEN).min(end);
        self.push_zeros(to_slot - self.data.end()).await?;
        let whole = (end - to_slot) / SLOT_LEN * SLOT_LEN;
        if whole > 0 {
            self.data.push(to_slot, Stored::Zeros(whole));
            self.data.extend(whole);
        }
        self.push_zeros(end - self.data.end()).await
    }

    async fn push_zeros(&mut self, mut len: u64) -> Result<(), VolumeError> {
        while len > 0 {
            let now = len.min(ZEROS.len() as u64);
            self.push(Bytes::from_static(&ZEROS[..now as usize])).await?;
            len -= now;
        }
        Ok(())
    }

    /// Resolves when all bytes are durable, on each drive that is to have them and has not failed.
    ///
    /// # Errors
    /// That of a drive, if some bytes are on no other one.
    pub async fn finish(mut self) -> Result<NewData, VolumeError> {
        self.end_range().await?;
        while !self.writing.is_empty() {
            self.take_written().await?;
        }
        self.make_durable().await?;
        self.data.request_copies(&self.targets, |id| self.store.is_away(id));
        Ok(self.data)
    }

    /// Writes the rest of a range, as a literal if it is short.
    async fn end_range(&mut self) -> Result<(), VolumeError> {
        if self.gathered.bytes().is_empty() {
            return Ok(());
        }
        let is_hole = !self.keeps_zeros && is_zero(self.gathered.bytes());
        if is_hole || self.data.len() > LITERAL_MAX as u64 || !self.writing.is_empty() {
            return self.write_gathered().await;
        }
        let bytes = self.gathered.take();
        let position = self.data.end() - bytes.len() as u64;
        self.data.push(position, Stored::Literal(bytes));
        Ok(())
    }

    async fn write_gathered(&mut self) -> Result<(), VolumeError> {
        let bytes = self.gathered.take();
        let position = self.data.end() - bytes.len() as u64;
        if self.keeps_zeros {
            return self.write(position, bytes).await;
        }
        for (position, part) in parts(position, &bytes) {
            match is_zero(&part) {
                true => self.data.push(position, Stored::Zeros(part.len() as u64)),
                false => self.write(position, part).await?,
            }
        }
        Ok(())
    }

    async fn write(&mut self, position: u64, bytes: Bytes) -> Result<(), VolumeError> {
        let drives = self.targets.of_slot(position / SLOT_LEN, |id| self.store.is_away(id));
        drives.iter().for_each(|drive| self.data.uses(drive));
        let begin = |drive: NamedDrive| {
            let write = drive.1.write(bytes.clone());
            (drive, write)
        };
        self.writing.push_back(Writing { position, writes: drives.into_iter().map(begin).collect() });
        if self.writing.len() >= WRITING_MAX {
            self.take_written().await?;
        }
        Ok(())
    }

    /// Takes the oldest chunk that is being written. What is known of it is in the data at each time that this waits, so that
    /// it is discarded with them.
    async fn take_written(&mut self) -> Result<(), VolumeError> {
        let Some(Writing { position, writes }) = self.writing.pop_front() else { return Ok(()) };
        let (mut first, mut failure) = (None::<ChunkRef>, None);
        for ((drive, of_drive), write) in writes {
            let written = write.await.and_then(|chunk| match first {
                Some(first) if (first.len, first.crc) != (chunk.len, chunk.crc) => {
                    drop(of_drive.discard(vec![chunk]));
                    Err(DriveError::Damaged { chunk: chunk.id })
                }
                _ => Ok(LocatedChunk { drive, chunk }),
            });
            match written {
                Ok(at) if first.is_none() => {
                    first = Some(at.chunk);
                    self.data.push(position, Stored::Chunk(at, Vec::new()));
                }
                Ok(at) => self.data.push_copy(at),
                Err(error) => {
                    self.fails(drive, &error);
                    failure.get_or_insert(error);
                }
            }
        }
        match (first, failure) {
            (Some(_), _) => Ok(()),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(self.targets.why_none().into()),
        }
    }

    /// Flushes all drives that have chunks.
    async fn make_durable(&mut self) -> Result<(), VolumeError> {
        let begin = |((id, drive), chunks): (NamedDrive, Vec<ChunkRef>)| (id, drive.sync(&chunks));
        let mut flushes: Vec<_> = self.data.chunks().into_iter().map(begin).collect();
        if self.targets.copies() == 1 {
            for (_, flush) in flushes {
                flush.await?;
            }
            return Ok(());
        }
        let until = self.store.env.now() + FLUSH_MAX;
        let mut late = Vec::new();
        for (id, mut flush) in flushes.drain(..) {
            let left = until.saturating_since(self.store.env.now());
            match self.store.env.timeout(left, &mut flush).await {
                Ok(flushed) => self.flushed(id, flushed)?,
                Err(_) => late.push((id, flush)),
            }
        }
        for (id, flush) in late {
            // What no other drive has is waited for as long as the drive itself waits.
            let flushed = if self.data.needs(id) { flush.await } else { Err(too_late(id)) };
            self.flushed(id, flushed)?;
        }
        Ok(())
    }

    fn flushed(&mut self, drive: DriveId, flushed: Result<(), DriveError>) -> Result<(), VolumeError> {
        let Err(error) = flushed else { return Ok(()) };
        self.fails(drive, &error);
        if self.data.leave(drive) { Ok(()) } else { Err(error.into()) }
    }

    fn fails(&mut self, drive: DriveId, error: &DriveError) {
        self.store.note_failure(drive, error);
        self.targets.fails(drive, error);
    }
}

/// Splits the data of one slot where whole blocks of [`HOLE_MIN`] bytes begin or cease to be zeros.
fn parts(position: u64, bytes: &Bytes) -> Vec<(u64, Bytes)> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let within = (position + at as u64) % u64::from(HOLE_MIN);
        let end = bytes.len().min(at + (u64::from(HOLE_MIN) - within) as usize);
        match parts.last_mut() {
            Some((start, until)) if is_zero(&bytes[*start..*until]) == is_zero(&bytes[at..end]) => {
                *until = end
            }
            _ => parts.push((at, end)),
        }
        at = end;
    }
    parts.into_iter().map(|(start, end)| (position + start as u64, bytes.slice(start..end))).collect()
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn too_late(drive: DriveId) -> DriveError {
    let why = format!("it did not flush new data within {} s", FLUSH_MAX.as_secs());
    DriveError::Away { drive: drive.to_string().into(), why: why.into() }
}

/// Slots of one store that are being written at a time.
const WRITING_MAX: usize = 3;
/// How long drives are waited for that flush what another drive has too.
const FLUSH_MAX: Duration = Duration::from_secs(60);
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
