//! Names of credential caches, as in `KRB5CCNAME`, and the files that they denote.

use super::{Cache, CacheError};
use afs_files::secret_file::{self, SecretFileError};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a credential cache cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// `KRB5CCNAME` is not valid UTF-8.
    #[error("KRB5CCNAME is not UTF-8")]
    NotText,
    /// A name without a path.
    #[error("the credential cache '{0}' has no path")]
    NoPath(String),
    /// A cache that is not a file: its type.
    #[error("tickets in a credential cache of kind {0} can only be read by Kerberos's own programs")]
    Kind(String),
    /// The file does not exist.
    #[error("there are no Kerberos tickets in {}; get some with `kinit`", .0.display())]
    Missing(PathBuf),
    /// Others may read the file, or it cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The file is not a valid cache.
    #[error("the credential cache {} cannot be used: {error}; make a new one with `kinit`", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        error: CacheError,
    },
    /// The file with the name of the primary cache cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Primary {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file with the name of the primary cache does not contain one.
    #[error("{} names no credential cache", .0.display())]
    NamesNone(PathBuf),
}

/// Location of a user's credential cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file.
    File(PathBuf),
    /// A directory of caches, of which one is the primary one.
    Directory(PathBuf),
}

impl Location {
    /// Parses a name as in `KRB5CCNAME`: `FILE:` (or none) and a path, or `DIR:` and a path. A name `DIR::` and a path
    /// is one file of such a directory.
    ///
    /// # Errors
    /// The name has no path, or is of a cache that is not a file.
    pub fn parse(name: &str) -> Result<Self, LocationError> {
        let (kind, rest) = match name.split_once(':') {
            Some((kind, rest)) if !kind.contains('/') => (kind, rest),
            _ => ("FILE", name),
        };
        match (kind, rest) {
            ("FILE" | "DIR", "") => Err(LocationError::NoPath(name.to_owned())),
            ("FILE", path) => Ok(Self::File(path.into())),
            ("DIR", path) => match path.strip_prefix(':') {
                Some(file) => Ok(Self::File(file.into())),
                None => Ok(Self::Directory(path.into())),
            },
            (kind, _) => Err(LocationError::Kind(kind.to_owned())),
        }
    }

    /// Reads the cache.
    ///
    /// # Errors
    /// It does not exist, others may read it, or it is damaged.
    pub fn read(&self) -> Result<Cache, LocationError> {
        let path = self.file()?;
        let bytes = secret_file::read(&path)?.ok_or_else(|| LocationError::Missing(path.clone()))?;
        Cache::decode(&bytes).map_err(|error| LocationError::Damaged { path, error })
    }

    fn file(&self) -> Result<PathBuf, LocationError> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Directory(path) => primary(path),
        }
    }
}

/// The primary cache of a directory: the file `primary` contains its name; without that file it is `tkt`.
fn primary(directory: &Path) -> Result<PathBuf, LocationError> {
    let path = directory.join("primary");
    let cannot = |error| LocationError::Primary { path: path.clone(), error };
    let mut text = String::new();
    match File::open(&path).map(|file| file.take(NAME_MAX).read_to_string(&mut text)) {
        Ok(Ok(_)) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => text.push_str("tkt"),
        Ok(Err(e)) | Err(e) => return Err(cannot(e)),
    }
    let name = text.trim_end_matches('\n');
    if !name.starts_with("tkt") || name.contains('/') {
        return Err(LocationError::NamesNone(path));
    }
    Ok(directory.join(name))
}

/// Longest file name read, in bytes.
const NAME_MAX: u64 = 256;

/// In the form that [`Location::parse`] accepts.
impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "FILE:{}", path.display()),
            Self::Directory(path) => write!(f, "DIR:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::CACHE;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn write(path: &Path, mode: u32) {
        fs::write(path, CACHE).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn names_of_caches_are_told_apart() {
        for (name, location) in [
            ("/tmp/x", Location::File("/tmp/x".into())),
            ("FILE:/tmp/x:y", Location::File("/tmp/x:y".into())),
            ("DIR:/run/user/1/krb5cc", Location::Directory("/run/user/1/krb5cc".into())),
            ("DIR::/run/user/1/krb5cc/tktA", Location::File("/run/user/1/krb5cc/tktA".into())),
        ] {
            assert_eq!(Location::parse(name).unwrap(), location, "{name}");
        }
        for (name, word) in
            [("FILE:", "no path"), ("KCM:", "KCM"), ("KCM:1000", "KCM"), ("KEYRING:persistent:0", "KEYRING")]
        {
            let said = Location::parse(name).unwrap_err();
            assert!(said.to_string().contains(word), "{said}");
        }
    }

    #[test]
    fn a_cache_that_others_may_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cc");
        let location = Location::File(path.clone());
        assert!(location.read().unwrap_err().to_string().contains("get some with `kinit`"));
        write(&path, 0o600);
        assert_eq!(location.read().unwrap(), Cache::decode(CACHE).unwrap());
        write(&path, 0o640);
        assert!(location.read().unwrap_err().to_string().contains("chmod 600"));
        fs::write(&path, "no cache").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(location.read().unwrap_err().to_string().contains("no credential cache"));
    }

    #[test]
    fn a_directory_says_which_cache_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Directory(dir.path().to_owned());
        write(&dir.path().join("tkt"), 0o600);
        assert!(location.read().is_ok());
        fs::write(dir.path().join("primary"), "tktB\n").unwrap();
        assert!(location.read().unwrap_err().to_string().contains("tktB"));
        write(&dir.path().join("tktB"), 0o600);
        assert!(location.read().is_ok());
        fs::write(dir.path().join("primary"), "../x").unwrap();
        assert!(location.read().unwrap_err().to_string().contains("names no credential cache"));
    }
}
