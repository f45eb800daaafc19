//! Folder of one test, where the users of the machine can reach it.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::intruder;
use super::needs::target;

/// Where the folders are if the clone is in a directory that is closed to other users, such as `/root`.
const SHARED: &str = "/var/tmp/andrew-tests";

/// The folder of this process's first test, with the sockets of its mounts: a login at one test does not reach the mounts of another.
static RUN: OnceLock<PathBuf> = OnceLock::new();

/// Where the mounts of this test have their sockets, and commands find them.
#[must_use]
pub fn run_directory() -> Option<&'static Path> {
    RUN.get().map(PathBuf::as_path)
}

/// A folder below `target/live` (or [`SHARED`]), empty at first. Kept if the test fails, for its logs.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder with that name. Mounts that an earlier run left in it are unmounted.
    ///
    /// # Panics
    /// If it cannot be created.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let path = parent(&target().join("live")).join(name);
        unmount_below(&path);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scratch = Self(path);
        let _ = RUN.set(scratch.folder_for_all("run"));
        scratch
    }

    /// Creates a folder in it that all users of the machine may read, and this one alone may write.
    fn folder_for_all(&self, name: &str) -> PathBuf {
        let path = self.folder(name);
        let opened = std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755));
        opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Copies a program into it, so that every user of the machine can run it.
    ///
    /// # Panics
    /// If it cannot be copied.
    #[must_use]
    pub fn copy(&self, program: &Path) -> PathBuf {
        let copy = self.0.join(program.file_name().unwrap_or_default());
        std::fs::copy(program, &copy).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        copy
    }

    /// Creates a folder in it.
    ///
    /// # Panics
    /// If it cannot be created.
    #[must_use]
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        unmount_below(&self.0);
        if !std::thread::panicking() {
            intruder::find_nothing_below(&self.0);
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// The directory for the folders: `wanted`, or one that every user of the machine can reach.
fn parent(wanted: &Path) -> PathBuf {
    if wanted.ancestors().all(may_be_passed) {
        return wanted.to_owned();
    }
    let _ = std::fs::DirBuilder::new().mode(0o755).create(SHARED);
    let found = std::fs::symlink_metadata(SHARED).unwrap_or_else(|error| panic!("{SHARED}: {error}"));
    let us = rustix::process::geteuid().as_raw();
    assert!(found.is_dir() && found.uid() == us, "{SHARED} belongs to another user; please remove it");
    SHARED.into()
}

/// Whether all users may pass through a directory. One that is yet to be created will be open.
fn may_be_passed(directory: &Path) -> bool {
    std::fs::metadata(directory).map_or(true, |found| found.permissions().mode() & 0o001 != 0)
}

/// Unmounts every mount at or below a folder, lazily, so that this does not wait for a dead server.
pub fn unmount_below(folder: &Path) {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mounts") else { return };
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    let mut below: Vec<PathBuf> = points.filter(|point| point.starts_with(folder)).collect();
    below.reverse();
    below.iter().for_each(|point| unmount(point));
}

/// Unmounts one mount lazily, if there is one; by `fusermount3` for a user who is not root.
pub fn unmount(point: &Path) {
    let umount = Command::new("umount").arg("-l").arg(point).output();
    if !umount.is_ok_and(|output| output.status.success()) {
        let _ = Command::new("fusermount3").arg("-uz").arg(point).output();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_the_machine_can_reach_the_folders_of_tests() {
        let clone = std::env::temp_dir().join(format!("andrew-clone-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o755).create(&clone).unwrap();
        let wanted = clone.join("target/live");
        let open = parent(&wanted);
        std::fs::set_permissions(&clone, PermissionsExt::from_mode(0o700)).unwrap();
        let closed = parent(&wanted);
        std::fs::remove_dir(&clone).unwrap();
        assert_eq!((open, closed), (wanted, PathBuf::from(SHARED)));
        assert!(Path::new(SHARED).ancestors().all(may_be_passed));
    }
}
