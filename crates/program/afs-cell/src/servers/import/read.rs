//! Readers of the two database files: a damaged file is refused.

use super::database_file::File;
use super::error::ImportError;
use afs_db::import::Findings;
use afs_db::import::location::{self, ReadLocation};
use afs_db::import::protection::{self, ReadProtection};
use std::path::Path;

/// Most contradictions and damages that one message shows.
const SHOWN_MAX: usize = 10;

/// Reads a `prdb.DB0`.
pub(super) fn read_people(path: &Path) -> Result<ReadProtection, ImportError> {
    let (file, log) = File::with_log(path)?;
    let read = protection::read(&file, log.as_ref().map(|log| log as _));
    let read = read.map_err(|error| ImportError::Format { path: path.to_owned(), why: error.to_string() })?;
    undamaged(path, &read.findings).map(|()| read)
}

/// Reads a `vldb.DB0`.
pub(super) fn read_locations(path: &Path) -> Result<ReadLocation, ImportError> {
    let (file, log) = File::with_log(path)?;
    let read = location::read(&file, log.as_ref().map(|log| log as _));
    let read = read.map_err(|error| ImportError::Format { path: path.to_owned(), why: error.to_string() })?;
    undamaged(path, &read.findings).map(|()| read)
}

/// Refuses a file in which data is lost: OpenAFS's tools can repair it, or another server has an intact one.
fn undamaged(path: &Path, findings: &Findings) -> Result<(), ImportError> {
    if findings.damages() == 0 {
        return Ok(());
    }
    let damages = findings.kept().iter().filter(|finding| finding.damage);
    let damages: Vec<String> = damages.map(ToString::to_string).collect();
    let (path, places) = (path.to_owned(), findings.damages());
    Err(ImportError::Damaged { path, places, shown: shortened(&damages) })
}

/// The first lines, and how many more there are.
pub(super) fn shortened(lines: &[String]) -> String {
    let shown = lines.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = lines.len().saturating_sub(SHOWN_MAX);
    if more == 0 { shown } else { format!("{shown}; and {more} more") }
}
