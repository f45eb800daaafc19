//! Report of an import: counters and remarks for each file.

use afs_db::import::location::ReadLocation;
use afs_db::import::protection::ReadProtection;
use afs_db::import::{Findings, Merged};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most notes in an answer.
const NOTES_MAX: usize = 100;

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Of `prdb.DB0`.
    pub people: Option<ImportedFile>,
    /// Of `vldb.DB0`.
    pub locations: Option<ImportedFile>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// What came of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// The file.
    pub file: PathBuf,
    /// Version of the database in it: how new it is.
    pub version: String,
    /// What is in it.
    pub users: u64,
    /// See `users`.
    pub groups: u64,
    /// See `users`.
    pub volumes: u64,
    /// What is new in the cell: users and groups, or volumes.
    pub added: u64,
    /// What the cell had already.
    pub there: u64,
    /// What made room.
    pub replaced: u64,
    /// Memberships that are new.
    pub memberships: u64,
    /// Servers that are new.
    pub servers: u64,
    /// Entries that were deleted in the file, and are left out.
    pub deleted: u64,
    /// What was odd in the file, and what became of it; the first hundred.
    pub notes: Vec<String>,
    /// How many of them there are.
    pub notes_total: u64,
}

fn summary(file: &Path, version: String, merged: &Merged, findings: &Findings) -> ImportedFile {
    ImportedFile {
        file: file.to_owned(),
        version,
        added: merged.added,
        there: merged.there,
        replaced: merged.replaced,
        memberships: merged.memberships,
        servers: merged.servers,
        notes: findings.kept().iter().take(NOTES_MAX).map(ToString::to_string).collect(),
        notes_total: findings.differences(),
        ..ImportedFile::default()
    }
}

/// Report on a protection database.
pub(super) fn protection_summary(file: &Path, read: &ReadProtection, merged: &Merged) -> ImportedFile {
    let groups = read.entries.iter().filter(|entry| entry.id.is_group()).count() as u64;
    let users = read.entries.len() as u64 - groups;
    ImportedFile { users, groups, ..summary(file, read.version.to_string(), merged, &read.findings) }
}

/// Report on a location database.
pub(super) fn location_summary(file: &Path, read: &ReadLocation, merged: &Merged) -> ImportedFile {
    let volumes = read.entries.len() as u64;
    let common = summary(file, read.version.to_string(), merged, &read.findings);
    ImportedFile { volumes, deleted: read.deleted, ..common }
}
