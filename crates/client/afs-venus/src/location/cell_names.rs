//! Names of the cells of a mount, by index. Cells are added and never removed: an index stands for one cell for ever.

use std::collections::BTreeMap;

use afs_wire::ids::CellName;
use parking_lot::Mutex;

use crate::key::CellIndex;

/// Names by index, and indices by name.
#[derive(Default)]
pub(crate) struct CellNames(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    names: Vec<CellName>,
    indices: BTreeMap<CellName, CellIndex>,
}

impl CellNames {
    /// The index of a name, which is added if it is new. `None` if there are `max` already.
    pub fn add(&self, name: &CellName, max: usize) -> Option<CellIndex> {
        let mut inner = self.0.lock();
        if let Some(index) = inner.indices.get(name) {
            return Some(*index);
        }
        if inner.names.len() >= max {
            return None;
        }
        let index = CellIndex(u16::try_from(inner.names.len()).ok()?);
        inner.names.push(name.clone());
        inner.indices.insert(name.clone(), index);
        Some(index)
    }

    pub fn name(&self, index: CellIndex) -> Option<CellName> {
        self.0.lock().names.get(usize::from(index.0)).cloned()
    }

    /// The index of a name, ignoring case.
    pub fn index(&self, name: &str) -> Option<CellIndex> {
        self.0.lock().indices.get(name.to_ascii_lowercase().as_str()).copied()
    }
}
