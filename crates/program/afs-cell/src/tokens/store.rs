//! Token files: one for each cell, which only their owner may read.

use super::error::TokenError;
use super::kept::KeptToken;
use crate::error::CellResult;
use crate::mounts::absolute;
use crate::state::StateDir;
use afs_auth::Token;
use afs_files::secret_file;
use afs_wire::ids::CellName;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variable that names a single token file, to be used instead of the directory.
pub const VARIABLE: &str = "ANDREW_TOKENS";
/// Most token files read.
const FILES_MAX: usize = 1000;

/// Location of a user's token files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenStore {
    /// A directory with a file for each cell.
    Directory(PathBuf),
    /// One file, for one cell.
    File(PathBuf),
}

/// The user's token of a cell, valid or not.
///
/// # Errors
/// A token file cannot be read, or others may read it too.
pub fn of(cell: &CellName) -> CellResult<Option<Token>> {
    Ok(TokenStore::current()?.get(cell)?.map(|kept| kept.grant.token))
}

impl TokenStore {
    /// The store of this process: the file in `ANDREW_TOKENS`, else the directory `tokens` in the user's state
    /// directory (by default `~/.local/state/andrew`).
    ///
    /// # Errors
    /// There is no home directory.
    pub fn current() -> CellResult<Self> {
        match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Self::file(Path::new(&path)),
            None => Ok(Self::Directory(StateDir::of_user()?.path().join("tokens"))),
        }
    }

    /// A store with the one file at `path`.
    ///
    /// # Errors
    /// The current directory has been removed.
    pub fn file(path: &Path) -> CellResult<Self> {
        absolute(path).map(Self::File)
    }

    /// The token of a cell.
    ///
    /// # Errors
    /// As [`of`].
    pub fn get(&self, cell: &CellName) -> CellResult<Option<KeptToken>> {
        let found = match self {
            Self::Directory(directory) => read(&directory.join(cell.as_str()))?,
            Self::File(file) => read(file)?,
        };
        Ok(found.filter(|kept| kept.cell == *cell))
    }

    /// All tokens, ordered by cell.
    ///
    /// # Errors
    /// As [`of`].
    pub fn all(&self) -> CellResult<Vec<KeptToken>> {
        let directory = match self {
            Self::File(file) => return Ok(read(file)?.into_iter().collect()),
            Self::Directory(directory) => directory,
        };
        let cannot = |error| TokenError::Read { path: directory.clone(), error };
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(cannot(e).into()),
        };
        let mut found = Vec::new();
        for entry in entries.take(FILES_MAX) {
            let path = entry.map_err(cannot)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let kept = match read(&path) {
                // Left over from an interrupted write.
                Err(_) if name.ends_with(".new") => None,
                kept => kept?,
            };
            found.extend(kept.filter(|kept| kept.cell.as_str() == name));
        }
        found.sort_by(|a, b| a.cell.cmp(&b.cell));
        Ok(found)
    }

    /// Stores a token in place of the cell's earlier one.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn put(&self, kept: &KeptToken) -> CellResult {
        let path = match self {
            Self::Directory(directory) => directory.join(kept.cell.as_str()),
            Self::File(file) => file.clone(),
        };
        Ok(secret_file::write(&path, &kept.encode())?)
    }

    /// Removes a cell's token; false if there is none.
    ///
    /// # Errors
    /// The disk refuses the change.
    pub fn remove(&self, cell: &CellName) -> CellResult<bool> {
        let path = match self {
            Self::Directory(directory) => directory.join(cell.as_str()),
            Self::File(file) if read(file)?.is_some_and(|kept| kept.cell == *cell) => file.clone(),
            Self::File(_) => return Ok(false),
        };
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(TokenError::Remove { path, error }.into()),
        }
    }
}

/// Reads a token file; `None` if there is none.
pub(super) fn read(path: &Path) -> CellResult<Option<KeptToken>> {
    let Some(bytes) = secret_file::read(path)? else { return Ok(None) };
    KeptToken::decode(&bytes)
        .map(Some)
        .map_err(|error| TokenError::File { path: path.to_owned(), error }.into())
}

#[cfg(test)]
mod tests {
    use super::super::samples::kept;
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn tokens_are_kept_by_cell_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::Directory(dir.path().join("tokens"));
        assert_eq!(store.all().unwrap(), []);
        let (one, two) = (kept("example.org", 10), kept("example.com", 20));
        store.put(&one).unwrap();
        store.put(&two).unwrap();
        fs::write(dir.path().join("tokens/example.net.new"), "half a write").unwrap();
        assert_eq!(store.all().unwrap(), [two.clone(), one.clone()]);
        let path = dir.path().join("tokens/example.org");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(store.get(&one.cell).unwrap_err().to_string().contains("chmod 600"));
        assert!(store.remove(&one.cell).unwrap() && !store.remove(&one.cell).unwrap());
        assert_eq!(store.all().unwrap(), [two]);
    }

    #[test]
    fn one_file_is_one_cell() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::File(dir.path().join("job.token"));
        let one = kept("example.org", 10);
        assert_eq!(store.get(&one.cell).unwrap(), None);
        store.put(&one).unwrap();
        assert_eq!(store.get(&one.cell).unwrap(), Some(one.clone()));
        let other = CellName::new("example.com").unwrap();
        assert_eq!(store.get(&other).unwrap(), None);
        assert!(!store.remove(&other).unwrap());
        fs::write(dir.path().join("job.token"), "{}").unwrap();
        assert!(store.get(&one.cell).unwrap_err().to_string().contains("not a token"));
    }
}
