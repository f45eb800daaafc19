//! The synthetic directory of all cells: `NAME` for a cell, `.NAME` for its read-write tree.

use afs_wire::ids::VolumeKind;
use afs_wire::mountpoint::Choice;

use crate::api::{DirEntry, Kind, NodeId};
use crate::key::CellIndex;
use crate::location::Location;
use crate::names::is_dot;

/// Target of a name in the directory of all cells.
pub(crate) struct CellsEntry {
    pub cell: CellIndex,
    /// The volume of `root.cell`.
    pub choice: Choice,
    /// Text of the corresponding mount point.
    pub text: String,
}

/// Finds a name in the directory of all cells, ignoring case.
pub(crate) fn cell_entry(location: &Location, name: &[u8]) -> Option<CellsEntry> {
    let text = std::str::from_utf8(name).ok()?;
    let (plain, choice, kind) = match text.strip_prefix('.') {
        Some(rest) => (rest, Choice::Exactly(VolumeKind::ReadWrite), '%'),
        None => (text, Choice::ReadOnlyIfAny, '#'),
    };
    let cell = location.cell_named(plain)?;
    Some(CellsEntry { cell, choice, text: format!("{kind}{plain}:root.cell.") })
}

/// Lists the directory of all cells from an offset.
pub(crate) fn list_cells(location: &Location, offset: u64, max: usize) -> Vec<DirEntry> {
    let cells = location.cells().iter().flat_map(|cell| [cell.name.to_string(), format!(".{}", cell.name)]);
    let names = [".".to_owned(), "..".to_owned()].into_iter().chain(cells);
    let entry = |(n, name): (usize, String)| DirEntry {
        next_offset: n as u64 + 1,
        ino: if is_dot(name.as_bytes()) { NodeId::ROOT } else { NodeId(u64::MAX >> 1 ^ n as u64) },
        name: name.into_bytes(),
        kind: Some(Kind::Directory),
    };
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    names.enumerate().map(entry).skip(skip).take(max).collect()
}
