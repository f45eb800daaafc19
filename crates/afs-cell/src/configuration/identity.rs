//! Identity of a server, as JSON: `cell.json` in the state directory.

use crate::configuration::FileError;
use crate::error::CellResult;
use afs_files::write_durably;
use afs_wire::ids::{CellName, Uuid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// Name of the file.
const FILE: &str = "cell.json";
/// Version of the file and of the layout of the directory.
const FORMAT: u32 = 1;

/// Identity of a cell's server, for as long as its state directory exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellIdentity {
    /// The cell.
    pub cell: CellName,
    /// The file server's permanent name in the location database.
    pub file_server: Uuid,
}

#[derive(Serialize, Deserialize)]
struct IdentityFile {
    format: u32,
    cell: String,
    file_server: String,
}

impl CellIdentity {
    /// Reads the file; `None` in a new state directory.
    ///
    /// # Errors
    /// The file is damaged, or was written by a later version of this program.
    pub fn read(state: &Path) -> CellResult<Option<Self>> {
        let path = state.join(FILE);
        match fs::read(&path) {
            Ok(text) => Self::parse(&path, &text).map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(damaged(&path, e.to_string()).into()),
        }
    }

    fn parse(path: &Path, text: &[u8]) -> CellResult<Self> {
        let damaged = |why| damaged(path, why);
        let written: IdentityFile = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
        if written.format != FORMAT {
            let (path, format) = (path.to_owned(), written.format);
            return Err(FileError::Format { path, format, known: FORMAT }.into());
        }
        let cell = CellName::new(&written.cell).map_err(|e| damaged(e.to_string()))?;
        let file_server = written.file_server.parse().map_err(|_| damaged("no such server name".into()))?;
        Ok(Self { cell, file_server })
    }

    /// Writes the file durably, unless it exists.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn write(&self, state: &Path) -> CellResult {
        if Self::read(state)?.as_ref() == Some(self) {
            return Ok(());
        }
        let written = IdentityFile {
            format: FORMAT,
            cell: self.cell.to_string(),
            file_server: self.file_server.to_string(),
        };
        let cannot = |error| FileError::Write { path: state.join(FILE), error };
        let text = serde_json::to_vec_pretty(&written).map_err(|e| cannot(e.into()))?;
        write_durably(state, FILE, &text).map_err(|e| cannot(e).into())
    }
}

fn damaged(path: &Path, why: String) -> FileError {
    FileError::Damaged { path: path.to_owned(), why }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    CellIdentity::parse(Path::new(FILE), bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(CellIdentity::read(dir.path()).unwrap(), None);
        let identity =
            CellIdentity { cell: CellName::new("andrew.local").unwrap(), file_server: Uuid([7; 16]) };
        identity.write(dir.path()).unwrap();
        assert_eq!(CellIdentity::read(dir.path()).unwrap(), Some(identity));
    }

    #[test]
    fn damage_and_later_formats_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, "{").unwrap();
        let said = |path: &Path| CellIdentity::read(path).unwrap_err().to_string();
        assert!(said(dir.path()).starts_with(&format!("{} is damaged: ", path.display())));
        fs::write(&path, r#"{"format":2,"cell":"a","file_server":""}"#).unwrap();
        assert_eq!(
            said(dir.path()),
            format!("{} has format 2, this program reads 1; use the version that wrote it", path.display())
        );
    }
}
