//! Bytes on their way into a file.

use std::collections::VecDeque;
use std::sync::Arc;

use afs_drive::{BoxFuture, ChunkRef, Drive, DriveError};
use bytes::{Bytes, BytesMut};

use crate::error::VolumeError;
use crate::extent::{LITERAL_MAX, SLOT_LEN};

/// The longest file, in bytes: 2^52.
pub const FILE_LEN_MAX: u64 = SLOT_LEN << 32;

/// Bytes that are written, wholly durable, and not yet part of any file. Dropped without having become part of one,
/// they are discarded.
pub struct NewData {
    position: u64,
    len: u64,
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

impl NewData {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where in the file they end.
    pub(crate) fn end(&self) -> u64 {
        self.position + self.len
    }

    pub(crate) fn begins_at_zero(&self) -> bool {
        self.position == 0
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
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
}

impl DataWriter {
    pub(crate) fn new(drive: Arc<dyn Drive>, position: u64) -> Result<Self, VolumeError> {
        if position > FILE_LEN_MAX {
            return Err(VolumeError::TooLarge);
        }
        let data = NewData { position, len: 0, pieces: Vec::new(), drive, kept: false };
        Ok(Self { data, gathered: BytesMut::new(), writing: VecDeque::new() })
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
            self.gathered.extend_from_slice(&part);
            if part.len() == room {
                self.write_gathered().await?;
            }
        }
        Ok(())
    }

    /// Resolves when all bytes are durable.
    pub async fn finish(mut self) -> Result<NewData, VolumeError> {
        if !self.gathered.is_empty() {
            if self.data.len as usize <= LITERAL_MAX && self.writing.is_empty() && self.data.pieces.is_empty()
            {
                let bytes = self.gathered.split().freeze();
                let position = self.data.position;
                self.data.pieces.push(Piece { position, stored: Stored::Literal(bytes) });
            } else {
                self.write_gathered().await?;
            }
        }
        let on_drive = !self.writing.is_empty() || !self.data.pieces.is_empty();
        while !self.writing.is_empty() {
            self.take_written().await?;
        }
        if on_drive && self.data.pieces.iter().any(|piece| matches!(piece.stored, Stored::Chunk(_))) {
            self.data.drive.sync().await?;
        }
        Ok(self.data)
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
