//! Description of a store: file, ranges, length.

use afs_wire::fs::STORE_RANGES_MAX;
use afs_wire::ids::Fid;
use afs_wire::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};

use super::OPEN_END;
use crate::capability::{ByteRange, StreamName};

/// Most ranges of a store: as many as StoreRanges has.
pub const RANGES_MAX: usize = STORE_RANGES_MAX;

/// Bytes of the longest description.
pub(super) const WIRE_LEN_MAX: usize = Fid::WIRE_LEN + 8 + 4 + RANGES_MAX * 16;

/// Which bytes a client will give to a drive for a file. The bytes of all ranges follow in their order.
///
/// The store takes effect only by CommitStore, which also says what else changes: status, final length, expected version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreDescription {
    /// The file.
    pub fid: Fid,
    /// Length to which the file will be truncated before the bytes are in it, if it is longer. The drive that keeps account of
    /// space needs it to know by how much the file grows.
    pub file_length: u64,
    /// In ascending order, without overlap, none of them empty.
    ranges: BoundedVec<ByteRange, RANGES_MAX>,
    total: u64,
}

impl StoreDescription {
    /// A description. `None` for ranges that are out of order, overlap, are empty, or are more than [`RANGES_MAX`]. No range at
    /// all is a store of no bytes, which a truncation is.
    #[must_use]
    pub fn new(fid: Fid, file_length: u64, ranges: Vec<ByteRange>) -> Option<Self> {
        let ranges = BoundedVec::try_from(ranges).ok()?;
        let total = total(&ranges)?;
        Some(Self { fid, file_length, ranges, total })
    }

    /// The description of a stream of a volume, whose length is not known yet.
    #[must_use]
    pub fn of_stream(stream: StreamName) -> Self {
        let ranges = BoundedVec::first_of([ByteRange::ALL]);
        Self { fid: stream.fid(), file_length: 0, ranges, total: OPEN_END }
    }

    /// The ranges.
    #[must_use]
    pub fn ranges(&self) -> &[ByteRange] {
        &self.ranges
    }

    /// Bytes in all ranges.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// From the first range's start to the last one's end.
    #[must_use]
    pub fn extent(&self) -> ByteRange {
        let ends = self.ranges.first().zip(self.ranges.last());
        ends.and_then(|(first, last)| ByteRange::new(first.start(), last.end()))
            .unwrap_or_else(|| ByteRange::at(0, 0).unwrap_or(ByteRange::ALL))
    }
}

/// Bytes in all ranges; `None` if they are not as they should be.
fn total(ranges: &[ByteRange]) -> Option<u64> {
    let in_order = ranges.windows(2).all(|pair| pair[0].end() <= pair[1].start());
    if !in_order || ranges.iter().any(|range| range.is_empty()) {
        return None;
    }
    Some(ranges.iter().map(|range| range.len()).sum())
}

impl Encode for StoreDescription {
    fn encode(&self, out: &mut Vec<u8>) {
        self.fid.encode(out);
        self.file_length.encode(out);
        self.ranges.encode(out);
    }
}

impl Decode for StoreDescription {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (fid, file_length) = (Fid::decode(r)?, r.u64()?);
        let ranges = BoundedVec::<ByteRange, RANGES_MAX>::decode(r)?.into_vec();
        let count = ranges.len() as u32;
        Self::new(fid, file_length, ranges)
            .ok_or(DecodeError::BadValue { what: "table of ranges", value: count })
    }
}
