//! Inventory of a state directory, as JSON: `inventory.json`. By it a start finds that a partition or a secret is missing, or another's, and
//! makes no new one in its place.

use crate::error::CellResult;
use afs_files::{Syntax, Versioned, VersionedFileError};
use afs_wire::ids::{PartitionId, Uuid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file.
const FILE: &str = "inventory.json";
const FORMAT: u32 = 1;
/// Files that are never made anew where they were before, with what a new one would mean.
const FILES: [(&str, &str); 4] = [
    ("cell.json", "with a new one the server would be another one to the cell"),
    ("keys/KeyFileExt", "with new keys all tokens and the other servers' keys would be worth nothing"),
    ("keys/login", "with a new one no passphrase would be right any more"),
    ("db/index", "new databases would know no user and no volume"),
];

/// What a state directory had at the last start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    partitions: BTreeMap<PartitionId, Uuid>,
    files: BTreeSet<String>,
}

/// A file of a state directory that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// Its name in the state directory.
    pub name: String,
    /// What a new one would mean.
    pub meaning: &'static str,
}

#[derive(Serialize, Deserialize)]
struct InventoryFile {
    format: u32,
    partitions: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Versioned for InventoryFile {
    const SYNTAX: Syntax = Syntax::Json;
    const REMEDY: &'static str = "put a good copy back; or, if all partitions and keys are there, remove it: the next start lists what it finds";
}

impl Inventory {
    /// Reads the file; `None` if no start has written it.
    ///
    /// # Errors
    /// As [`Versioned::read_file`].
    pub fn read(state: &Path) -> CellResult<Option<Self>> {
        let path = state.join(FILE);
        let file = InventoryFile::read_file(&path)?;
        file.map(|file| Self::of(&path, file)).transpose()
    }

    fn of(path: &Path, file: InventoryFile) -> CellResult<Self> {
        let InventoryFile { partitions, files, .. } = file;
        let one = |(name, id): (String, String)| Some((name.parse().ok()?, id.parse().ok()?));
        let partitions: Option<_> = partitions.into_iter().map(one).collect();
        let partitions = partitions.ok_or_else(|| VersionedFileError::Damaged {
            path: path.to_owned(),
            why: "it names no partition".into(),
            remedy: InventoryFile::REMEDY,
        })?;
        Ok(Self { partitions, files })
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn write(&self, state: &Path) -> CellResult {
        let partitions = self.partitions.iter().map(|(name, id)| (name.to_string(), id.to_string()));
        let file =
            InventoryFile { format: FORMAT, partitions: partitions.collect(), files: self.files.clone() };
        Ok(file.write_file(&state.join(FILE))?)
    }

    /// The identity of the partition that was at a place.
    pub(crate) fn partition(&self, place: PartitionId) -> Option<Uuid> {
        self.partitions.get(&place).copied()
    }

    pub(crate) fn has_partitions(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// The place of a partition.
    pub(crate) fn place(&self, id: Uuid) -> Option<PartitionId> {
        self.partitions.iter().find(|(_, known)| **known == id).map(|(place, _)| *place)
    }

    pub(crate) fn add_partition(&mut self, place: PartitionId, id: Uuid) {
        self.partitions.insert(place, id);
    }

    /// The first file that is no longer there.
    pub(crate) fn missing(&self, state: &Path) -> Option<MissingFile> {
        let known = FILES.iter().filter(|(name, _)| self.files.contains(*name));
        let mut missing = known.filter(|(name, _)| !exists(&state.join(name)));
        missing.next().map(|(name, meaning)| MissingFile { name: (*name).to_owned(), meaning })
    }

    /// Notes the files that are there now.
    pub(crate) fn note_files(&mut self, state: &Path) {
        let there = FILES.iter().filter(|(name, _)| exists(&state.join(name)));
        self.files = there.map(|(name, _)| (*name).to_owned()).collect();
    }

    /// Forgets a partition, such as `/vicepb`, or a file, such as `keys/login`: the next start takes or makes another. False if there is none
    /// of that name.
    pub fn forget(&mut self, name: &str) -> bool {
        let place = name.parse::<PartitionId>().ok();
        place.is_some_and(|place| self.partitions.remove(&place).is_some()) || self.files.remove(name)
    }

    /// What it has, as [`Inventory::forget`] takes it.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.partitions.keys().map(ToString::to_string).chain(self.files.iter().cloned()).collect()
    }
}

/// A file that cannot be looked at is not missing.
fn exists(path: &PathBuf) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    let file = InventoryFile::decode(Path::new(FILE), bytes);
    file.is_ok_and(|file| Inventory::of(Path::new(FILE), file).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was_and_misses_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Inventory::read(dir.path()).unwrap(), None);
        fs::create_dir(dir.path().join("keys")).unwrap();
        let login = dir.path().join("keys/login");
        fs::write(&login, "secret").unwrap();
        let mut inventory = Inventory::default();
        inventory.note_files(dir.path());
        inventory.add_partition(PartitionId(1), Uuid([7; 16]));
        inventory.write(dir.path()).unwrap();
        assert_eq!(Inventory::read(dir.path()).unwrap().as_ref(), Some(&inventory));
        assert_eq!(inventory.names(), ["/vicepb", "keys/login"]);
        assert_eq!(inventory.missing(dir.path()), None);

        fs::remove_file(&login).unwrap();
        assert_eq!(inventory.missing(dir.path()).unwrap().name, "keys/login");
        assert!(inventory.forget("keys/login") && inventory.forget("b") && !inventory.forget("b"));
        assert_eq!((inventory.missing(dir.path()), inventory), (None, Inventory::default()));
    }
}
