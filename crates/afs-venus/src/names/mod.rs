//! Names: what the names of directories stand for, without a word to a server.
//!
//! Knows contents of directories, the names that this mount adds to them, and the bytes that directories take in memory.
//! Whether contents count at this moment is decided by [`crate::promises`]; who may know them, by the operations.

mod cells;
mod directories;
mod name;
mod snapshots;

pub(crate) use cells::{cell_entry, list_cells};
pub(crate) use directories::{Directories, TargetBefore};
pub(crate) use name::{NAME_MAX, checked, components, is_dot};
pub(crate) use snapshots::{list_snapshots, usable_snapshots};

use std::sync::Arc;

use crate::config::RootKind;
use crate::key::Key;
use crate::vnode::VnodeTable;

/// Values of `@sys` tried.
const SYSNAMES_MAX: usize = 32;

/// The names that this mount adds to those of the servers, and the contents of directories.
pub(crate) struct Names {
    root: RootKind,
    sysnames: Vec<String>,
    /// The name under which a volume's root shows its snapshots.
    snapshots: Option<String>,
    directories: Directories,
}

impl Names {
    /// `directory_bytes_max` bounds the contents of all directories in memory.
    pub fn new(
        root: RootKind,
        sysnames: Vec<String>,
        snapshots: Option<String>,
        vnodes: Arc<VnodeTable>,
        directory_bytes_max: u64,
    ) -> Self {
        Names { root, sysnames, snapshots, directories: Directories::new(vnodes, directory_bytes_max) }
    }

    /// What the root of the mount shows.
    pub fn root(&self) -> &RootKind {
        &self.root
    }

    /// Contents of directories in memory.
    pub fn directories(&self) -> &Directories {
        &self.directories
    }

    /// Whether a name that is not in a directory is the one under which snapshots are found there.
    pub fn is_snapshots_name(&self, dir: Key, name: &[u8]) -> bool {
        dir.is_volume_root() && self.snapshots.as_ref().is_some_and(|known| known.as_bytes() == name)
    }

    /// What to look for when a name is asked for, the first one found counts: with `@sys` at its end every value of it, at
    /// most 32, and then the name itself.
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
