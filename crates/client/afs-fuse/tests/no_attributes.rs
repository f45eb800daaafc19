//! Tests that files have no extended attributes, under a real kernel: it says so itself, and asks the mount once.
//!
//! They need root and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use kit::{MountedCell, can_mount};
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

const FILES: usize = 200;

/// A trace of the requests that the kernel sends to the program of one mount.
struct Trace {
    folder: PathBuf,
    /// As the trace names the mount.
    connection: String,
}

impl Trace {
    /// `None`: this kernel has no such events.
    fn of(mount: &Path) -> Option<Self> {
        let minor = rustix::fs::minor(fs::metadata(mount).unwrap().dev());
        let folder = PathBuf::from(format!("/sys/kernel/tracing/instances/andrew-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let trace = Self { folder, connection: format!("connection {minor} ") };
        fs::write(trace.folder.join("buffer_size_kb"), "4096").ok()?;
        fs::write(trace.folder.join("events/fuse/fuse_request_send/enable"), "1").ok()?;
        Some(trace)
    }

    /// Number of requests of a kind so far.
    fn count(&self, kind: &str) -> usize {
        let text = fs::read_to_string(self.folder.join("trace")).unwrap();
        text.lines().filter(|line| line.contains(&self.connection) && line.contains(kind)).count()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        fs::remove_dir(&self.folder).ok();
    }
}

#[test]
fn no_file_has_an_extended_attribute_and_none_can_be_set() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    let here = cell.machine("here", true);
    let (file, folder) = (here.mount.join("file"), here.mount.join("folder"));
    fs::write(&file, "x").unwrap();
    fs::create_dir(&folder).unwrap();
    for path in [&file, &folder, &here.mount] {
        // The second time the kernel replies by itself.
        for _ in 0..2 {
            assert_eq!(listxattr(path, &mut [0u8; 100][..]), Err(Errno::OPNOTSUPP));
            for name in ["afs.acl", "afs.quota", "user.mine", "trusted.mine"] {
                assert_eq!(getxattr(path, name, &mut [0u8; 100][..]), Err(Errno::OPNOTSUPP), "{name}");
                let set = setxattr(path, name, b"5", XattrFlags::empty());
                assert_eq!(set, Err(Errno::OPNOTSUPP), "{name}");
                assert_eq!(removexattr(path, name), Err(Errno::OPNOTSUPP), "{name}");
            }
        }
    }
}

#[test]
fn the_kernel_asks_once_in_the_life_of_a_mount_whether_there_are_any() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    let here = cell.machine("here", true);
    let Some(trace) = Trace::of(&here.mount) else {
        eprintln!("SKIPPED: this kernel does not tell of the requests of FUSE");
        return;
    };
    for number in 0..FILES {
        fs::write(here.mount.join(number.to_string()), "x").unwrap();
    }
    let listed = Command::new("ls").arg("-l").arg(&here.mount).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).lines().count() > FILES);
    let file = here.mount.join("1");
    for _ in 0..3 {
        assert_eq!(listxattr(&file, &mut [0u8; 100][..]), Err(Errno::OPNOTSUPP));
        assert_eq!(setxattr(&file, "user.x", b"", XattrFlags::empty()), Err(Errno::OPNOTSUPP));
        assert_eq!(removexattr(&file, "user.x"), Err(Errno::OPNOTSUPP));
    }
    assert!(trace.count("FUSE_CREATE") >= FILES, "the trace has not what was done");
    for kind in ["FUSE_GETXATTR", "FUSE_LISTXATTR", "FUSE_SETXATTR", "FUSE_REMOVEXATTR"] {
        assert!(trace.count(kind) <= 1, "{kind}: {}", trace.count(kind));
    }
}
