//! Writer of new file data: bytes to the drive, before a transaction makes them part of a file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use afs_drive::{BoxFuture, ChunkRef, Drive, DriveError, DriveId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::extent::{HOLE_MIN, LITERAL_MAX, SLOT_LEN};
use crate::gathering::Gathered;
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::store::Store;

/// The longest file, in bytes: 2^52.
pub const FILE_LEN_MAX: u64 = SLOT_LEN << 32;

/// Most ranges of one store.
pub const RANGES_MAX: usize = 1024;

/// Bytes that are written, completely durable, and not yet part of any file: one range or several. Dropped
/// before they become part of one, they are discarded.
pub struct NewData {
    /// Start of the first range.
    position: u64,
    /// End of the last range.
    end: u64,
    /// Total bytes of all ranges.
    len: u64,
    /// Without overlap.
    pieces: Vec<Piece>,
    drive_id: DriveId,
    drive: Arc<dyn Drive>,
    kept: bool,
}

/// The part of the data within one slot.
pub(crate) struct Piece {
    pub(crate) position: u64,
    pub(crate) stored: Stored,
}

pub(crate) enum Stored {
    Literal(Bytes),
    Chunk(LocatedChunk),
    /// A number of zeros, stored as nothing. May span slots.
    Zeros(u64),
}

impl Piece {
    /// Whether it replaces the whole slot, or stores nothing there.
    fn is_whole_slot(&self) -> bool {
        match &self.stored {
            Stored::Chunk(at) => u64::from(at.chunk.len) == SLOT_LEN,
            Stored::Literal(_) => false,
            Stored::Zeros(_) => true,
        }
    }
}

impl NewData {
    /// Chunks that are durable on a drive and belong to nobody else, without overlap; `len` bytes together.
    pub(crate) fn new(
        range: Range<u64>,
        len: u64,
        pieces: Vec<Piece>,
        (drive_id, drive): (DriveId, Arc<dyn Drive>),
    ) -> Self {
        Self { position: range.start, end: range.end, len, pieces, drive_id, drive, kept: false }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Has the file extended with zeros to `end`, if it would be shorter.
    ///
    /// # Errors
    /// `TooLarge` beyond [`FILE_LEN_MAX`].
    pub fn grow_to(&mut self, end: u64) -> Result<(), VolumeError> {
        if end > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        self.end = self.end.max(end);
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// End of the last byte in the file.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn begins_at_zero(&self) -> bool {
        self.position == 0
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The slots that are covered only in part, each once.
    pub(crate) fn slots_in_part(&self) -> Vec<SlotIndex> {
        let in_part = self.pieces.iter().filter(|piece| !piece.is_whole_slot());
        let mut slots: Vec<_> = in_part.map(|piece| SlotIndex((piece.position / SLOT_LEN) as u32)).collect();
        slots.dedup();
        slots
    }

    fn chunks(&self) -> Vec<ChunkRef> {
        let chunk = |piece: &Piece| match piece.stored {
            Stored::Chunk(at) => Some(at.chunk),
            Stored::Literal(_) | Stored::Zeros(_) => None,
        };
        self.pieces.iter().filter_map(chunk).collect()
    }

    /// Records that the chunks have become part of a file.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NewData {
    fn drop(&mut self) {
        let chunks = self.chunks();
        if !self.kept && !chunks.is_empty() {
            // The drive works on its own; chunks that it cannot free are found by the next sweep.
            drop(self.drive.discard(chunks));
        }
    }
}

/// Takes the bytes of one store as they arrive and writes them to the drive, in memory bounded by a few
/// slots, and by less when many stores are in progress: together they keep about 64 MiB, and 64 KiB each
/// beyond that, for as long as their senders are silent.
pub struct DataWriter {
    data: NewData,
    /// Bytes of the current slot not written yet.
    gathered: Gathered,
    writing: VecDeque<(u64, BoxFuture<Result<ChunkRef, DriveError>>)>,
    ranges: usize,
    keeps_zeros: bool,
}

impl DataWriter {
    pub(crate) fn new(store: &Store, position: u64) -> Result<Self, VolumeError> {
        let (drive_id, drive) = store.drives.for_new_data();
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        let data = NewData::new(position..position, 0, Vec::new(), (drive_id, drive));
        Ok(Self {
            data,
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
        if position < self.data.end || self.ranges > RANGES_MAX {
            return Err(VolumeError::Invalid);
        }
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        if position > self.data.end {
            self.end_range().await?;
            self.data.end = position;
            self.ranges += 1;
        }
        Ok(())
    }

    /// Takes the next bytes. Waits when the drive is more than a few slots behind.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<(), VolumeError> {
        if self.data.end() + bytes.len() as u64 > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        while !bytes.is_empty() {
            let room = (SLOT_LEN - self.data.end() % SLOT_LEN) as usize;
            let part = bytes.split_to(room.min(bytes.len()));
            self.data.len += part.len() as u64;
            self.data.end += part.len() as u64;
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
            self.put_zeros(to_slot, whole);
            self.data.len += whole;
            self.data.end += whole;
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

    /// Resolves when all bytes are durable.
    pub async fn finish(mut self) -> Result<NewData, VolumeError> {
        self.end_range().await?;
        while !self.writing.is_empty() {
            self.take_written().await?;
        }
        let chunks = self.data.chunks();
        if !chunks.is_empty() {
            self.data.drive.sync(&chunks).await?;
        }
        Ok(self.data)
    }

    /// Writes the rest of a range, as a literal if it is short.
    async fn end_range(&mut self) -> Result<(), VolumeError> {
        if self.gathered.bytes().is_empty() {
            return Ok(());
        }
        let is_hole = !self.keeps_zeros && is_zero(self.gathered.bytes());
        if is_hole || self.data.len > LITERAL_MAX as u64 || !self.writing.is_empty() {
            return self.write_gathered().await;
        }
        let bytes = self.gathered.take();
        let position = self.data.end - bytes.len() as u64;
        self.data.pieces.push(Piece { position, stored: Stored::Literal(bytes) });
        Ok(())
    }

    async fn write_gathered(&mut self) -> Result<(), VolumeError> {
        let bytes = self.gathered.take();
        let position = self.data.end - bytes.len() as u64;
        if self.keeps_zeros {
            return self.write(position, bytes).await;
        }
        for (position, part) in parts(position, &bytes) {
            match is_zero(&part) {
                true => self.put_zeros(position, part.len() as u64),
                false => self.write(position, part).await?,
            }
        }
        Ok(())
    }

    async fn write(&mut self, position: u64, bytes: Bytes) -> Result<(), VolumeError> {
        self.writing.push_back((position, self.data.drive.write(bytes)));
        if self.writing.len() >= WRITING_MAX {
            self.take_written().await?;
        }
        Ok(())
    }

    fn put_zeros(&mut self, position: u64, len: u64) {
        match self.data.pieces.last_mut() {
            Some(Piece { position: start, stored: Stored::Zeros(before) })
                if *start + *before == position =>
            {
                *before += len;
            }
            _ => self.data.pieces.push(Piece { position, stored: Stored::Zeros(len) }),
        }
    }

    async fn take_written(&mut self) -> Result<(), VolumeError> {
        if let Some((position, write)) = self.writing.pop_front() {
            let at = LocatedChunk { drive: self.data.drive_id, chunk: write.await? };
            self.data.pieces.push(Piece { position, stored: Stored::Chunk(at) });
        }
        Ok(())
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

/// Slots of one store that are being written at a time.
const WRITING_MAX: usize = 3;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
