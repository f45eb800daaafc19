//! Import of the databases of an OpenAFS cell, in the process that serves the cell.
//!
//! Both files are read and looked at as a whole before anything is written. Then it is written in parts, people first:
//! an interrupted import is completed by repeating it; until then the databases say that it is not finished.

use crate::servers::import_error::ImportError;
use crate::servers::import_file::File;
use afs_db::import::location::{self, ImportLocations, ReadLocation};
use afs_db::import::protection::{self, ImportPeople, ReadProtection};
use afs_db::import::{Findings, Merged};
use afs_net::System;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The databases, as they take an import.
#[derive(Clone)]
pub(super) struct Importer {
    pub(super) locations: Arc<dyn ImportLocations>,
    pub(super) people: Arc<dyn ImportPeople>,
}

/// What is to be imported, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRequest {
    /// A `vldb.DB0`; its redo log is looked for beside it.
    pub vldb: Option<PathBuf>,
    /// A `prdb.DB0`, likewise.
    pub prdb: Option<PathBuf>,
    /// Only say what would come of it.
    pub dry_run: bool,
    /// What to do with a cell that has volumes and users already.
    pub collisions: Collisions,
}

/// What becomes of what is in the database and contradicts the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collisions {
    /// A cell that has anything of its own is refused.
    #[default]
    Refuse,
    /// What is there stays. What contradicts it is refused.
    Merge,
    /// What contradicts the file makes room for it.
    Replace,
}

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

/// Carries out a request, given as JSON.
///
/// # Errors
/// As [`Importer::import`], and when there is none.
pub(super) fn import_json(
    system: &System,
    importer: Option<&Importer>,
    request: &[u8],
) -> Result<Imported, ImportError> {
    let importer = importer.ok_or(ImportError::NoDatabases)?;
    let request: ImportRequest = serde_json::from_slice(request)?;
    importer.import(system, &request)
}

/// Most notes in an answer.
const NOTES_MAX: usize = 100;
/// Most contradictions and damages that one message shows.
const SHOWN_MAX: usize = 10;

impl Importer {
    /// Carries out the request.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged, a cell that has other things already, or a database
    /// that does not take them.
    pub(super) fn import(&self, system: &System, request: &ImportRequest) -> Result<Imported, ImportError> {
        let people = request.prdb.as_deref().map(read_people).transpose()?;
        let locations = request.vldb.as_deref().map(read_locations).transpose()?;
        let mut done = Imported { dry_run: request.dry_run, ..Imported::default() };
        let passes: &[bool] = if request.dry_run { &[true] } else { &[true, false] };
        for dry in passes {
            // Everything is looked at before anything is written.
            if let (Some(read), Some(file)) = (&people, &request.prdb) {
                let merged = self.people(system, read, request.collisions, *dry)?;
                done.people = Some(protection_summary(file, read, &merged));
            }
            if let (Some(read), Some(file)) = (&locations, &request.vldb) {
                let merged = self.locations(system, read, request.collisions, *dry)?;
                done.locations = Some(location_summary(file, read, &merged));
            }
        }
        Ok(done)
    }

    fn people(
        &self,
        system: &System,
        read: &ReadProtection,
        collisions: Collisions,
        dry: bool,
    ) -> Result<Merged, ImportError> {
        let bounds = protection::Part {
            max_user: read.max_user,
            max_group: read.max_group,
            merge: collisions == Collisions::Merge,
            replace: collisions == Collisions::Replace,
            ..protection::Part::default()
        };
        let most = self.people.part_max();
        let entries = read
            .entries
            .chunks(most)
            .map(|part| protection::Part { entries: part.to_vec(), ..bounds.clone() });
        let memberships = read
            .memberships
            .chunks(most)
            .map(|part| protection::Part { memberships: part.to_vec(), ..bounds.clone() });
        let mut parts: Vec<protection::Part> = entries.chain(memberships).collect();
        if let Some(first) = parts.first_mut() {
            first.first = true;
        }
        if let Some(last) = parts.last_mut() {
            last.last = true;
        }
        merge_all(parts, |part| system.block_on(self.people.import(part, dry)))
    }

    fn locations(
        &self,
        system: &System,
        read: &ReadLocation,
        collisions: Collisions,
        dry: bool,
    ) -> Result<Merged, ImportError> {
        let part = |entries: &[afs_db::Entry]| location::Part {
            servers: read.servers.clone(),
            entries: entries.to_vec(),
            next_volume_id: read.next_volume_id,
            first: false,
            last: false,
            merge: collisions == Collisions::Merge,
            replace: collisions == Collisions::Replace,
        };
        let mut parts: Vec<location::Part> =
            read.entries.chunks(self.locations.part_max()).map(part).collect();
        if parts.is_empty() {
            parts.push(part(&[]));
        }
        if let Some(first) = parts.first_mut() {
            first.first = true;
        }
        if let Some(last) = parts.last_mut() {
            last.last = true;
        }
        let mut merged = merge_all(parts, |part| system.block_on(self.locations.import(part, dry)))?;
        // Looked at one by one, each part would bring the servers.
        merged.servers = merged.servers.min(read.servers.len() as u64);
        Ok(merged)
    }
}

/// What came of all parts, if nothing contradicts.
fn merge_all<P, E: std::fmt::Display>(
    parts: Vec<P>,
    mut import: impl FnMut(P) -> Result<Merged, E>,
) -> Result<Merged, ImportError> {
    let mut all = Merged::default();
    for part in parts {
        let merged = import(part).map_err(|error| ImportError::Database(error.to_string()))?;
        all.add(merged);
    }
    if all.conflicts.is_empty() {
        return Ok(all);
    }
    Err(ImportError::Conflicts(shortened(&all.conflicts)))
}

fn read_people(path: &Path) -> Result<ReadProtection, ImportError> {
    let (file, log) = File::with_log(path)?;
    let read = protection::read(&file, log.as_ref().map(|log| log as _));
    let read = read.map_err(|error| ImportError::Format { path: path.to_owned(), why: error.to_string() })?;
    undamaged(path, &read.findings).map(|()| read)
}

fn read_locations(path: &Path) -> Result<ReadLocation, ImportError> {
    let (file, log) = File::with_log(path)?;
    let read = location::read(&file, log.as_ref().map(|log| log as _));
    let read = read.map_err(|error| ImportError::Format { path: path.to_owned(), why: error.to_string() })?;
    undamaged(path, &read.findings).map(|()| read)
}

/// A file in which something is lost is not imported: whoever has it can have OpenAFS's tools mend it, or take that of
/// another server.
fn undamaged(path: &Path, findings: &Findings) -> Result<(), ImportError> {
    if findings.damages() == 0 {
        return Ok(());
    }
    let damages = findings.kept().iter().filter(|finding| finding.damage);
    let damages: Vec<String> = damages.map(ToString::to_string).collect();
    let (path, places) = (path.to_owned(), findings.damages());
    Err(ImportError::Damaged { path, places, shown: shortened(&damages) })
}

fn shortened(lines: &[String]) -> String {
    let shown = lines.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = lines.len().saturating_sub(SHOWN_MAX);
    if more == 0 { shown } else { format!("{shown}; and {more} more") }
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

fn protection_summary(file: &Path, read: &ReadProtection, merged: &Merged) -> ImportedFile {
    let groups = read.entries.iter().filter(|entry| entry.id.is_group()).count() as u64;
    let users = read.entries.len() as u64 - groups;
    ImportedFile { users, groups, ..summary(file, read.version.to_string(), merged, &read.findings) }
}

fn location_summary(file: &Path, read: &ReadLocation, merged: &Merged) -> ImportedFile {
    let volumes = read.entries.len() as u64;
    let told = summary(file, read.version.to_string(), merged, &read.findings);
    ImportedFile { volumes, deleted: read.deleted, ..told }
}
