//! Manifest of a tree: all that is visible of it through a mount, for comparison with the same tree elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cell::andrew;
use super::netns::Netns;
use super::process::{run, seconds};
use super::properties::properties;

/// Properties of a file, directory, link or mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    mode: u32,
    owner: u32,
    links: u64,
    length: u64,
    modified: i64,
    content: String,
    /// Vnode number and uniquifier, which the volume keeps when it is moved.
    fid: String,
    access: String,
}

/// A tree: by path below its top, with bytes that are not UTF-8 escaped.
pub type Manifest = BTreeMap<String, Seen>;

/// Name of the only mount point that a tree may have; it is not crossed.
pub const MOUNT_POINT: &str = "mount-point";

/// Flushes the client's cache of the volume, and reads all of the tree.
///
/// # Panics
/// If anything cannot be read.
#[must_use]
pub fn manifest(top: &Path) -> Manifest {
    fs_do("flushvolume", &[top.to_owned()]);
    let mut paths = vec![top.to_owned()];
    collect(top, &mut paths);
    let name = |path: &Path| format!("{:?}", path.strip_prefix(top).unwrap_or(path));
    let mut all: Manifest = paths.iter().map(|path| (name(path), look(path))).collect();
    paths.retain(|path| path.file_name() != Some(OsStr::new(MOUNT_POINT)));
    for (path, fid) in paths.iter().zip(properties(&paths, "afs.fid")) {
        let seen = all.get_mut(&name(path)).unwrap();
        seen.fid = fid.split_once('.').map_or(String::new(), |(_, rest)| rest.to_owned());
    }
    paths.retain(|path| path.symlink_metadata().is_ok_and(|data| data.is_dir()));
    for (path, list) in paths.iter().zip(properties(&paths, "afs.acl")) {
        all.get_mut(&name(path)).unwrap().access = list;
    }
    all
}

/// Compares two trees.
///
/// # Panics
/// If they differ; the message has the first difference.
pub fn assert_same(what: &str, wanted: &Manifest, seen: &Manifest) {
    for (path, one) in wanted {
        let other = seen.get(path);
        assert!(other == Some(one), "{what}: {path:?} was\n{one:?}, and is\n{other:?}");
    }
    let more: Vec<&String> = seen.keys().filter(|path| !wanted.contains_key(*path)).collect();
    assert!(more.is_empty(), "{what}: nobody made {more:?}");
}

/// Quota and space used of the volume at `top`, in KiB.
///
/// # Panics
/// If they cannot be read.
#[must_use]
pub fn quota(top: &Path) -> (u64, u64) {
    let said = fs_command("listquota", &[top.to_owned()]);
    // No quota is null.
    let kib = |name: &str| said[0][name].as_u64().map_or(0, |bytes| bytes / 1024);
    assert!(said[0]["used_bytes"].is_u64(), "{said}");
    (kib("quota_bytes"), kib("used_bytes"))
}

/// Runs an `andrew fs` command that must succeed.
///
/// # Panics
/// If it fails.
pub fn fs_do(word: &str, rest: &[impl AsRef<OsStr>]) {
    let _ = run(fs_words(word, rest), seconds(60));
}

fn fs_command(word: &str, paths: &[PathBuf]) -> Value {
    let said = run(fs_words(word, paths), seconds(60));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("fs {word}: {error}: {said}"))
}

fn fs_words(word: &str, rest: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Netns::machine().command(andrew());
    command.args(["--json", "fs", word]).args(rest);
    command
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let path = entry.path();
        let point = entry.file_name() == MOUNT_POINT;
        let is_directory = path.symlink_metadata().is_ok_and(|data| data.is_dir());
        into.push(path.clone());
        if is_directory && !point {
            collect(&path, into);
        }
    }
}

fn look(path: &Path) -> Seen {
    if path.file_name() == Some(OsStr::new(MOUNT_POINT)) {
        return mount_point(path);
    }
    let data = path.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Seen {
        mode: data.mode(),
        owner: data.uid(),
        links: data.nlink(),
        length: data.len(),
        modified: data.mtime(),
        content: content(path, &data),
        fid: String::new(),
        access: String::new(),
    }
}

fn mount_point(path: &Path) -> Seen {
    let content = fs_command("lsmount", &[path.to_owned()])[0]["volume"].to_string();
    let (fid, access) = (String::new(), String::new());
    Seen { mode: 0o12 << 12, owner: 0, links: 0, length: 0, modified: 0, content, fid, access }
}

fn content(path: &Path, data: &Metadata) -> String {
    let kind = data.file_type();
    let read = match (kind.is_symlink(), kind.is_file()) {
        (true, _) => fs::read_link(path).map(|target| format!("{target:?}")),
        (_, true) => sum(path),
        _ => Ok(String::new()),
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sum(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, DefaultHasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:016x}", hasher.finish())),
            len => hasher.write(&buffer[..len]),
        }
    }
}
