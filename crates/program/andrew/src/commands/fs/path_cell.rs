//! Location of the cell of a path: its name and servers, from the mount that the path is in.

use super::attribute;
use crate::error::CommandResult;
use afs_cell::mounts;
use afs_cell::tokens::{CellLocation, known_cells};
use afs_wire::ids::CellName;
use std::path::Path;

/// The cell of a path; `None` if no mount of this user knows it.
pub(in crate::commands) fn of(path: &Path) -> CommandResult<Option<CellLocation>> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let whole = whole.canonicalize().unwrap_or(whole);
    let Some(mount) = mounts::containing(&whole)? else { return Ok(None) };
    // The cell of a directory that this user may not read is unknown; most likely it is that of the mount.
    let cell = attribute::get_text(path, "afs.cell").unwrap_or_else(|_| mount.source.clone());
    Ok(CellName::new(&cell).ok().and_then(|cell| find(&cell, &mount.device)))
}

/// A cell, as the mount at a path knows it.
pub(super) fn of_cell(cell: &CellName, path: &Path) -> CommandResult<Option<CellLocation>> {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let device = mounts::containing(&whole)?.map(|mount| mount.device).unwrap_or_default();
    Ok(find(cell, &device))
}

/// The cell as the mount with this device number knows it, or else any other mount.
fn find(cell: &CellName, device: &str) -> Option<CellLocation> {
    let mut places = known_cells();
    places.retain(|place| place.cell == *cell && !place.servers.is_empty());
    let is_there = |place: &CellLocation| place.mount.as_ref().is_some_and(|mount| mount.device == device);
    let at = places.iter().position(is_there).unwrap_or(0);
    (!places.is_empty()).then(|| places.swap_remove(at))
}
