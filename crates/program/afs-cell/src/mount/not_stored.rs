//! Data of a file that no server took before its mount was stopped.

use afs_venus::{TokenOwner, Unsaved, Venus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The data of one file: it stays in the cache for the next mount, or is lost with this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStored {
    /// Absolute path, or the fid and the cell if the path is not known.
    pub file: String,
    /// Bytes that no server has.
    pub bytes: u64,
    /// Why the last store failed; `None`: unknown.
    pub why: Option<String>,
    /// True if it stays in the cache, where the next mount stores it or tells of it.
    #[serde(default)]
    pub is_kept: bool,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_deref().unwrap_or("its store was not tried");
        let NotStored { file, bytes, .. } = self;
        match self.is_kept {
            true => write!(
                f,
                "{bytes} bytes of {file} are kept in the cache, and will be retried at the next mount, as no server took \
                 them: {why}"
            ),
            false => write!(f, "{bytes} bytes of {file} are lost, as no server took them: {why}"),
        }
    }
}

/// All data of a mount that is not stored, of all users, by number. There is at most as much as the cache holds.
pub(super) fn all(venus: &Venus, directory: &Path) -> BTreeMap<u64, NotStored> {
    let mut found = BTreeMap::new();
    let mut after = 0;
    loop {
        let told = venus.unsaved(TokenOwner::Uid(ROOT), after);
        let Some(last) = told.last() else { return found };
        after = last.number;
        found.extend(told.iter().map(|it| (it.number, shown(it, directory))));
    }
}

/// Who may be told of the data of all users.
const ROOT: u32 = 0;

fn shown(it: &Unsaved, directory: &Path) -> NotStored {
    let file = match &it.path {
        Some(path) => directory.join(path).display().to_string(),
        None => format!("{}.{}.{} in cell {}", it.fid.volume, it.fid.vnode, it.fid.unique, it.cell),
    };
    NotStored { file, bytes: it.unsaved_bytes, why: it.error.clone(), is_kept: it.is_kept }
}
