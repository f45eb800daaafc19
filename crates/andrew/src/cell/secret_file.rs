//! Files that hold secrets: written for their owner alone, and not read when others could have read them too.

use crate::cell::identity::write_durably;
use crate::error::{CommandError, CommandResult};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Longest file of secrets that is read.
const LEN_MAX: u64 = 1 << 20;
/// Bits of a mode that let others than the owner in.
const OTHERS: u32 = 0o077;

/// What a file of secrets holds, or `None` if there is none.
///
/// # Errors
/// It belongs to somebody else, or others may read or write it: what it holds is no secret then.
pub fn read(path: &Path) -> CommandResult<Option<Zeroizing<Vec<u8>>>> {
    let cannot = |e: io::Error| CommandError::failed(format!("cannot read {}: {e}", path.display()));
    // A pipe that somebody put there would otherwise be waited on.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
    };
    check(path, &file)?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(CommandError::failed(format!("{} is too long for a file of keys", path.display())));
    }
    Ok(Some(bytes))
}

/// The open file is looked at, not its name: it cannot be exchanged in between.
fn check(path: &Path, file: &File) -> CommandResult {
    let shown = path.display();
    let meta = file.metadata().map_err(|e| CommandError::failed(format!("cannot look at {shown}: {e}")))?;
    let (owner, own) = (meta.uid(), geteuid().as_raw());
    if !meta.is_file() {
        return Err(CommandError::usage(format!("{shown} is not a file")));
    }
    if owner != own && owner != 0 {
        return Err(CommandError::usage(format!(
            "{shown} holds secrets but belongs to user {owner}; it has to be yours: chown {own} {shown}"
        )));
    }
    if meta.mode() & OTHERS != 0 {
        return Err(CommandError::usage(format!(
            "{shown} holds secrets but its mode {:04o} lets others at it; chmod 600 {shown}, and make new secrets if others may have read it",
            meta.mode() & 0o7777
        )));
    }
    Ok(())
}

/// Writes a file of secrets, whole or not at all, in a directory that only its owner may enter.
///
/// # Errors
/// The disk refuses.
pub fn write(path: &Path, bytes: &[u8]) -> CommandResult {
    let cannot = |e: io::Error| CommandError::failed(format!("cannot write {}: {e}", path.display()));
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
    use std::os::unix::fs::PermissionsExt;

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
            let said = read(&path).unwrap_err().message;
            assert!(said.contains(&format!("mode {mode:04o}")) && said.contains("chmod 600"), "{said}");
        }
    }

    #[test]
    fn a_file_without_end_is_not_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        write(&path, &vec![0; LEN_MAX as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().message.contains("too long"));
        assert!(read(dir.path()).is_err());
    }
}
