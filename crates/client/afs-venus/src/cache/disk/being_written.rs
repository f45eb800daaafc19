//! Cache files that the kernel may write: noted in the index, so that what it wrote is set aside after a kill of the mount.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use afs_wire::ids::{FileTime, UnixSeconds};

use super::file::{is_marked, modified_of};
use super::holes;
use super::unsaved::{self, UnsavedDisk};
use crate::cache::encryption::Sealing;
use crate::cache::kept::{BeingWritten, KeptFiles};
use crate::cache::unsaved::RANGES_MAX;
use crate::cache::{Ranges, UnsavedRecord, WrittenFile};

/// Files in `unsaved` for what was written when an earlier run ended, and that no server has; added to `found`. What can get no record, as the
/// disk is full, gets its name alone.
///
/// # Errors
/// The disk: not even a name could be made.
pub(super) fn set_aside(
    kept: &mut KeptFiles,
    directory: &impl UnsavedDisk,
    path_of: impl Fn(u64) -> PathBuf,
    found: &mut unsaved::Found,
    sealing: &Sealing,
) -> io::Result<()> {
    for (number, written) in kept.take_being_written() {
        let path = path_of(number);
        if found.kept.contains(&number) || found.lone.contains(&number) || !may_have_changes(&path, &written)?
        {
            continue;
        }
        let record = record_of(&path, written.of);
        let is_kept = record.and_then(|record| unsaved::keep(directory, number, &record.encode(sealing)));
        match is_kept {
            Ok(()) => found.kept.push(number),
            Err(error) => {
                tracing::error!(%error, "{} has unsaved data, and its record cannot be made", path.display());
                unsaved::name_alone(directory, number)?;
                found.lone.push(number);
            }
        }
    }
    Ok(())
}

fn may_have_changes(path: &Path, written: &BeingWritten) -> io::Result<bool> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => Ok(written.is_changed || !is_marked(modified_of(&found?)?)),
    }
}

fn record_of(path: &Path, of: WrittenFile) -> io::Result<UnsavedRecord> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let (length, modified) = (metadata.len(), modified_of(&metadata)?);
    let whole = Ranges::whole(length);
    let mut holes = whole.clone();
    holes::data_of(&file)?.iter().for_each(|range| holes.remove(range));
    if holes.count() > RANGES_MAX {
        holes = Ranges::new();
    }
    let changed_at = (!is_marked(modified)).then(|| FileTime::from_nanos(modified.0)).flatten();
    Ok(UnsavedRecord {
        cell: of.cell,
        fid: of.fid,
        owner: of.owner,
        had_token: of.owner.is_some(),
        is_set_aside: true,
        is_open: true,
        replaces: 0,
        version: of.version,
        base_length: of.base_length,
        base_time: None,
        length,
        cut: 0,
        changed_at,
        error_kind: 0,
        error_number: 0,
        server: None,
        since: changed_at.map_or(UnixSeconds(0), FileTime::seconds),
        present: whole.clone(),
        holes,
        dirty: whole,
        has_sums: false,
        dirty_sum: 0,
        clean_sum: 0,
    })
}

#[cfg(test)]
mod tests;
