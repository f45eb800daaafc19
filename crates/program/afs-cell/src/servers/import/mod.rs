//! Import of the databases of an OpenAFS cell, in the process that serves the cell.
//!
//! Both files are read and checked as a whole before anything is written. They are then written in parts, users and
//! groups first. An interrupted import is completed by repeating it; until then the databases record that it is not
//! finished.

mod database_file;
mod error;
mod read;
mod report;
mod request;

pub use report::{Imported, ImportedFile};
pub use request::{Collisions, ImportRequest};

use afs_db::import::Merged;
use afs_db::import::location::{self, ImportLocations, ReadLocation};
use afs_db::import::protection::{self, ImportPeople, ReadProtection};
use afs_net::System;
use error::ImportError;
use read::{read_locations, read_people, shortened};
use report::{location_summary, protection_summary};
use std::sync::Arc;

/// The databases that an import writes to.
#[derive(Clone)]
pub(super) struct Importer {
    pub(super) locations: Arc<dyn ImportLocations>,
    pub(super) people: Arc<dyn ImportPeople>,
}

/// Carries out a request, given as JSON.
///
/// # Errors
/// As [`Importer::import`], or this host has no databases.
pub(super) fn import_json(
    system: &System,
    importer: Option<&Importer>,
    request: &[u8],
) -> Result<Imported, ImportError> {
    let importer = importer.ok_or(ImportError::NoDatabases)?;
    let request: ImportRequest = serde_json::from_slice(request)?;
    importer.import(system, &request)
}

impl Importer {
    /// Carries out a request.
    ///
    /// # Errors
    /// A file cannot be read or is damaged, the cell has contradicting entries, or a database refuses the change.
    pub(super) fn import(&self, system: &System, request: &ImportRequest) -> Result<Imported, ImportError> {
        let people = request.prdb.as_deref().map(read_people).transpose()?;
        let locations = request.vldb.as_deref().map(read_locations).transpose()?;
        let mut done = Imported { dry_run: request.dry_run, ..Imported::default() };
        let passes: &[bool] = if request.dry_run { &[true] } else { &[true, false] };
        for dry in passes {
            // Everything is checked before anything is written.
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
        let parts = protection_parts(read, collisions, self.people.part_max());
        merge_all(parts, |part| system.block_on(self.people.import(part, dry)))
    }

    fn locations(
        &self,
        system: &System,
        read: &ReadLocation,
        collisions: Collisions,
        dry: bool,
    ) -> Result<Merged, ImportError> {
        let parts = location_parts(read, collisions, self.locations.part_max());
        let mut merged = merge_all(parts, |part| system.block_on(self.locations.import(part, dry)))?;
        // Each part has all servers, so that a dry run counts them once for each part.
        merged.servers = merged.servers.min(read.servers.len() as u64);
        Ok(merged)
    }
}

/// The entries of a protection database, then its memberships, in parts of at most `most`.
fn protection_parts(read: &ReadProtection, collisions: Collisions, most: usize) -> Vec<protection::Part> {
    let bounds = protection::Part {
        max_user: read.max_user,
        max_group: read.max_group,
        merge: collisions == Collisions::Merge,
        replace: collisions == Collisions::Replace,
        ..protection::Part::default()
    };
    let entries =
        read.entries.chunks(most).map(|part| protection::Part { entries: part.to_vec(), ..bounds.clone() });
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
    parts
}

/// The entries of a location database in parts of at most `most`, each with all servers; at least one part.
fn location_parts(read: &ReadLocation, collisions: Collisions, most: usize) -> Vec<location::Part> {
    let part = |entries: &[afs_db::Entry]| location::Part {
        servers: read.servers.clone(),
        entries: entries.to_vec(),
        next_volume_id: read.next_volume_id,
        first: false,
        last: false,
        merge: collisions == Collisions::Merge,
        replace: collisions == Collisions::Replace,
    };
    let mut parts: Vec<location::Part> = read.entries.chunks(most).map(part).collect();
    if parts.is_empty() {
        parts.push(part(&[]));
    }
    if let Some(first) = parts.first_mut() {
        first.first = true;
    }
    if let Some(last) = parts.last_mut() {
        last.last = true;
    }
    parts
}

/// The sum of the results of all parts; an error if there are contradictions.
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
