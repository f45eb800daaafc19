//! Inventory of a state directory, as JSON: `inventory.json`. By it a start finds that a partition, a secret or another file is missing, or
//! another's, and makes no new one in its place.

use crate::error::CellResult;
use afs_files::{Syntax, Versioned, VersionedFileError};
use afs_wire::ids::{PartitionId, Uuid};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

/// Name of the file.
const FILE: &str = "inventory.json";
const FORMAT: u32 = 1;
/// The registry of drives.
pub(crate) const DRIVES: &str = "drives.toml";
/// The key file of the cell.
pub(crate) const KEYS: &str = "keys/KeyFileExt";

/// A kind of file that is never made anew where it was before.
struct Kind {
    name: &'static str,
    /// What another would mean.
    meaning: &'static str,
    /// Whether this program alone changes it, and notes each change.
    has_sum: bool,
}

const KINDS: [Kind; 6] = [
    kind("cell.json", "with a new one the server would be another one to the cell", false),
    kind(KEYS, "with other keys all tokens and the other servers' keys would be worth nothing", true),
    kind("keys/login", "with another one no passphrase would be right any more", true),
    kind("db/index", "new databases would know no user and no volume", false),
    kind(
        DRIVES,
        "without it the data on the drives that it names could not be read, and with another one it could be mistaken",
        true,
    ),
    kind(
        "security.toml",
        "without it anonymous and unencrypted connections could be permitted that it forbids",
        false,
    ),
];

const fn kind(name: &'static str, meaning: &'static str, has_sum: bool) -> Kind {
    Kind { name, meaning, has_sum }
}

/// What a state directory had at the last start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    partitions: BTreeMap<PartitionId, Uuid>,
    files: BTreeSet<String>,
    /// SHA-256 of some of them, in hexadecimal digits.
    sums: BTreeMap<String, String>,
}

/// A file of a state directory that is missing, or not as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// Its name in the state directory.
    pub name: String,
    /// What another one would mean.
    pub meaning: &'static str,
    /// What is there in its place: nothing, or something else.
    pub is_there: bool,
}

impl MissingFile {
    /// The error, with what is to be done.
    pub(crate) fn text(&self, state: &Path) -> String {
        let (state, Self { name, meaning, is_there }) = (state.display(), self);
        let (fault, go_on) = match is_there {
            true => {
                (format!("is not as this program left it (unless {state}/{FILE} is an older copy)"), "with")
            }
            false => ("is missing, and was there at an earlier start".to_owned(), "without"),
        };
        let command = format!("andrew store forget {name} --state {state}");
        format!("{state}/{name} {fault}; {meaning}: put it back; to go on {go_on} it: `{command}`")
    }
}

#[derive(Serialize, Deserialize)]
struct InventoryFile {
    format: u32,
    partitions: BTreeMap<String, String>,
    files: BTreeSet<String>,
    #[serde(default)]
    sums: BTreeMap<String, String>,
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
        let InventoryFile { partitions, files, sums, .. } = file;
        let one = |(name, id): (String, String)| Some((name.parse().ok()?, id.parse().ok()?));
        let partitions: Option<_> = partitions.into_iter().map(one).collect();
        let partitions = partitions.ok_or_else(|| VersionedFileError::Damaged {
            path: path.to_owned(),
            why: "it names no partition".into(),
            remedy: InventoryFile::REMEDY,
        })?;
        Ok(Self { partitions, files, sums })
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn write(&self, state: &Path) -> CellResult {
        Ok(self.write_file(state)?)
    }

    fn write_file(&self, state: &Path) -> Result<(), VersionedFileError> {
        let partitions = self.partitions.iter().map(|(name, id)| (name.to_string(), id.to_string()));
        let (files, sums) = (self.files.clone(), self.sums.clone());
        let file = InventoryFile { format: FORMAT, partitions: partitions.collect(), files, sums };
        file.write_file(&state.join(FILE))
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

    /// The first file that is no longer there, or not as it was left.
    pub(crate) fn missing(&self, state: &Path) -> Option<MissingFile> {
        let known = KINDS.iter().filter(|kind| self.files.contains(kind.name));
        let mut missing = known.filter(|kind| !self.is_as_left(state, kind));
        missing.next().map(|Kind { name, meaning, .. }| {
            let is_there = exists(&state.join(name));
            MissingFile { name: (*name).to_owned(), meaning, is_there }
        })
    }

    /// A file that cannot be read is for its reader to name.
    fn is_as_left(&self, state: &Path, kind: &Kind) -> bool {
        let path = state.join(kind.name);
        let left = self.sums.get(kind.name);
        exists(&path) && left.is_none_or(|left| sum(&path).is_none_or(|sum| sum == *left))
    }

    /// Notes the files that are there now.
    pub(crate) fn note_files(&mut self, state: &Path) {
        for kind in &KINDS {
            self.note(state, kind);
        }
    }

    fn note(&mut self, state: &Path, kind: &Kind) {
        let (name, path) = (kind.name.to_owned(), state.join(kind.name));
        match sum(&path).filter(|_| kind.has_sum) {
            Some(sum) => _ = self.sums.insert(name.clone(), sum),
            None => _ = self.sums.remove(&name),
        }
        if exists(&path) {
            self.files.insert(name)
        } else {
            self.files.remove(&name)
        };
    }

    /// Replaces a file of the state directory by `write`, and notes it. After a crash in between it is there, or as it was, and has no checksum. Where no
    /// server has been started yet nothing is noted.
    ///
    /// # Errors
    /// Those of `write`; and this file cannot be written, then nothing is replaced.
    pub(crate) fn replacing<E: From<VersionedFileError>>(
        state: &Path,
        name: &str,
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kept = Self::read(state).ok().flatten();
        let (Some(kind), Some(mut inventory)) = (kind, kept) else { return write() };
        if inventory.sums.remove(name).is_some() {
            inventory.write_file(state)?;
        }
        write()?;
        inventory.note(state, kind);
        inventory.keep(state);
        Ok(())
    }

    /// Writes the file; where that is not possible, the server goes on.
    pub(crate) fn keep(&self, state: &Path) {
        if let Err(error) = self.write(state) {
            tracing::warn!(%error, "the next start may not miss what is missing then");
        }
    }

    /// Forgets a partition, such as `/vicepb`, or a file, such as `keys/login`: the next start takes or makes another. False if there is none
    /// of that name.
    pub fn forget(&mut self, name: &str) -> bool {
        self.sums.remove(name);
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
fn exists(path: &Path) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// `None` if the file cannot be read.
fn sum(path: &Path) -> Option<String> {
    let digest = Sha256::digest(fs::read(path).map(Zeroizing::new).ok()?);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    let file = InventoryFile::decode(Path::new(FILE), bytes);
    file.is_ok_and(|file| Inventory::of(Path::new(FILE), file).is_ok())
}

#[cfg(test)]
mod tests;
