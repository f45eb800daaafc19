//! Where the credential cache is.

use super::Cache;
use afs_files::secret_file;
use crate::error::{CommandError, CommandResult};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where a user's credential cache is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file of its own.
    File(PathBuf),
    /// A directory of caches, one of them the primary one.
    Directory(PathBuf),
}

impl Location {
    /// Reads a name as in `KRB5CCNAME`: `FILE:` (or none) and a path, or `DIR:` and a path. A name `DIR::` and a path
    /// is one file of such a directory.
    ///
    /// # Errors
    /// A cache that no other program can read, or one of an unknown kind; the message says what to do.
    pub fn parse(name: &str) -> CommandResult<Self> {
        let (kind, rest) = match name.split_once(':') {
            Some((kind, rest)) if !kind.contains('/') => (kind, rest),
            _ => ("FILE", name),
        };
        match (kind, rest) {
            ("FILE" | "DIR", "") => {
                Err(CommandError::usage(format!("the credential cache '{name}' has no path")))
            }
            ("FILE", path) => Ok(Self::File(path.into())),
            ("DIR", path) => match path.strip_prefix(':') {
                Some(file) => Ok(Self::File(file.into())),
                None => Ok(Self::Directory(path.into())),
            },
            (kind, _) => Err(CommandError::usage(format!(
                "tickets in a credential cache of kind {kind} can only be read by Kerberos's own programs; put them in a file with `KRB5CCNAME=FILE:/tmp/krb5cc_andrew kinit` and give andrew the same KRB5CCNAME"
            ))),
        }
    }

    /// What the cache holds.
    ///
    /// # Errors
    /// There is none, others may read it, or it is damaged.
    pub fn read(&self) -> CommandResult<Cache> {
        let path = self.file()?;
        let shown = path.display();
        let bytes = secret_file::read(&path)?.ok_or_else(|| {
            CommandError::failed(format!("there are no Kerberos tickets in {shown}; get some with `kinit`"))
        })?;
        Cache::decode(&bytes).map_err(|e| {
            CommandError::failed(format!(
                "the credential cache {shown} cannot be used: {e}; make a new one with `kinit`"
            ))
        })
    }

    fn file(&self) -> CommandResult<PathBuf> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Directory(path) => primary(path),
        }
    }
}

/// The cache in use among those of a directory: the file `primary` names it, and without one it is `tkt`.
fn primary(directory: &Path) -> CommandResult<PathBuf> {
    let path = directory.join("primary");
    let mut text = String::new();
    match File::open(&path).map(|file| file.take(NAME_MAX).read_to_string(&mut text)) {
        Ok(Ok(_)) => {}
        Ok(Err(e)) => return Err(CommandError::failed(format!("cannot read {}: {e}", path.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => text.push_str("tkt"),
        Err(e) => return Err(CommandError::failed(format!("cannot read {}: {e}", path.display()))),
    }
    let name = text.trim_end_matches('\n');
    if !name.starts_with("tkt") || name.contains('/') {
        return Err(CommandError::failed(format!("{} names no credential cache", path.display())));
    }
    Ok(directory.join(name))
}

/// Longest file name read, in bytes.
const NAME_MAX: u64 = 256;

/// As [`Location::parse`] reads it.
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
    use crate::kerberos::samples::CACHE;
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
            assert!(said.status == CommandError::USAGE && said.message.contains(word), "{said}");
        }
    }

    #[test]
    fn a_cache_that_others_may_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cc");
        let location = Location::File(path.clone());
        assert!(location.read().unwrap_err().message.contains("get some with `kinit`"));
        write(&path, 0o600);
        assert_eq!(location.read().unwrap(), Cache::decode(CACHE).unwrap());
        write(&path, 0o640);
        assert!(location.read().unwrap_err().message.contains("chmod 600"));
        fs::write(&path, "no cache").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(location.read().unwrap_err().message.contains("no credential cache"));
    }

    #[test]
    fn a_directory_says_which_cache_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Directory(dir.path().to_owned());
        write(&dir.path().join("tkt"), 0o600);
        assert!(location.read().is_ok());
        fs::write(dir.path().join("primary"), "tktB\n").unwrap();
        assert!(location.read().unwrap_err().message.contains("tktB"));
        write(&dir.path().join("tktB"), 0o600);
        assert!(location.read().is_ok());
        fs::write(dir.path().join("primary"), "../x").unwrap();
        assert!(location.read().unwrap_err().message.contains("names no credential cache"));
    }
}
