//! Slot: the extents of one mebibyte of a file, stored as a row.

use afs_wire::ids::DataVersion;
use bytes::{Bytes, BytesMut};

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::ids::Epoch;
use crate::located::LocatedChunk;

/// Bytes of a file that one row describes: 1 MiB. Large enough that a chunk is read and written at the speed
/// of the disk and that a gigabyte has only a thousand rows; small enough that a store of a few bytes
/// rewrites a short row.
pub const SLOT_LEN: u64 = 1 << 20;

/// Most bytes that are kept in the row itself: 16 KiB.
pub const LITERAL_MAX: usize = 16 << 10;

/// Extents in order, without overlap. Gaps read as zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) extents: Vec<Extent>,
    /// The data version that wrote the slot, if slots with this index were cut out before and rows of them
    /// are still present; else 0.
    pub(crate) version: DataVersion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte within the slot.
    pub(crate) start: u32,
    pub(crate) source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Literal(Bytes),
    /// Bytes `offset .. offset + len` of a chunk.
    Chunk {
        chunk: OwnedChunk,
        offset: u32,
        len: u32,
    },
}

/// A chunk and the epoch in which it was written (its birth), which determines the clones that may reference
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnedChunk {
    pub(crate) at: LocatedChunk,
    pub(crate) birth: Epoch,
}

impl OwnedChunk {
    /// Decodes a row of a deadlist of either format: chunk and birth.
    pub(crate) fn decode_row(row: Bytes) -> Decoded<Self> {
        let (chunk, birth) = row.split_at_checked(row.len().saturating_sub(4)).ok_or(BadRecord)?;
        let at = LocatedChunk::decode_row(row.slice_ref(chunk))?;
        Ok(Self { at, birth: Epoch(Fields::new(row.slice_ref(birth)).u32()?) })
    }

    /// Encodes a row of a deadlist.
    pub(crate) fn to_row(self) -> Vec<u8> {
        let mut row = self.at.to_bytes().to_vec();
        row.put_u32(self.birth.0);
        row
    }
}

impl Source {
    fn len(&self) -> u32 {
        match self {
            Self::Literal(bytes) => bytes.len() as u32,
            Self::Chunk { len, .. } => *len,
        }
    }

    /// The part between two of its own offsets.
    fn part(&self, from: u32, to: u32) -> Self {
        match self {
            Self::Literal(bytes) => Self::Literal(bytes.slice(from as usize..to as usize)),
            Self::Chunk { chunk, offset, .. } => {
                Self::Chunk { chunk: *chunk, offset: offset + from, len: to - from }
            }
        }
    }
}

impl Extent {
    pub(crate) fn end(&self) -> u32 {
        self.start + self.source.len()
    }
}

impl Slot {
    pub(crate) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Overwrites a range with new bytes.
    pub(crate) fn write(&mut self, extent: Extent) {
        self.erase(extent.start, extent.end());
        let at = self.extents.partition_point(|other| other.start < extent.start);
        self.extents.insert(at, extent);
        self.join_literals(at);
        if at > 0 {
            self.join_literals(at - 1);
        }
    }

    /// Makes a range read as zeros.
    pub(crate) fn erase(&mut self, from: u32, to: u32) {
        let mut kept = Vec::with_capacity(self.extents.len() + 2);
        for extent in self.extents.drain(..) {
            if extent.end() <= from || extent.start >= to {
                kept.push(extent);
                continue;
            }
            let len = extent.source.len();
            if extent.start < from {
                kept.push(Extent { start: extent.start, source: extent.source.part(0, from - extent.start) });
            }
            if extent.end() > to {
                kept.push(Extent { start: to, source: extent.source.part(to - extent.start, len) });
            }
        }
        self.extents = kept;
    }

    /// The chunks it references, each once, in order.
    pub(crate) fn chunks(&self) -> Vec<OwnedChunk> {
        let mut chunks: Vec<_> = self
            .extents
            .iter()
            .filter_map(|extent| match &extent.source {
                Source::Chunk { chunk, .. } => Some(*chunk),
                Source::Literal(_) => None,
            })
            .collect();
        chunks.sort_unstable();
        chunks.dedup();
        chunks
    }

    /// Runs of extents with less than [`HOLE_MIN`] between one and the next.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &[Extent]> {
        self.extents.chunk_by(|one, next| next.start - one.end() < HOLE_MIN)
    }

    /// Bytes that count against the quota: all but holes of [`HOLE_MIN`] and more, each run in whole KiB, so
    /// that its row is charged too. Compaction does not change it.
    pub(crate) fn allocated(&self) -> u64 {
        let run = |run: &[Extent]| match run {
            [first, .., last] => u64::from(last.end() - first.start),
            [only] => u64::from(only.source.len()),
            [] => 0,
        };
        self.runs().map(|extents| run(extents).next_multiple_of(1024)).sum()
    }

    /// Whether it is so scattered that it should be compacted.
    pub(crate) fn wants_compaction(&self) -> bool {
        self.extents.len() > EXTENTS_MAX || self.literal_bytes() > LITERAL_MAX
    }

    /// Whether it is close to the point where it must be compacted.
    pub(crate) fn is_crowded(&self) -> bool {
        self.extents.len() > 8 * EXTENTS_MAX || self.literal_bytes() > 8 * LITERAL_MAX
    }

    /// Whether it must be compacted.
    pub(crate) fn needs_compaction(&self) -> bool {
        self.extents.len() > 16 * EXTENTS_MAX || self.literal_bytes() > 16 * LITERAL_MAX
    }

    fn literal_bytes(&self) -> usize {
        let literal = |extent: &Extent| match &extent.source {
            Source::Literal(bytes) => bytes.len(),
            Source::Chunk { .. } => 0,
        };
        self.extents.iter().map(literal).sum()
    }

    /// Joins two adjacent literals.
    fn join_literals(&mut self, at: usize) {
        let [first, second, ..] = &self.extents[at..] else { return };
        if let (Source::Literal(head), Source::Literal(tail)) = (&first.source, &second.source)
            && first.end() == second.start
        {
            let mut joined = BytesMut::with_capacity(head.len() + tail.len());
            joined.extend_from_slice(head);
            joined.extend_from_slice(tail);
            self.extents[at].source = Source::Literal(joined.freeze());
            self.extents.remove(at + 1);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(9 + 52 * self.extents.len() + self.literal_bytes());
        match self.version {
            DataVersion(0) => out.put_u8(VERSION),
            DataVersion(version) => {
                out.put_u8(VERSION_WITH_DATA_VERSION);
                out.put_u64(version);
            }
        }
        for extent in &self.extents {
            match &extent.source {
                Source::Literal(bytes) => {
                    out.put_u8(LITERAL);
                    out.put_u32(extent.start);
                    out.put_counted(bytes);
                }
                Source::Chunk { chunk, offset, len } => {
                    out.put_u8(LOCATED_CHUNK);
                    out.put_u32(extent.start);
                    out.put_u32(*len);
                    out.put_u32(*offset);
                    out.put_u32(chunk.birth.0);
                    out.extend_from_slice(&chunk.at.to_bytes());
                }
            }
        }
        out
    }

    /// Decodes a row and checks the properties that readers rely on: order, no overlap, bounds of slot and
    /// chunk.
    pub(crate) fn decode(record: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(record);
        let version = match fields.u8()? {
            VERSION => DataVersion(0),
            VERSION_WITH_DATA_VERSION => DataVersion(fields.u64()?),
            _ => return Err(BadRecord),
        };
        let mut extents = Vec::new();
        let mut reached = 0u64;
        while !fields.is_empty() {
            let extent = decode_extent(&mut fields)?;
            let len = extent.source.len();
            if len == 0 || u64::from(extent.start) < reached {
                return Err(BadRecord);
            }
            reached = u64::from(extent.start) + u64::from(len);
            if reached > SLOT_LEN {
                return Err(BadRecord);
            }
            extents.push(extent);
        }
        Ok(Self { extents, version })
    }
}

fn decode_extent(fields: &mut Fields) -> Decoded<Extent> {
    let kind = fields.u8()?;
    let start = fields.u32()?;
    let source = match kind {
        LITERAL => Source::Literal(fields.counted()?),
        CHUNK | LOCATED_CHUNK => {
            let (len, offset, birth) = (fields.u32()?, fields.u32()?, Epoch(fields.u32()?));
            let is_old = kind == CHUNK;
            let at =
                if is_old { LocatedChunk::decode_format_2(fields)? } else { LocatedChunk::decode(fields)? };
            if offset.checked_add(len).is_none_or(|end| end > at.chunk.len) {
                return Err(BadRecord);
            }
            Source::Chunk { chunk: OwnedChunk { at, birth }, offset, len }
        }
        _ => return Err(BadRecord),
    };
    Ok(Extent { start, source })
}

const VERSION: u8 = 1;
const VERSION_WITH_DATA_VERSION: u8 = 2;
const LITERAL: u8 = 1;
/// Of the second format: a chunk on the store's own drive.
const CHUNK: u8 = 2;
const LOCATED_CHUNK: u8 = 3;
pub(crate) const EXTENTS_MAX: usize = 16;
/// Shorter holes within a slot are filled by compaction, which leaves at most 16 extents: 64 KiB.
pub(crate) const HOLE_MIN: u32 = (SLOT_LEN as usize / EXTENTS_MAX) as u32;

#[cfg(test)]
mod tests {
    use super::*;
    use afs_drive::{ChunkId, ChunkRef, DriveId};

    fn literal(start: u32, bytes: &'static [u8]) -> Extent {
        Extent { start, source: Source::Literal(Bytes::from_static(bytes)) }
    }

    fn chunk(start: u32, number: u64, offset: u32, len: u32) -> Extent {
        let chunk = ChunkRef { id: ChunkId::from_parts(1, number), len: 1000, crc: 5 };
        let at = LocatedChunk { drive: DriveId(number as u32), chunk };
        Extent { start, source: Source::Chunk { chunk: OwnedChunk { at, birth: Epoch::FIRST }, offset, len } }
    }

    #[test]
    fn an_overwrite_splits_what_it_covers() {
        let mut slot = Slot::default();
        slot.write(chunk(0, 1, 0, 1000));
        slot.write(chunk(100, 2, 0, 50));
        assert_eq!(slot.extents, [chunk(0, 1, 0, 100), chunk(100, 2, 0, 50), chunk(150, 1, 150, 850)]);
        assert_eq!(slot.chunks().len(), 2);
        slot.write(literal(50, b"abc"));
        slot.write(literal(53, b"def"));
        slot.write(literal(48, b"xy"));
        assert_eq!(slot.extents[..3], [chunk(0, 1, 0, 48), literal(48, b"xyabcdef"), chunk(56, 1, 56, 44)]);
        slot.erase(0, 2000);
        assert!(slot.is_empty());
    }

    #[test]
    fn a_row_reads_back_and_bad_rows_are_refused() {
        for version in [0, 7 << 40].map(DataVersion) {
            let extents = vec![literal(3, b"abc"), chunk(6, 1, 10, 20), chunk(40, 2, 0, 1000)];
            let slot = Slot { extents, version };
            let stored = Bytes::from(slot.encode());
            assert_eq!(Slot::decode(stored.clone()), Ok(slot));
            for len in 0..stored.len() {
                if let Ok(cut) = Slot::decode(stored.slice(..len)) {
                    assert!(cut.extents.len() < 3);
                }
            }
        }
        for bad in [
            vec![literal(3, b"abc"), literal(5, b"x")],
            vec![chunk(0, 1, 990, 20)],
            vec![chunk(SLOT_LEN as u32 - 5, 1, 0, 6)],
            vec![literal(0, b"")],
        ] {
            assert_eq!(
                Slot::decode(Slot { extents: bad, ..Slot::default() }.encode().into()),
                Err(BadRecord)
            );
        }
    }
}
