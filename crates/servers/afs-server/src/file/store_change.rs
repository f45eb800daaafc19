//! What a store changes of a file's data: its ranges, its new length, and the version that the file must have.

use afs_volume::VnodeRecord;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{DataVersion, Fid};

/// One change of a file's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) fid: Fid,
    pub(crate) status: SetStatus,
    /// Length to which the file is truncated first, if it is longer.
    pub(crate) file_length: u64,
    /// Positions and lengths, in ascending order, without overlap, none of them empty. The bytes follow in
    /// this order.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Length to which the file is extended with zeros, if it is shorter.
    pub(crate) grown_to: u64,
    /// The version that the file must have; `None` for any.
    pub(crate) expected: Option<DataVersion>,
}

impl Change {
    /// Bytes in all ranges.
    pub(super) fn len(&self) -> u64 {
        self.ranges.iter().map(|(_, length)| length).sum()
    }

    /// Where the last range ends.
    pub(super) fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |(position, length)| position + length)
    }

    /// KiB by which the file grows beyond what is kept of it. Holes, and what exactly a truncation frees,
    /// only the transaction knows.
    pub(super) fn growth(&self, record: &VnodeRecord) -> u64 {
        let kept = record.length.min(self.file_length);
        let given_back = if kept < record.length { record.blocks() } else { 0 };
        let behind =
            |(position, length): &(u64, u64)| (position + length).saturating_sub(kept.max(*position));
        self.ranges.iter().map(behind).sum::<u64>().div_ceil(1024).saturating_sub(given_back)
    }
}
