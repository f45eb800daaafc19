//! Lists of the files that were open for writing when a mount was stopped, and of those that no server took, as a file in its cache.

use super::not_stored::NotStored;
use afs_files::write_durably;
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
    /// Data that no server took.
    #[serde(default)]
    pub not_stored: Vec<NotStored>,
}

impl LeftOpen {
    /// Files left open by the last stop of the mount with this cache directory; empty if unknown.
    #[must_use]
    pub fn of(cache: &Path) -> Self {
        let text = fs::read(cache.join(NAME)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Names the files in the log, and in the cache directory for the command that requested the stop. Without a directory they are
    /// only counted in the log.
    pub(crate) fn tell(&self, cache: Option<&Path>) {
        let Some(cache) = cache else {
            return match self.files.len() {
                0 => {}
                files => tracing::warn!(files, "files were open for writing when the mount was stopped"),
            };
        };
        for file in &self.files {
            tracing::warn!(
                "{} was open for writing when the mount was stopped: what is written to it from now on is lost",
                file.display()
            );
        }
        self.note(cache);
    }

    /// Adds the data that no server took to the log and to the list in the cache directory; without one, to the log their number.
    pub(crate) fn tell_not_stored(&mut self, not_stored: Vec<NotStored>, cache: Option<&Path>) {
        if not_stored.is_empty() {
            return;
        }
        let Some(cache) = cache else {
            return tracing::error!(
                files = not_stored.len(),
                "the mount is stopped, and no server has all of these files: `andrew fs recover` shows them in the next one"
            );
        };
        for data in &not_stored {
            tracing::error!("the mount is stopped: {data}");
        }
        self.not_stored = not_stored;
        self.note(cache);
    }

    fn note(&self, cache: &Path) {
        if let Err(error) = self.write(cache) {
            tracing::warn!("the list of what the stop of the mount left cannot be written: {error}");
        }
    }

    fn write(&self, cache: &Path) -> io::Result<()> {
        let shown = |file: &PathBuf| file.to_string_lossy().into_owned();
        let files: Vec<String> = self.files.iter().map(shown).collect();
        let text = serde_json::json!({ "files": files, "not_stored": self.not_stored }).to_string();
        write_durably(cache, NAME, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_left_open_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LeftOpen::of(dir.path()), LeftOpen::default());
        let mut left = LeftOpen { files: vec!["/afs/a".into(), "/afs/b c".into()], not_stored: vec![] };
        left.tell(Some(dir.path()));
        assert_eq!(LeftOpen::of(dir.path()), left);
        let lost = NotStored { file: "/afs/c".into(), bytes: 7, why: None, is_kept: true };
        left.tell_not_stored(vec![lost.clone()], Some(dir.path()));
        assert_eq!(LeftOpen::of(dir.path()), left);
        assert_eq!(left.not_stored, [lost]);
        LeftOpen::default().tell(Some(dir.path()));
        assert_eq!(LeftOpen::of(dir.path()), LeftOpen::default());
        fs::write(dir.path().join(NAME), r#"{"files":["/afs/of an older program"]}"#).unwrap();
        assert_eq!(LeftOpen::of(dir.path()).files, [PathBuf::from("/afs/of an older program")]);
    }
}
