//! Entry points of the fuzz targets: any bytes must be decoded without a panic.

use afs_wire::ids::VnodeId;
use bytes::Bytes;

use crate::codec::Fields;
use crate::cuts::Cuts;
use crate::extent::Slot;
use crate::group::Group;
use crate::header::VolumeHeader;
use crate::record::VnodeRecord;

/// Decodes a row of the index. The first byte selects the table.
pub fn index_row(bytes: &[u8]) {
    let Some((&table, row)) = bytes.split_first() else { return };
    let row = Bytes::copy_from_slice(row);
    match table % 8 {
        0 => drop(VnodeRecord::decode(VnodeId(1), row)),
        1 => drop(VolumeHeader::decode(row)),
        2 => drop(Slot::decode(row)),
        3 => drop(Cuts::decode(&mut Fields::new(row))),
        4 => drop(crate::doomed_row::decode(&row)),
        5 => drop(Group::decode(row)),
        6 => drop(crate::locks::decode(&row, row.get(..1).unwrap_or_default())),
        _ => drop(crate::scrub::ScrubState::decode(row)),
    }
}
