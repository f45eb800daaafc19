//! Finder of the stores in a directory, by the names of their files.

use super::StoresError;
use crate::servers::EMBEDDED;
use std::fs;
use std::path::{Path, PathBuf};

/// A store that a server may not have open meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineStore {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

/// What a store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The index of a partition.
    Partition,
    /// The databases of a cell.
    Databases,
}

/// The stores in a state directory, in the directory of a partition, or the store that the directory itself is.
///
/// # Errors
/// There is none.
pub fn find(directory: &Path) -> Result<Vec<OfflineStore>, StoresError> {
    let mut found: Vec<_> = candidates(directory).into_iter().filter(|path| is_store(path)).collect();
    found.sort();
    if found.is_empty() {
        return Err(StoresError::NoStore(directory.to_owned()));
    }
    Ok(found.into_iter().map(|path| OfflineStore { kind: kind(&path), path }).collect())
}

fn candidates(directory: &Path) -> Vec<PathBuf> {
    if is_store(directory) {
        return vec![directory.to_owned()];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let partitions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("vicep"));
    let partitions = partitions.map(|entry| entry.path().join(INDEX));
    partitions.chain([directory.join(INDEX), directory.join(EMBEDDED)]).collect()
}

fn is_store(path: &Path) -> bool {
    FILES.iter().any(|name| path.join(name).is_file())
}

fn kind(path: &Path) -> Kind {
    let is_index = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(INDEX));
    if is_index { Kind::Partition } else { Kind::Databases }
}

const INDEX: &str = "index";
const FILES: [&str; 4] = ["index", "log.a", "log.b", "log.turn"];
