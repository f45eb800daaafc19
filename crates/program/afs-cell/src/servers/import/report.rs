//! Report of an import: counters and remarks for each file.

use afs_db::import::location::ReadLocation;
use afs_db::import::protection::ReadProtection;
use afs_db::import::{Findings, Merged};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most irregularities in a report.
const NOTES_MAX: usize = 100;

/// Report of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Report on `prdb.DB0`.
    pub people: Option<ImportedFile>,
    /// Report on `vldb.DB0`.
    pub locations: Option<ImportedFile>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// Report on one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// The file.
    pub file: PathBuf,
    /// Version of the database in it: how recent it is.
    pub version: String,
    /// Number of users in it.
    pub users: u64,
    /// Number of groups in it.
    pub groups: u64,
    /// Number of volumes in it.
    pub volumes: u64,
    /// Number of new entries: users and groups, or volumes.
    pub added: u64,
    /// Number of entries that the cell had already.
    pub there: u64,
    /// Number of entries that were replaced.
    pub replaced: u64,
    /// Number of new memberships.
    pub memberships: u64,
    /// Number of new servers.
    pub servers: u64,
    /// Number of entries that are marked as deleted in the file, and were left out.
    pub deleted: u64,
    /// Irregularities in the file and how they were treated; the first hundred.
    pub notes: Vec<String>,
    /// Number of all irregularities.
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
