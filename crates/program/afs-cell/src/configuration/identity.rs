//! Identity of a server, as JSON: `cell.json` in the state directory.

use crate::error::CellResult;
use afs_files::{Syntax, Versioned, VersionedFileError};
use afs_wire::ids::{CellName, Uuid};
use serde::{Deserialize, Serialize};
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

impl Versioned for IdentityFile {
    const SYNTAX: Syntax = Syntax::Json;
    const REMEDY: &'static str =
        "put a good copy back: with a new one the server would be another one to the cell";
}

impl CellIdentity {
    /// Reads the file; `None` in a new state directory.
    ///
    /// # Errors
    /// As [`Versioned::read_file`].
    pub fn read(state: &Path) -> CellResult<Option<Self>> {
        let path = state.join(FILE);
        IdentityFile::read_file(&path)?.map(|file| Self::of(&path, &file)).transpose()
    }

    fn of(path: &Path, file: &IdentityFile) -> CellResult<Self> {
        let damaged = |why: String| VersionedFileError::Damaged {
            path: path.to_owned(),
            why,
            remedy: IdentityFile::REMEDY,
        };
        let cell = CellName::new(&file.cell).map_err(|error| damaged(error.to_string()))?;
        let file_server = file.file_server.parse().map_err(|_| damaged("it names no server".into()))?;
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
        let (cell, file_server) = (self.cell.to_string(), self.file_server.to_string());
        let file = IdentityFile { format: FORMAT, cell, file_server };
        Ok(file.write_file(&state.join(FILE))?)
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzz(bytes: &[u8]) -> bool {
    let file = IdentityFile::decode(Path::new(FILE), bytes);
    file.is_ok_and(|file| CellIdentity::of(Path::new(FILE), &file).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
