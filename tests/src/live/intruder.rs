//! Another user of the machine, who tries to read, lock, replace and plant below everything that the product keeps on disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::needs::is_root;

/// A user id that nobody has.
const UID: &str = "65533";
/// Directories below the folder of a test that are looked through for those of the product.
const DEPTH: usize = 6;

/// What the intruder could open or change below some places: files to read, lock or write, and directories to plant in.
///
/// # Panics
/// If this process is not root's, who can become another user.
#[must_use]
pub fn finds(places: &[PathBuf]) -> Vec<String> {
    let mut find = Command::new("setpriv");
    find.args(["--reuid", UID, "--regid", UID, "--clear-groups", "find"]).args(places).current_dir("/");
    // The configuration is the administrator's own file, without secrets, and a log with a number the test's.
    let read_or_locked = ["(", "-readable", "!", "-name", "server.toml", "!", "-name", "log[0-9]*", ")"];
    find.args(["(", "-type", "f", "("]).args(read_or_locked).args(["-o", "-writable", ")", ")"]);
    find.args(["-o", "(", "-type", "d", "-writable", ")"]);
    let found = find.output().unwrap_or_else(|error| panic!("setpriv: {error}"));
    let said = String::from_utf8_lossy(&found.stderr);
    // It is denied what it is to be denied; nothing else may keep it from looking.
    let else_said = said.lines().find(|line| !line.contains("Permission denied"));
    assert!(else_said.is_none(), "{said}");
    String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
}

/// Checks the state, partitions, drives and caches that are below the folder of a test. Only root can.
///
/// # Panics
/// If another user could open a file there, or plant one.
pub fn find_nothing_below(folder: &Path) {
    let mut places = Vec::new();
    if is_root() {
        collect(folder, folder, DEPTH, &mut places);
    }
    if !places.is_empty() {
        let found = finds(&places);
        assert!(found.is_empty(), "another user of the machine can open or change {found:#?}");
    }
}

/// The topmost directories of the product: those with a lock or the identity of a partition.
fn collect(folder: &Path, top: &Path, depth: usize, places: &mut Vec<PathBuf>) {
    if ["lock", "partition.json"].iter().any(|name| folder.join(name).is_file()) {
        places.push(folder.to_owned());
        return;
    }
    let device = |path: &Path| fs::symlink_metadata(path).map(|found| found.dev()).ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink());
    for path in below.filter(|path| depth > 0 && device(path) == device(top)) {
        collect(&path, top, depth - 1, places);
    }
}
