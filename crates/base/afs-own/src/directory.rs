//! Durable creation of directories: each directory in which a name was made is flushed.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

/// Creates a directory with `builder`, and the missing directories above it; returns when all of them are durable. For
/// an existing directory the parent is flushed too, since its creator may have been interrupted.
///
/// # Errors
/// The system refuses. If nothing had to be created, a parent that this user may not open is skipped.
pub fn make_directory(path: &Path, builder: &mut DirBuilder) -> io::Result<()> {
    make(path, |path| builder.recursive(true).create(path), flush)
}

fn make(
    path: &Path,
    create: impl FnOnce(&Path) -> io::Result<()>,
    mut flush: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let was_there = path.is_dir();
    let above = changed_by(path);
    create(path)?;
    let flushed = above.iter().rev().try_for_each(|directory| flush(directory));
    match flushed {
        Err(error) if was_there && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// The directories that get a new entry when all of `path` is created: its parent, and the parents of all missing
/// directories.
fn changed_by(path: &Path) -> Vec<PathBuf> {
    let mut changed = Vec::new();
    for directory in path.ancestors() {
        let Some(above) = directory.parent() else { break };
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        changed.push(above.to_owned());
        if above.is_dir() {
            break;
        }
    }
    changed
}

fn flush(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directories that are flushed when a directory is created.
    fn flushed(path: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let create = |path: &Path| DirBuilder::new().recursive(true).create(path);
        let note = |directory: &Path| {
            assert!(path.is_dir(), "flushed before it was made");
            all.push(directory.to_owned());
            Ok(())
        };
        make(path, create, note).unwrap();
        all
    }

    #[test]
    fn every_directory_with_a_new_name_is_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_owned();
        let deep = top.join("a/b/c");
        assert_eq!(flushed(&deep), [top.clone(), top.join("a"), top.join("a/b")]);
        // The creator may have been interrupted before it flushed.
        assert_eq!(flushed(&deep), [top.join("a/b")]);
        assert_eq!(flushed(&top.join("d")), [top]);
    }

    #[test]
    fn a_directory_that_cannot_be_synced_is_an_error_after_a_creation() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("a");
        let create = |path: &Path| DirBuilder::new().recursive(true).create(path);
        let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let error = make(&made, create, denied).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        make(&made, create, denied).unwrap();
        make_directory(&dir.path().join("b/c"), &mut DirBuilder::new()).unwrap();
        assert!(dir.path().join("b/c").is_dir());
    }
}
