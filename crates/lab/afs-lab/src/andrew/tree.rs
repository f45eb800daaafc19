//! Source tree: names and lengths, listed once before the timed part starts.

use crate::error::{Context, LabError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file of the source tree.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Path relative to the root of the tree.
    pub(crate) path: PathBuf,
    /// Length in bytes when the tree was listed.
    pub(crate) length: u64,
    /// Permission bits, so that scripts in the copy can be run.
    pub(crate) mode: u32,
}

/// A symbolic link of the source tree.
#[derive(Clone, Debug)]
pub(crate) struct SourceLink {
    /// Path relative to the root of the tree.
    pub(crate) path: PathBuf,
    /// Its text, copied unchanged.
    pub(crate) target: PathBuf,
}

/// Size of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSize {
    /// Directories, the root not counted.
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes in the regular files.
    pub bytes: u64,
}

/// A listed source tree: names and lengths in memory, no contents. Parents come before children,
/// and names of a directory in byte order, so that every run does the same work in the same order.
#[derive(Clone, Debug)]
pub struct SourceTree {
    pub(crate) root: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) links: Vec<SourceLink>,
}

impl SourceTree {
    /// Lists the tree under `root`.
    ///
    /// # Errors
    /// A directory that cannot be read, something that is neither file, directory nor link, or a
    /// tree without a file.
    pub fn list(root: &Path) -> Result<Self, LabError> {
        let mut tree =
            Self { root: root.to_owned(), directories: Vec::new(), files: Vec::new(), links: Vec::new() };
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let mut found = tree.list_directory(&directory)?;
            pending.append(&mut found);
        }
        tree.directories.sort();
        if tree.files.is_empty() {
            return Err(LabError::EmptyTree { path: root.to_owned() });
        }
        Ok(tree)
    }

    /// Adds the entries of one directory; returns its subdirectories, the last in order first.
    fn list_directory(&mut self, directory: &Path) -> Result<Vec<PathBuf>, LabError> {
        let absolute = self.root.join(directory);
        let mut names = Vec::new();
        for entry in fs::read_dir(&absolute).during("read the directory", &absolute)? {
            names.push(entry.during("read the directory", &absolute)?.file_name());
        }
        names.sort_unstable_by(|a, b| b.cmp(a));
        let mut subdirectories = Vec::new();
        for name in names {
            let path = directory.join(&name);
            if self.add(&path)? {
                subdirectories.push(path);
            }
        }
        Ok(subdirectories)
    }

    /// Adds the entry at `path`; true if it is a directory.
    fn add(&mut self, path: &Path) -> Result<bool, LabError> {
        let absolute = self.root.join(path);
        let status = fs::symlink_metadata(&absolute).during("get the status of", &absolute)?;
        let kind = status.file_type();
        if kind.is_dir() {
            self.directories.push(path.to_owned());
            return Ok(true);
        }
        if kind.is_symlink() {
            let target = fs::read_link(&absolute).during("read the link", &absolute)?;
            self.links.push(SourceLink { path: path.to_owned(), target });
        } else if kind.is_file() {
            self.files.push(SourceFile {
                path: path.to_owned(),
                length: status.len(),
                mode: status.permissions().mode() & 0o777 | 0o600,
            });
        } else {
            return Err(LabError::OddFile { path: absolute });
        }
        Ok(false)
    }

    /// Size of the tree.
    #[must_use]
    pub fn size(&self) -> TreeSize {
        TreeSize {
            directories: self.directories.len() as u64,
            files: self.files.len() as u64,
            links: self.links.len() as u64,
            bytes: self.files.iter().map(|f| f.length).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn lists_directories_files_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/x.c"), "int x;").unwrap();
        fs::write(root.join("y"), "").unwrap();
        symlink("y", root.join("z")).unwrap();
        let tree = SourceTree::list(root).unwrap();
        let size = tree.size();
        assert_eq!((size.directories, size.files, size.links, size.bytes), (2, 2, 1, 6));
        assert_eq!(tree.directories, [PathBuf::from("a"), PathBuf::from("a/b")]);
    }

    #[test]
    fn an_empty_tree_and_a_missing_one_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let empty = SourceTree::list(dir.path()).unwrap_err().to_string();
        assert!(empty.ends_with("holds no file; give the source tree of a program"), "{empty}");
        let missing = SourceTree::list(&dir.path().join("no")).unwrap_err().to_string();
        assert!(missing.starts_with("read the directory "), "{missing}");
    }
}
