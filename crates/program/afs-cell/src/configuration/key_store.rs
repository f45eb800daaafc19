//! Key file of a cell: `keys/KeyFileExt` in the state directory, in OpenAFS's format, so that OpenAFS's tools can use
//! the keys with `-localauth` (docs/protocol/rxkad.md "11. Key files"). Beside it, in the same format, `KeyFileExt.coming` has the keys that
//! are not used yet.

use crate::configuration::FileError;
use crate::configuration::inventory::{Inventory, KEYS};
use crate::error::CellResult;
use afs_auth::keys::{KeyKind, KeyRing, generate};
use afs_files::secret_file;
use afs_rpc::EnvRef;
use std::path::{Path, PathBuf};

/// Encryption types of new keys for rxgk: AES-256 with SHA-384, and AES-256 with SHA-1 for older peers.
const RXGK_ENCTYPES: [i32; 2] = [20, 18];
/// Encryption type of a new key for rxkad: AES-256, which OpenAFS prefers.
const RXKAD_ENCTYPE: i32 = 18;

/// A cell's key file.
#[derive(Clone, Debug)]
pub struct KeyStore {
    path: PathBuf,
    /// The state directory that it is part of.
    state: Option<PathBuf>,
}

impl KeyStore {
    /// The key file of a state directory.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { path: state.join(KEYS), state: Some(state.to_owned()) }
    }

    /// A key file at this path.
    #[must_use]
    pub fn at(file: &Path) -> Self {
        Self { path: file.to_owned(), state: None }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys; none in a new cell.
    ///
    /// # Errors
    /// The file is damaged, or other users may read it.
    pub fn load(&self) -> CellResult<KeyRing> {
        let mut keys = read(&self.path)?.unwrap_or_default();
        let coming = self.path_of_coming();
        for key in read(&coming)?.unwrap_or_default().iter() {
            let kept = keys.add_coming(key.clone());
            kept.map_err(|error| FileError::Keys { path: coming.clone(), error })?;
        }
        Ok(keys)
    }

    fn path_of_coming(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".coming");
        path.into()
    }

    /// Replaces the files atomically, first that of the used keys: a key that becomes used is never in neither.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn save(&self, keys: &KeyRing) -> CellResult {
        self.save_used(keys)?;
        let (coming, path) = (keys.coming_alone(), self.path_of_coming());
        let before = read(&path)?;
        if before.is_none() && coming.is_empty() {
            return Ok(());
        }
        if before.as_ref() != Some(&coming) {
            secret_file::write(&path, coming.to_key_file_ext().expose())?;
        }
        if coming.is_empty() {
            // What is left of it by a crash has no key.
            std::fs::remove_file(&path).map_err(|error| FileError::Write { path, error })?;
        }
        Ok(())
    }

    fn save_used(&self, keys: &KeyRing) -> CellResult {
        let write = || Ok(secret_file::write(&self.path, keys.to_key_file_ext().expose())?);
        match &self.state {
            Some(state) => Inventory::replacing(state, KEYS, write),
            None => write(),
        }
    }

    /// Reads the keys, after creating those that every cell has, and one for rxkad if `rxkad` is set.
    ///
    /// # Errors
    /// As [`KeyStore::load`] and [`KeyStore::save`].
    pub fn ensure(&self, rxkad: bool, env: &EnvRef) -> CellResult<KeyRing> {
        let kept = self.load()?;
        let mut keys = kept.clone();
        if keys.best(KeyKind::Rxgk).is_none() {
            add_rxgk(&mut keys, env)?;
        }
        if rxkad && keys.best(KeyKind::RxkadKrb5).is_none() {
            add_rxkad(&mut keys, env)?;
        }
        if keys != kept {
            self.save(&keys)?;
        }
        Ok(keys)
    }
}

fn read(path: &Path) -> CellResult<Option<KeyRing>> {
    let Some(bytes) = secret_file::read(path)? else { return Ok(None) };
    let failed = |error| FileError::Keys { path: path.to_owned(), error };
    Ok(Some(KeyRing::from_key_file_ext(&bytes).map_err(failed)?))
}

/// Adds a key of each encryption type used for rxgk, with the next number.
pub fn add_rxgk(keys: &mut KeyRing, env: &EnvRef) -> CellResult<u32> {
    add(keys, KeyKind::Rxgk, &RXGK_ENCTYPES, env)
}

/// Adds a key for rxkad, with the next number.
pub fn add_rxkad(keys: &mut KeyRing, env: &EnvRef) -> CellResult<u32> {
    add(keys, KeyKind::RxkadKrb5, &[RXKAD_ENCTYPE], env)
}

fn add(keys: &mut KeyRing, kind: KeyKind, enctypes: &[i32], env: &EnvRef) -> CellResult<u32> {
    let kvno = keys.latest(kind).unwrap_or(0) + 1;
    for enctype in enctypes {
        let key = generate(kind, *enctype, kvno, env).map_err(FileError::NewKey)?;
        keys.add(key).map_err(FileError::NewKey)?;
    }
    Ok(kvno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::Parts;

    #[test]
    fn a_new_cell_gets_keys_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeyStore::of(dir.path());
        let env = Parts::default().with_random(|out| out.fill(7)).shared();
        assert!(store.load().unwrap().is_empty());
        let keys = store.ensure(false, &env).unwrap();
        assert_eq!(keys.best(KeyKind::Rxgk).unwrap().enctype, 20);
        assert!(keys.best(KeyKind::RxkadKrb5).is_none(), "rxkad is weak: its keys are made on demand only");
        assert_eq!(store.ensure(false, &env).unwrap(), keys);
        assert_eq!(store.load().unwrap(), keys);
        let more = store.ensure(true, &env).unwrap();
        assert_eq!(more.best(KeyKind::RxkadKrb5).unwrap().enctype, 18);
        assert_eq!(store.ensure(true, &env).unwrap(), more);
    }

    #[test]
    fn coming_keys_are_kept_beside_the_file_until_they_are_used() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeyStore::of(dir.path());
        let env = Parts::default().with_random(|out| out.fill(7)).shared();
        let mut keys = store.ensure(false, &env).unwrap();
        let first = std::fs::read(store.path()).unwrap();
        keys.add_coming(generate(KeyKind::Rxgk, 20, 2, &env).unwrap()).unwrap();
        store.save(&keys).unwrap();
        assert_eq!((store.load().unwrap(), std::fs::read(store.path()).unwrap()), (keys.clone(), first));
        assert!(secret_file::read(&store.path_of_coming()).unwrap().is_some(), "for its owner alone");
        // A crash between both files: the key is in both.
        keys.use_coming(|_| true);
        store.save_used(&keys).unwrap();
        assert_eq!(store.load().unwrap(), keys);
        store.save(&keys).unwrap();
        assert_eq!(store.load().unwrap(), keys);
        assert!(!store.path_of_coming().exists(), "no key is coming any more");
        // A key that is removed later does not come back.
        assert!(keys.remove(KeyKind::Rxgk, 2, 20));
        store.save(&keys).unwrap();
        assert_eq!(store.load().unwrap(), keys);
    }
}
