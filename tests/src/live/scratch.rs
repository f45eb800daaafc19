//! Folder of one test.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::needs::target;

/// A folder below `target/live`, empty at first. Kept if the test fails, for its logs.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder with that name. Mounts that an earlier run left in it are unmounted.
    ///
    /// # Panics
    /// If it cannot be created.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let path = target().join("live").join(name);
        unmount_below(&path);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
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
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
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
