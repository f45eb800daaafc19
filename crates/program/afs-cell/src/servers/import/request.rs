//! Request for an import: which files, and what to do with entries of the cell that contradict them.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request for an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRequest {
    /// Path of a `vldb.DB0`; its redo log is expected beside it.
    pub vldb: Option<PathBuf>,
    /// Path of a `prdb.DB0`, likewise.
    pub prdb: Option<PathBuf>,
    /// Only report what the import would do.
    pub dry_run: bool,
    /// How to treat a cell that has volumes and users already.
    pub collisions: Collisions,
}

/// Treatment of entries of the cell that contradict the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collisions {
    /// A cell with entries of its own is refused.
    #[default]
    Refuse,
    /// Existing entries stay. Entries that contradict them are refused.
    Merge,
    /// Entries that contradict the file are replaced.
    Replace,
}
