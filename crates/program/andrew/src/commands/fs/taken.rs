//! Outcome of an order to all mounts that a user may change.

use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::MountLocation;
use std::path::PathBuf;

/// The directories of the mounts that carried an order out.
///
/// # Errors
/// None did: the reasons, or that none runs.
pub(super) fn of_mounts_that_took(
    taken: Vec<MountLocation>,
    refused: Vec<String>,
) -> CommandResult<Vec<PathBuf>> {
    if !taken.is_empty() {
        refused.iter().for_each(|why| tracing::warn!("{why}"));
        return Ok(taken.into_iter().map(|mount| mount.directory).collect());
    }
    Err(CommandError::failed(match refused.first() {
        Some(why) => format!("fs: {why}"),
        None => "fs: no mount runs here that you may change; `andrew up` or `andrew mount` makes one".into(),
    }))
}
