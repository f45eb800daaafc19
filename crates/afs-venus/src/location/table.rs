//! Table of the cells of a mount, and of the servers and volumes known so far.

use std::sync::Arc;

use crate::key::{CellIndex, Key};
use crate::location::{Cell, ServerTable, Volume, VolumeTable};

/// Known locations.
pub(crate) struct Location {
    cells: Vec<Cell>,
    servers: ServerTable,
    volumes: VolumeTable,
}

impl Location {
    /// A table of cells alone; the first is the home cell.
    pub fn new(cells: Vec<Cell>) -> Self {
        Location { cells, servers: ServerTable::default(), volumes: VolumeTable::default() }
    }

    /// All cells, the home cell first.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub fn cell(&self, index: CellIndex) -> Option<&Cell> {
        self.cells.get(usize::from(index.0))
    }

    /// The cell of a name, ignoring case.
    pub fn cell_named(&self, name: &str) -> Option<CellIndex> {
        let found = self.cells.iter().position(|cell| cell.name.as_str().eq_ignore_ascii_case(name));
        found.map(|index| CellIndex(index as u16))
    }

    pub fn servers(&self) -> &ServerTable {
        &self.servers
    }

    pub fn volumes(&self) -> &VolumeTable {
        &self.volumes
    }

    /// The volume of an object, if it is known.
    pub fn volume_of(&self, key: Key) -> Option<Arc<Volume>> {
        self.volumes.get(key.cell, key.fid.volume)
    }
}
