//! Disk of limited size: a file system in memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::live::process::{run, seconds};
use crate::live::scratch::unmount;

/// A mounted disk; unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of `mebibytes` on a folder.
    #[must_use]
    pub fn new(folder: PathBuf, mebibytes: u64) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=700"), "andrew-test"]).arg(&folder);
        run(mount, seconds(20));
        Self(folder)
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Fills the disk with a file.
    ///
    /// # Panics
    /// If writing ends with another error than "no space".
    #[must_use]
    pub fn fill(&self) -> Filler {
        let path = self.0.join("ballast");
        let filled = std::fs::File::create(&path).and_then(|mut file| {
            loop {
                file.write_all(&[0xba; 4096])?;
            }
        });
        match filled {
            Err::<(), _>(error) if error.kind() == io::ErrorKind::StorageFull => Filler(path),
            other => panic!("a full disk said {other:?}"),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// The file that fills the disk; dropping it removes the file.
#[derive(Debug)]
pub struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
