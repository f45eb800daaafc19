//! Layout of a range of a file: in which chunks its bytes lie.

use std::ops::Range;
use std::sync::Arc;

use afs_wire::fs::FileKind;
use afs_wire::ids::Fid;

use crate::error::VolumeError;
use crate::extent::{Extent, SLOT_LEN, Source};
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::reads::Reads;
use crate::record::VnodeRecord;

/// Most slots of one layout: 64 MiB.
const SLOTS_MAX: u64 = 64;

/// Where the bytes of a part of a file are.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The file, in the version whose bytes these are.
    pub record: Arc<VnodeRecord>,
    /// The parts, in order; what lies between them, and before the end, is zeros. The first and the last may reach beyond the
    /// range that was asked for.
    pub parts: Vec<LaidOut>,
    /// Where the layout ends: at the end of the range or of the file, or before where there is more than fits.
    pub end: u64,
}

/// A part of a file that is stored in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Its first byte in the file.
    pub start: u64,
    /// Its bytes.
    pub len: u32,
    /// The chunks that have them, each with the place of the first byte in it: the one that the file refers to, and its copies. None
    /// for bytes that are in the index.
    pub copies: Vec<(LocatedChunk, u32)>,
}

impl LaidOut {
    /// Its bytes in the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.len.into())
    }
}

impl Reads<'_> {
    /// Where the bytes of a range of a file are, in at most `parts_max` parts, and at most 64 MiB of it. Nothing keeps the chunks
    /// there: who reads them later must notice that they are gone.
    ///
    /// # Errors
    /// As [`Reads::fetch`]; `Invalid` for what is no file, and an end before the start.
    pub fn layout(&self, fid: Fid, start: u64, end: u64, parts_max: usize) -> Result<Layout, VolumeError> {
        let record = self.fetch(fid)?;
        if record.kind != FileKind::File || end < start {
            return Err(VolumeError::Invalid);
        }
        let last = (start / SLOT_LEN).saturating_add(SLOTS_MAX).saturating_mul(SLOT_LEN);
        let mut layout =
            Layout { end: end.min(record.length).min(last).max(start), record, parts: Vec::new() };
        let mut base = start / SLOT_LEN * SLOT_LEN;
        while base < layout.end {
            // A file of that length cannot be made: the cast loses nothing.
            let (record, slot) = self.slot_of_file(fid, SlotIndex((base / SLOT_LEN) as u32))?;
            if record.data_version != layout.record.data_version {
                return Err(VolumeError::Busy);
            }
            let range = (start, layout.end);
            let inside = slot.extents.iter().filter(|extent| lies_in(extent, base, range));
            for extent in inside {
                if layout.parts.len() >= parts_max {
                    layout.end = (base + u64::from(extent.start)).max(start);
                    return Ok(layout);
                }
                layout.parts.push(self.laid_out(extent, base)?);
            }
            base += SLOT_LEN;
        }
        Ok(layout)
    }

    fn laid_out(&self, extent: &Extent, base: u64) -> Result<LaidOut, VolumeError> {
        let copies = match &extent.source {
            Source::Chunk { chunk, offset, .. } => {
                let others = self.copies(chunk.at)?.into_iter();
                std::iter::once(chunk.at).chain(others).map(|at| (at, *offset)).collect()
            }
            Source::Literal(_) => Vec::new(),
        };
        Ok(LaidOut { start: base + u64::from(extent.start), len: extent.end() - extent.start, copies })
    }
}

fn lies_in(extent: &Extent, base: u64, (start, end): (u64, u64)) -> bool {
    base + u64::from(extent.end()) > start && base + u64::from(extent.start) < end
}
