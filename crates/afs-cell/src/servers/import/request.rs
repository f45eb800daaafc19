//! Request for an import: which files, and what to do with entries of the cell that contradict them.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
