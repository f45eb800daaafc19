//! New file data: pieces that are durable on drives, before a transaction makes them part of a file.

use std::ops::Range;

use afs_drive::{ChunkRef, DriveId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::extent::SLOT_LEN;
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::targets::{NamedDrive, Targets};

/// The longest file, in bytes: 2^52.
pub const FILE_LEN_MAX: u64 = SLOT_LEN << 32;

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
    /// The drives on which the chunks are.
    drives: Vec<NamedDrive>,
    /// Whether a rebuild can make copies that are missing now.
    wants_rebuild: bool,
    kept: bool,
}

/// The part of the data within one slot.
pub(crate) struct Piece {
    pub(crate) position: u64,
    pub(crate) stored: Stored,
}

pub(crate) enum Stored {
    Literal(Bytes),
    /// The chunk that references are to name, and its copies, each on another drive.
    Chunk(LocatedChunk, Vec<LocatedChunk>),
    /// A number of zeros, stored as nothing. May span slots.
    Zeros(u64),
}

impl Piece {
    /// Whether it replaces the whole slot, or stores nothing there.
    fn is_whole_slot(&self) -> bool {
        match &self.stored {
            Stored::Chunk(at, _) => u64::from(at.chunk.len) == SLOT_LEN,
            Stored::Literal(_) => false,
            Stored::Zeros(_) => true,
        }
    }

    /// Where its bytes are.
    fn places(&self) -> impl Iterator<Item = LocatedChunk> {
        let (at, copies) = match &self.stored {
            Stored::Chunk(at, copies) => (Some(*at), copies.as_slice()),
            Stored::Literal(_) | Stored::Zeros(_) => (None, &[][..]),
        };
        at.into_iter().chain(copies.iter().copied())
    }

    /// Removes its place on a drive; the next one becomes the one that references name. `None`, and nothing is changed, if it has
    /// no other.
    fn leave(&mut self, drive: DriveId) -> Option<Option<ChunkRef>> {
        let Stored::Chunk(at, copies) = &mut self.stored else { return Some(None) };
        if at.drive == drive {
            let next = (!copies.is_empty()).then(|| copies.remove(0))?;
            return Some(Some(std::mem::replace(at, next).chunk));
        }
        let found = copies.iter().position(|copy| copy.drive == drive);
        Some(found.map(|found| copies.remove(found).chunk))
    }
}

impl NewData {
    /// No bytes, of a store that begins at a position.
    pub(crate) fn begin(position: u64) -> Self {
        Self {
            position,
            end: position,
            len: 0,
            pieces: Vec::new(),
            drives: Vec::new(),
            wants_rebuild: false,
            kept: false,
        }
    }

    /// Chunks that are durable on drives and belong to nobody else, without overlap; `len` bytes together.
    pub(crate) fn on_drives(
        range: Range<u64>,
        len: u64,
        pieces: Vec<Piece>,
        drives: Vec<NamedDrive>,
    ) -> Self {
        Self { end: range.end, len, pieces, drives, ..Self::begin(range.start) }
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

    /// Whether no byte is before the end of a file of this length.
    pub(crate) fn begins_behind(&self, length: u64) -> bool {
        self.pieces.is_empty() || self.position >= length
    }

    pub(crate) fn begins_at_zero(&self) -> bool {
        self.position == 0
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Counts bytes that follow the last ones.
    pub(crate) fn extend(&mut self, len: u64) {
        self.len += len;
        self.end += len;
    }

    /// Continues at a position behind the last byte.
    pub(crate) fn skip_to(&mut self, position: u64) {
        self.end = position;
    }

    /// Adds a piece behind the others.
    pub(crate) fn push(&mut self, position: u64, stored: Stored) {
        match (self.pieces.last_mut(), &stored) {
            (Some(Piece { position: start, stored: Stored::Zeros(before) }), Stored::Zeros(len))
                if *start + *before == position =>
            {
                *before += len;
            }
            _ => self.pieces.push(Piece { position, stored }),
        }
    }

    /// Adds a copy of the chunk that was pushed last.
    pub(crate) fn push_copy(&mut self, copy: LocatedChunk) {
        if let Some(Piece { stored: Stored::Chunk(_, copies), .. }) = self.pieces.last_mut() {
            copies.push(copy);
        }
    }

    /// Records that chunks may be on a drive.
    pub(crate) fn uses(&mut self, drive: &NamedDrive) {
        if !self.drives.iter().any(|(id, _)| *id == drive.0) {
            self.drives.push(drive.clone());
        }
    }

    /// The slots that are covered only in part, each once.
    pub(crate) fn slots_in_part(&self) -> Vec<SlotIndex> {
        let in_part = self.pieces.iter().filter(|piece| !piece.is_whole_slot());
        let mut slots: Vec<_> = in_part.map(|piece| SlotIndex((piece.position / SLOT_LEN) as u32)).collect();
        slots.dedup();
        slots
    }

    /// The drives that have chunks, with these.
    pub(crate) fn chunks(&self) -> Vec<(NamedDrive, Vec<ChunkRef>)> {
        let places = |id| self.pieces.iter().flat_map(Piece::places).filter(move |at| at.drive == id);
        let drives = self.drives.iter();
        drives
            .map(|drive| (drive.clone(), places(drive.0).map(|at| at.chunk).collect()))
            .filter(|(_, chunks): &(_, Vec<_>)| !chunks.is_empty())
            .collect()
    }

    /// Whether some bytes are on this drive and on no other.
    pub(crate) fn needs(&self, drive: DriveId) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| piece.places().all(|at| at.drive == drive) && piece.places().next().is_some())
    }

    /// Gives up what is on a drive, which has failed. False if bytes would be lost with it.
    pub(crate) fn leave(&mut self, drive: DriveId) -> bool {
        let mut given_up = Vec::new();
        let left = self.pieces.iter_mut().all(|piece| match piece.leave(drive) {
            Some(chunk) => {
                given_up.extend(chunk);
                true
            }
            None => false,
        });
        if let Some((_, drive)) = self.drives.iter().find(|(id, _)| *id == drive)
            && !given_up.is_empty()
        {
            // Chunks that it cannot free are found by the next sweep.
            drop(drive.discard(given_up));
        }
        left
    }

    /// Whether each chunk is on so many drives.
    pub(crate) fn has_copies(&self, count: usize) -> bool {
        let of_chunk = |piece: &Piece| matches!(piece.stored, Stored::Chunk(..));
        self.pieces.iter().filter(|piece| of_chunk(piece)).all(|piece| piece.places().count() >= count)
    }

    /// Has a rebuild look for what lacks copies, once this is part of a file, if it may find the drives there.
    pub(crate) fn request_copies(&mut self, targets: &Targets, is_away: impl Fn(DriveId) -> bool) {
        self.wants_rebuild = !self.has_copies(targets.copies()) && targets.could_be_copied(is_away);
    }

    /// Records that the chunks have become part of a file. Returns whether a rebuild is wanted.
    pub(crate) fn keep(mut self) -> bool {
        self.kept = true;
        self.wants_rebuild
    }
}

impl Drop for NewData {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for ((_, drive), chunks) in self.chunks() {
            // The drive works on its own; chunks that it cannot free are found by the next sweep.
            drop(drive.discard(chunks));
        }
    }
}
