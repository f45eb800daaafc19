//! Bytes on their way into a file.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_drive::{BoxFuture, ChunkRef, Drive, DriveError};
use bytes::{Bytes, BytesMut};

use crate::error::VolumeError;
use crate::extent::{LITERAL_MAX, SLOT_LEN};
use crate::ids::SlotIndex;

/// The longest file, in bytes: 2^52.
pub const FILE_LEN_MAX: u64 = SLOT_LEN << 32;

/// The most ranges of one store.
pub const RANGES_MAX: usize = 1024;

/// Bytes that are written, wholly durable, and not yet part of any file: one range or several. Dropped without having become part of one,
/// they are discarded.
pub struct NewData {
    /// Where the first range begins.
    position: u64,
    /// Where the last range ends.
    end: u64,
    /// Bytes of all ranges.
    len: u64,
    /// In the order of their positions, without overlap.
    pieces: Vec<Piece>,
    drive: Arc<dyn Drive>,
    kept: bool,
}

/// What lies within one slot.
pub(crate) struct Piece {
    pub(crate) position: u64,
    pub(crate) stored: Stored,
}

pub(crate) enum Stored {
    Literal(Bytes),
    Chunk(ChunkRef),
}

impl Piece {
    fn is_whole_slot(&self) -> bool {
        matches!(self.stored, Stored::Chunk(chunk) if u64::from(chunk.len) == SLOT_LEN)
    }
}

impl NewData {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where in the file the last of them end.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn begins_at_zero(&self) -> bool {
        self.position == 0
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The slots of which there are bytes, but not all, each once.
    pub(crate) fn slots_in_part(&self) -> Vec<SlotIndex> {
        let in_part = self.pieces.iter().filter(|piece| !piece.is_whole_slot());
        let mut slots: Vec<_> = in_part.map(|piece| SlotIndex((piece.position / SLOT_LEN) as u32)).collect();
        slots.dedup();
        slots
    }

    /// The chunks have become part of a file.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NewData {
    fn drop(&mut self) {
        let chunk = |piece: &Piece| match piece.stored {
            Stored::Chunk(chunk) => Some(chunk),
            Stored::Literal(_) => None,
        };
        let chunks: Vec<_> = self.pieces.iter().filter_map(chunk).collect();
        if !self.kept && !chunks.is_empty() {
            // The drive works on its own; what it cannot free the next sweep finds.
            drop(self.drive.discard(chunks));
        }
    }
}

/// Takes the bytes of one store as they arrive and puts them on the drive, in memory bounded by a few slots.
pub struct DataWriter {
    data: NewData,
    /// Not yet written bytes of the current slot.
    gathered: BytesMut,
    writing: VecDeque<(u64, BoxFuture<Result<ChunkRef, DriveError>>)>,
    ranges: usize,
}

impl DataWriter {
    pub(crate) fn new(drive: Arc<dyn Drive>, position: u64) -> Result<Self, VolumeError> {
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        let data = NewData { position, end: position, len: 0, pieces: Vec::new(), drive, kept: false };
        Ok(Self { data, gathered: BytesMut::new(), writing: VecDeque::new(), ranges: 1 })
    }

    /// Goes on at another position, so that what lies in between stays as the file has it. All ranges become part of the file together.
    ///
    /// # Errors
    /// `Invalid` for a position before the end of what was pushed, and for more than [`RANGES_MAX`] ranges; `TooLarge` beyond
    /// [`FILE_LEN_MAX`].
    pub async fn skip_to(&mut self, position: u64) -> Result<(), VolumeError> {
        if position < self.data.end || self.ranges == RANGES_MAX {
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
            self.gathered.extend_from_slice(&part);
            if part.len() == room {
                self.write_gathered().await?;
            }
        }
        Ok(())
    }

    /// Resolves when all bytes are durable.
    pub async fn finish(mut self) -> Result<NewData, VolumeError> {
        self.end_range().await?;
        while !self.writing.is_empty() {
            self.take_written().await?;
        }
        if self.data.pieces.iter().any(|piece| matches!(piece.stored, Stored::Chunk(_))) {
            self.data.drive.sync().await?;
        }
        Ok(self.data)
    }

    /// Stores the rest of a range, as a literal where all that came so far is little.
    async fn end_range(&mut self) -> Result<(), VolumeError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        if self.data.len > LITERAL_MAX as u64 || !self.writing.is_empty() {
            return self.write_gathered().await;
        }
        let bytes = self.gathered.split().freeze();
        let position = self.data.end - bytes.len() as u64;
        self.data.pieces.push(Piece { position, stored: Stored::Literal(bytes) });
        Ok(())
    }

    async fn write_gathered(&mut self) -> Result<(), VolumeError> {
        let bytes = self.gathered.split().freeze();
        let position = self.data.end() - bytes.len() as u64;
        self.writing.push_back((position, self.data.drive.write(bytes)));
        if self.writing.len() >= WRITING_MAX {
            self.take_written().await?;
        }
        Ok(())
    }

    async fn take_written(&mut self) -> Result<(), VolumeError> {
        if let Some((position, write)) = self.writing.pop_front() {
            let chunk = write.await?;
            self.data.pieces.push(Piece { position, stored: Stored::Chunk(chunk) });
        }
        Ok(())
    }
}

/// Slots of one store being written at a time.
const WRITING_MAX: usize = 3;
