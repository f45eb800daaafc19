//! List of the files that were open for writing when a mount was stopped, as a file in its cache.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

const NAME: &str = "left-open.json";

/// Files that were open for writing when a mount was stopped. Data written before is stored; data that a program writes
/// to such a descriptor afterwards is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOpen {
    /// Absolute paths; at most 1000.
    pub files: Vec<PathBuf>,
}

impl LeftOpen {
    /// Files left open by the last stop of the mount with this cache directory; empty if unknown.
    #[must_use]
    pub fn of(cache: &Path) -> Self {
        let text = fs::read(cache.join(NAME)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Names the files in the log, and in the cache directory for the command that requested the stop.
    pub(crate) fn tell(&self, cache: &Path) {
        for file in &self.files {
            tracing::warn!(
                "{} was open for writing when the mount was stopped: what is written to it from now on is lost",
                file.display()
            );
        }
        if let Err(error) = self.write(cache) {
            tracing::warn!("the list of open files cannot be written: {error}");
        }
    }

    fn write(&self, cache: &Path) -> io::Result<()> {
        let shown = |file: &PathBuf| file.to_string_lossy().into_owned();
        let files: Vec<String> = self.files.iter().map(shown).collect();
        fs::write(cache.join(NAME), serde_json::json!({ "files": files }).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_left_open_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LeftOpen::of(dir.path()), LeftOpen::default());
        let left = LeftOpen { files: vec!["/afs/a".into(), "/afs/b c".into()] };
        left.tell(dir.path());
        assert_eq!(LeftOpen::of(dir.path()), left);
        LeftOpen::default().tell(dir.path());
        assert_eq!(LeftOpen::of(dir.path()).files, Vec::<PathBuf>::new());
    }
}
