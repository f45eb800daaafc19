//! The synthetic directory of all cells: `NAME` for a cell, `.NAME` for its read-write tree.

use std::sync::Arc;

use afs_wire::ids::VolumeKind;
use afs_wire::mountpoint::Choice;

use crate::api::{DirEntry, Kind, NodeId};
use crate::key::CellTree;
use crate::location::{Cell, Location};
use crate::names::is_dot;

/// Meaning of a name in the directory of all cells.
pub(crate) struct CellsEntry<'a> {
    /// Name of the cell.
    pub cell: &'a str,
    /// The tree of the cell.
    pub tree: CellTree,
    /// Text of the corresponding mount point.
    pub text: String,
}

/// Meaning of a name in the directory of all cells, whether or not there is such a cell.
pub(crate) fn cell_entry(name: &[u8]) -> Option<CellsEntry<'_>> {
    let text = std::str::from_utf8(name).ok()?;
    let (cell, tree, kind) = match text.strip_prefix('.') {
        Some(rest) => (rest, CellTree::ReadWrite, '%'),
        None => (text, CellTree::Usual, '#'),
    };
    Some(CellsEntry { cell, tree, text: format!("{kind}{cell}:root.cell.") })
}

impl CellTree {
    /// The volume of the group `root.cell`.
    pub fn choice(self) -> Choice {
        match self {
            CellTree::Usual => Choice::ReadOnlyIfAny,
            CellTree::ReadWrite => Choice::Exactly(VolumeKind::ReadWrite),
        }
    }
}

/// Lists the directory of all cells from an offset: those that are to be listed. The offsets of a cell stay while others are added.
pub(crate) fn list_cells(location: &Location, offset: u64, max: usize) -> Vec<DirEntry> {
    let cells = location.cells();
    let of_cell = |cell: &Arc<Cell>| {
        let names = [cell.name.to_string(), format!(".{}", cell.name)];
        names.map(|name| Some(name).filter(|_| cell.is_listed()))
    };
    let dots = [Some(".".to_owned()), Some("..".to_owned())];
    let names = dots.into_iter().chain(cells.iter().flat_map(of_cell));
    let entry = |(n, name): (usize, Option<String>)| {
        let name = name?;
        let ino = if is_dot(name.as_bytes()) { NodeId::ROOT } else { NodeId(u64::MAX >> 1 ^ n as u64) };
        Some(DirEntry {
            next_offset: n as u64 + 1,
            ino,
            name: name.into_bytes(),
            kind: Some(Kind::Directory),
        })
    };
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    names.enumerate().skip(skip).filter_map(entry).take(max).collect()
}
