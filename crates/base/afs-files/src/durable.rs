//! Atomic replacement of a file: written under a new name, flushed, renamed, and the directory flushed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Most names tried for the new file.
const NAMES_MAX: u32 = 16;
/// Makes the name of each new file of this process unique.
static NEXT_NAME: AtomicU32 = AtomicU32::new(0);

/// Replaces a file atomically: it has either the old or the new contents. Files that other users placed in the
/// directory, if they may write to it, are neither opened nor followed. Only the owner may read the file.
///
/// # Errors
/// The system refuses, or sixteen names for the new file exist.
pub fn write_durably(directory: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let (mut file, new) = make_new(directory, name)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&new, directory.join(name)));
    if renamed.is_err() {
        let _ = fs::remove_file(&new);
    }
    renamed?;
    File::open(directory)?.sync_all()
}

/// Creates an empty file that did not exist, readable by its owner alone. Returns it with its path.
fn make_new(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES_MAX {
        let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let new = directory.join(format!("{name}.{}-{number}.new", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new) {
            Ok(file) => return Ok((file, new)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_user_put_in_the_way_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "of somebody else").unwrap();
        let next = NEXT_NAME.load(Ordering::Relaxed);
        let guesses = (next..next + NAMES_MAX / 2).map(|n| format!("token.{}-{n}.new", std::process::id()));
        for guess in guesses.chain(["token.new".to_owned(), "token".to_owned()]) {
            std::os::unix::fs::symlink(&victim, dir.path().join(guess)).unwrap();
        }
        write_durably(dir.path(), "token", b"secret").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"of somebody else");
        assert_eq!(fs::read(dir.path().join("token")).unwrap(), b"secret");
        assert!(!dir.path().join("token").is_symlink());
    }
}
