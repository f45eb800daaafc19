//! Files of secrets: written for their owner alone, and refused if other users may read them.

use crate::write_durably;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Why a file of secrets could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The owner and mode of the file cannot be determined.
    #[error("cannot look at {}: {error}", .path.display())]
    Status {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It is longer than 1 MiB.
    #[error("{} is too long for a file of keys", .0.display())]
    TooLong(PathBuf),
    /// The path is a directory, a pipe or a device.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// The file belongs neither to this user nor to root.
    #[error("{} holds secrets but belongs to user {owner}; it has to be yours: chown {own} {}", .path.display(), .path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        own: u32,
    },
    /// Users other than its owner may read or write it.
    #[error("{} holds secrets but its mode {mode:04o} lets others at it; chmod 600 {}, and make new secrets if others may have read it", .path.display(), .path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Longest file of secrets that is read.
const LEN_MAX: u64 = 1 << 20;
/// Mode bits of users other than the owner.
const OTHERS: u32 = 0o077;

/// Reads a file of secrets; `None` if it does not exist.
///
/// # Errors
/// The file belongs to another user, or others may read or write it, so that its contents are not secret.
pub fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, SecretFileError> {
    let cannot = |error| SecretFileError::Read { path: path.to_owned(), error };
    // Does not block on a pipe at this path.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
    };
    check(path, &file)?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(SecretFileError::TooLong(path.to_owned()));
    }
    Ok(Some(bytes))
}

/// Checks the open file rather than its name, which could be exchanged in between.
fn check(path: &Path, file: &File) -> Result<(), SecretFileError> {
    let path = path.to_owned();
    let meta = match file.metadata() {
        Ok(meta) => meta,
        Err(error) => return Err(SecretFileError::Status { path, error }),
    };
    let (owner, own) = (meta.uid(), geteuid().as_raw());
    if !meta.is_file() {
        return Err(SecretFileError::NotAFile(path));
    }
    if owner != own && owner != 0 {
        return Err(SecretFileError::Owner { path, owner, own });
    }
    if meta.mode() & OTHERS != 0 {
        return Err(SecretFileError::Mode { path, mode: meta.mode() & 0o7777 });
    }
    Ok(())
}

/// Replaces a file of secrets atomically, in a directory that only its owner may enter.
///
/// # Errors
/// The disk refuses the write.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SecretFileError> {
    let cannot = |error| SecretFileError::Write { path: path.to_owned(), error };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return Err(cannot(io::ErrorKind::InvalidInput.into()));
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
    write_durably(directory, name, bytes).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn only_what_others_cannot_read_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/one");
        assert!(read(&path).unwrap().is_none());
        write(&path, b"secret").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().as_slice(), b"secret");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(dir.path().join("keys")).unwrap().mode() & 0o777, 0o700);
        for mode in [0o644, 0o640, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let said = read(&path).unwrap_err().to_string();
            assert!(said.contains(&format!("mode {mode:04o}")) && said.contains("chmod 600"), "{said}");
        }
        if !geteuid().is_root() {
            return;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(65_534), None).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(said.contains("belongs to user 65534") && said.contains("chown 0"), "{said}");
    }

    #[test]
    fn a_file_without_end_is_not_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        write(&path, &vec![0; LEN_MAX as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("too long"));
        assert!(read(dir.path()).is_err());
    }
}
