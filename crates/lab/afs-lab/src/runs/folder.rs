//! Folder of results: `ID.json` for each experiment, replaced whole.

use super::outcome::RunResult;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{fs, io::Write};

/// Most bytes of a result.
const BYTES_MAX: u64 = 4 << 20;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", path.display())]
pub struct FolderError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// An existing folder.
#[derive(Clone, Debug)]
pub struct ResultFolder(PathBuf);

impl ResultFolder {
    /// Opens the folder, which is made if it does not exist.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(|source| error("make the directory", path, source))?;
        Ok(Self(path.to_owned()))
    }

    /// Path of a file in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The result of an experiment; `None` if there is none, or one that cannot be read.
    #[must_use]
    pub fn read(&self, id: &str) -> Option<RunResult> {
        let file = fs::File::open(self.path(&format!("{id}.json"))).ok()?;
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
        let result: RunResult = serde_json::from_str(&text).ok()?;
        (result.id == id).then_some(result)
    }

    /// Writes a result in the place of an earlier one.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, result: &RunResult) -> Result<(), FolderError> {
        let text = serde_json::to_string_pretty(result).unwrap_or_default() + "\n";
        self.replace(&format!("{}.json", result.id), &text)
    }

    /// Writes a file whole: a reader finds the old or the new contents.
    ///
    /// # Errors
    /// The system's.
    pub fn replace(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let (path, part) = (self.path(name), self.path(&format!("{name}.part")));
        let mut file = fs::File::create(&part).map_err(|source| error("create", &part, source))?;
        file.write_all(text.as_bytes()).map_err(|source| error("write", &part, source))?;
        fs::rename(&part, &path).map_err(|source| error("rename", &part, source))
    }
}

fn error(operation: &'static str, path: &Path, source: io::Error) -> FolderError {
    FolderError { operation, path: path.to_owned(), source }
}
