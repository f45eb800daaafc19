//! Random access to a database file of OpenAFS.

use super::error::ImportError;
use afs_db::import::Source;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Suffixes of database files and of the redo logs beside them.
const FILE_END: &str = ".DB0";
const LOG_END: &str = ".DBSYS1";

/// An open file.
pub(super) struct File {
    file: std::fs::File,
    size: u64,
}

impl File {
    /// Opens a database file, and its redo log if there is one beside it.
    ///
    /// # Errors
    /// The path cannot be read, or is not a file.
    pub(super) fn with_log(path: &Path) -> Result<(Self, Option<Self>), ImportError> {
        let file = Self::open(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let log = name.strip_suffix(FILE_END).map(|stem| path.with_file_name(format!("{stem}{LOG_END}")));
        let log = log.filter(|log| log.exists()).map(|log| Self::open(&log)).transpose()?;
        Ok((file, log))
    }

    fn open(path: &Path) -> Result<Self, ImportError> {
        let failed = |error| ImportError::Read { path: path.to_owned(), error };
        let file = std::fs::File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(ImportError::NotAFile(path.to_owned()));
        }
        Ok(Self { file, size: meta.len() })
    }
}

impl Source for File {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        self.file.read_exact_at(into, offset).map_err(|error| error.to_string())
    }
}
