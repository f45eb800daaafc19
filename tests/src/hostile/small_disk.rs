//! A disk with little room: a file system in memory of a fixed size.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::live::process::{run, seconds};
use crate::live::scratch::unmount;

/// A mounted disk. Unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// A disk of `mebibytes` on a folder.
    #[must_use]
    pub fn new(folder: PathBuf, mebibytes: u64) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=700"), "andrew-test"]).arg(&folder);
        run(mount, seconds(20));
        Self(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Somebody else takes all the room there is.
    ///
    /// # Panics
    /// If the disk ends with anything but "no space".
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

/// What takes the room. Dropping it gives it back.
#[derive(Debug)]
pub struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
