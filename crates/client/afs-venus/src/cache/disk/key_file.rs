//! The file `key` of an encrypted cache: whose key it is encrypted with, and by what that key is known. Never changed after its making.
//!
//! ```text
//! key       length u32, crc32c u32 (of the rest; all numbers big-endian), 1u8, user, cell, salt (16 bytes), check value (16 bytes)
//! user      length u8, bytes
//! cell      length u8, bytes
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::index;
use super::local::{named, replace_durably};
use crate::cache::codec::{framed, take, text, unframed};
use crate::cache::encryption::{CHECK_LEN, CacheCipher, CacheSecret, RecordKind, SALT_LEN, Sealing};

/// Version of the format.
const FORMAT: u8 = 1;
/// Longest file, in bytes.
const LEN_MAX: u64 = 1024;

/// Why a cache does not open with a key, or without one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CacheKeyError {
    /// It is encrypted, and no key was given.
    #[error("it is encrypted with the key of {user} in {cell}")]
    Encrypted {
        /// Whose key it is encrypted with.
        user: String,
        /// The user's cell.
        cell: String,
    },
    /// It has files that are not encrypted.
    #[error("it has files that are not encrypted")]
    NotEncrypted,
    /// It is another user's, or another cell's.
    #[error("it is encrypted with the key of {user} in {cell}, not with that of {given}")]
    Other {
        /// Whose key it is encrypted with.
        user: String,
        /// The user's cell.
        cell: String,
        /// Whose key was given, and in which cell.
        given: String,
    },
    /// The user has another key now.
    #[error(
        "it is encrypted with another key of {user} in {cell}: the user, or the cell's login service, was made anew since"
    )]
    Changed {
        /// The user.
        user: String,
        /// The user's cell.
        cell: String,
    },
    /// It is encrypted, and its file `key` is not to be used.
    #[error("{}: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it is.
        why: String,
    },
}

/// The contents of the file.
struct KeyFile {
    user: String,
    cell: String,
    salt: [u8; SALT_LEN],
    check: [u8; CHECK_LEN],
}

/// The keys of the cache in `dir`; `None` for one that is not encrypted. A new one is encrypted if there is a secret.
///
/// # Errors
/// A [`CacheKeyError`], or the disk.
pub(super) fn cipher_of(dir: &Path, secret: Option<&CacheSecret>) -> io::Result<Option<CacheCipher>> {
    let path = dir.join("key");
    match (read(&path).map_err(io::Error::other)?, secret) {
        (None, None) => Ok(None),
        (Some(KeyFile { user, cell, .. }), None) => refused(CacheKeyError::Encrypted { user, cell }),
        (Some(found), Some(secret)) => found.cipher(secret).map(Some).map_err(io::Error::other),
        (None, Some(_)) if is_in_use(dir)? => refused(CacheKeyError::NotEncrypted),
        (None, Some(secret)) => begin(dir, secret).map(Some),
    }
    .and_then(|cipher| match cipher {
        None if index_is_sealed(dir)? => {
            let why = "it is missing, and the cache is encrypted".to_owned();
            refused(CacheKeyError::File { path, why })
        }
        cipher => Ok(cipher),
    })
}

fn index_is_sealed(dir: &Path) -> io::Result<bool> {
    let index = dir.join("index");
    index::is_sealed(&index).map_err(named(&index))
}

fn refused<T>(error: CacheKeyError) -> io::Result<T> {
    Err(io::Error::other(error))
}

/// Whether a cache has anything that its next user would look for.
fn is_in_use(dir: &Path) -> io::Result<bool> {
    let has_bytes = |name: &str| fs::metadata(dir.join(name)).is_ok_and(|found| found.len() > 0);
    let has_unsaved = match fs::read_dir(dir.join("unsaved")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        entries => entries?.next().is_some(),
    };
    Ok(has_unsaved || has_bytes("index") || has_bytes("pins"))
}

fn begin(dir: &Path, secret: &CacheSecret) -> io::Result<CacheCipher> {
    let salt = secret.fresh_salt();
    let cipher = secret.cipher(&salt);
    let (user, cell, check) = (secret.user().to_owned(), secret.cell().to_string(), cipher.check());
    replace_durably(dir, "key", &KeyFile { user, cell, salt, check }.encode())?;
    Ok(cipher)
}

/// The file at a path; `None`: there is none.
fn read(path: &Path) -> Result<Option<KeyFile>, CacheKeyError> {
    let failed = |why: String| CacheKeyError::File { path: path.to_owned(), why };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| failed(error.to_string()))?,
    };
    let mut bytes = Vec::new();
    file.take(LEN_MAX).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    let found = KeyFile::decode(&bytes);
    found.map(Some).ok_or_else(|| failed("it is damaged, or of another version of this program".to_owned()))
}

impl KeyFile {
    fn encode(&self) -> Vec<u8> {
        let mut body = vec![FORMAT];
        for text in [&self.user, &self.cell] {
            let text = text.as_bytes();
            let text = text.get(..text.len().min(255)).unwrap_or_default();
            body.push(text.len() as u8);
            body.extend(text);
        }
        body.extend(self.salt);
        body.extend(self.check);
        framed(&Sealing::Plain, RecordKind::Index, body)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let body = unframed(&Sealing::Plain, RecordKind::Index, bytes)?;
        let mut rest = &*body;
        if take::<1>(&mut rest)? != [FORMAT] {
            return None;
        }
        let mut named = || Some(std::str::from_utf8(text(&mut rest)?).ok()?.to_owned());
        let (user, cell) = (named()?, named()?);
        let found = KeyFile { user, cell, salt: take(&mut rest)?, check: take(&mut rest)? };
        rest.is_empty().then_some(found)
    }

    /// The keys of the cache, if the secret is the one that it was made with.
    fn cipher(self, secret: &CacheSecret) -> Result<CacheCipher, CacheKeyError> {
        let cipher = secret.cipher(&self.salt);
        if cipher.check() == self.check {
            return Ok(cipher);
        }
        let KeyFile { user, cell, .. } = self;
        if user == secret.user() && cell == secret.cell().as_str() {
            return Err(CacheKeyError::Changed { user, cell });
        }
        Err(CacheKeyError::Other { user, cell, given: format!("{} in {}", secret.user(), secret.cell()) })
    }
}
