//! Table of the cells of a mount, and of the servers and volumes known so far.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::key::{CellIndex, Key};
use crate::location::{Cell, CellNames, ServerTable, Volume, VolumeTable};

/// Limit of the cells of a mount: the public `CellServDB` has some two hundred.
pub(crate) const CELLS_MAX: usize = 1024;

/// Known locations.
pub(crate) struct Location {
    names: Arc<CellNames>,
    /// By index. Cells are added and never removed.
    cells: Mutex<Vec<Arc<Cell>>>,
    servers: ServerTable,
    volumes: VolumeTable,
}

impl Location {
    /// A table of cells alone; the first is the home cell. Of several with one name the first counts; cells beyond 1024 are left out.
    pub fn new(cells: Vec<Cell>) -> Self {
        let location = Location {
            names: Arc::default(),
            cells: Mutex::default(),
            servers: ServerTable::default(),
            volumes: VolumeTable::default(),
        };
        for cell in cells {
            location.add(cell);
        }
        location
    }

    /// Adds a cell, unless there is one with its name already. `None` if there are too many.
    pub fn add(&self, cell: Cell) -> Option<CellIndex> {
        let mut cells = self.cells.lock();
        let index = self.names.add(&cell.name, CELLS_MAX)?;
        if usize::from(index.0) == cells.len() {
            cells.push(Arc::new(cell));
        }
        Some(index)
    }

    /// All cells, the home cell first.
    pub fn cells(&self) -> Vec<Arc<Cell>> {
        self.cells.lock().clone()
    }

    pub fn cell(&self, index: CellIndex) -> Option<Arc<Cell>> {
        self.cells.lock().get(usize::from(index.0)).cloned()
    }

    /// The cell of a name, ignoring case.
    pub fn cell_named(&self, name: &str) -> Option<CellIndex> {
        self.names.index(name)
    }

    /// Names of the cells, by index.
    pub fn names(&self) -> &Arc<CellNames> {
        &self.names
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
