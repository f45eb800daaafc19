//! Contents of a tree, for comparison.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One object of a tree.
#[derive(Clone, PartialEq, Eq)]
pub enum Object {
    /// A folder.
    Folder,
    /// A file: whether it is executable, and its bytes.
    File(bool, Vec<u8>),
    /// Target of a symbolic link.
    Link(PathBuf),
}

/// Objects by their path below the top.
pub type Tree = BTreeMap<PathBuf, Object>;

/// Reads the whole tree.
///
/// # Errors
/// The first error.
pub fn read(top: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let object = object(&path)?;
            if object == Object::Folder {
                folders.push(path.clone());
            }
            tree.insert(path.strip_prefix(top).unwrap_or(&path).to_owned(), object);
        }
    }
    Ok(tree)
}

fn object(path: &Path) -> io::Result<Object> {
    let status = fs::symlink_metadata(path)?;
    if status.is_dir() {
        return Ok(Object::Folder);
    }
    if status.is_symlink() {
        return fs::read_link(path).map(Object::Link);
    }
    Ok(Object::File(status.permissions().mode() & 0o111 != 0, fs::read(path)?))
}

/// Differences of two trees; empty if they are equal.
#[must_use]
pub fn differences(one: &Tree, other: &Tree) -> Vec<String> {
    let mut paths: Vec<_> = one.keys().chain(other.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let differ = paths.into_iter().filter(|path| one.get(*path) != other.get(*path));
    differ
        .map(|path| format!("{}: {} | {}", path.display(), shown(one.get(path)), shown(other.get(path))))
        .collect()
}

fn shown(object: Option<&Object>) -> String {
    match object {
        None => "is not there".to_owned(),
        Some(Object::Folder) => "a folder".to_owned(),
        Some(Object::Link(to)) => format!("a link to {}", to.display()),
        Some(Object::File(runs, bytes)) => {
            format!("{} bytes{}", bytes.len(), if *runs { ", executable" } else { "" })
        }
    }
}

/// Removes what two builds do not share: the path of the build, in files that contain it, and files that contain its
/// time.
#[must_use]
pub fn comparable(mut tree: Tree, made_at: &Path, dated: &[&str]) -> Tree {
    let path = made_at.to_string_lossy().into_owned();
    tree.retain(|name, _| !dated.iter().any(|dated| name == Path::new(dated)));
    for object in tree.values_mut() {
        if let Object::File(_, bytes) = object
            && let Ok(text) = std::str::from_utf8(bytes)
            && text.contains(&path)
        {
            *bytes = text.replace(&path, "(here)").into_bytes();
        }
    }
    tree
}
