//! Names: look-up of names in cached directories, without calls to servers.
//!
//! Has the contents of directories, the names that this mount adds, and the bytes that directories take in memory.
//! [`crate::promises`] determines whether contents are valid, and the operations who may see them.

mod cells;
mod directories;
mod name;
mod snapshots;

pub(crate) use cells::{CellsEntry, cell_entry, list_cells};
pub(crate) use directories::{Directories, TargetBefore};
pub(crate) use name::{NAME_MAX, checked, components, is_dot};
pub(crate) use snapshots::{list_snapshots, usable_snapshots};

use std::sync::Arc;

use crate::config::RootKind;
use crate::key::Key;
use crate::vnode::VnodeTable;

/// Limit of values of `@sys`.
const SYSNAMES_MAX: usize = 32;

/// Names that this mount adds to those of the servers, and contents of directories.
pub(crate) struct Names {
    root: RootKind,
    sysnames: Vec<String>,
    /// Name of the directory of snapshots in the root of a volume.
    snapshots: Option<String>,
    directories: Directories,
}

impl Names {
    /// `directory_bytes_max` limits the contents of all directories in memory.
    pub fn new(
        root: RootKind,
        sysnames: Vec<String>,
        snapshots: Option<String>,
        vnodes: Arc<VnodeTable>,
        directory_bytes_max: u64,
    ) -> Self {
        Names { root, sysnames, snapshots, directories: Directories::new(vnodes, directory_bytes_max) }
    }

    /// What the root of the mount is.
    pub fn root(&self) -> &RootKind {
        &self.root
    }

    /// Values of `@sys`, the first choice first.
    pub fn sysnames(&self) -> &[String] {
        &self.sysnames
    }

    /// Contents of directories in memory.
    pub fn directories(&self) -> &Directories {
        &self.directories
    }

    /// True if a name that a directory does not have is that of its directory of snapshots.
    pub fn is_snapshots_name(&self, dir: Key, name: &[u8]) -> bool {
        dir.is_volume_root() && self.snapshots.as_ref().is_some_and(|known| known.as_bytes() == name)
    }

    /// Names to look up for a name, of which the first that exists is used: for a name that ends in `@sys` with each
    /// value in its place, at most 32, then the name itself.
    pub fn candidates(&self, name: &[u8]) -> Vec<Vec<u8>> {
        let values = name.strip_suffix(b"@sys").map(|stem| {
            let values = self.sysnames.iter().take(SYSNAMES_MAX);
            values.map(move |value| [stem, value.as_bytes()].concat())
        });
        values.into_iter().flatten().chain([name.to_vec()]).collect()
    }
}

#[cfg(test)]
mod tests;
