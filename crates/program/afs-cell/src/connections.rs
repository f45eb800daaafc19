//! The kernel's connections to the programs of FUSE mounts, as files of the file system `fusectl`.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Where machines with systemd have `fusectl` mounted.
const MOUNTED: &str = "/sys/fs/fuse/connections";

/// The kernel's connection to the program of one mount. Without effect on others once the mount is gone.
#[derive(Debug)]
pub struct Connection(File);

impl Connection {
    /// The connection of the mount with the device number `MAJOR:MINOR` of [`crate::mounts::Mount`].
    ///
    /// # Errors
    /// `fusectl` is not mounted and this user may not mount it, or the mount is gone or another user's.
    pub fn open(device: &str) -> io::Result<Self> {
        let minor = device.split_once(':').and_then(|(_, minor)| minor.parse::<u32>().ok());
        let file = format!("{}/abort", minor.ok_or(io::ErrorKind::InvalidInput)?);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = match openat(CWD, Path::new(MOUNTED).join(&file), flags, Mode::empty()) {
            Err(Errno::NOENT) => openat(own_fusectl()?, file, flags, Mode::empty()),
            opened => opened,
        };
        Ok(Self(File::from(opened?)))
    }

    /// The file whose writing is [`Connection::abort`], for another process.
    ///
    /// # Errors
    /// No further descriptor.
    pub fn abort_file(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Ends the connection: what programs wait for in the mount, and whatever they do in it from now on, fails, and nothing in the kernel waits for the
    /// program of the mount any more.
    pub fn abort(&self) {
        abort_by(&self.0);
    }
}

/// [`Connection::abort`], by its file.
pub fn abort_by(file: impl AsFd) {
    if let Err(error) = rustix::io::write(file, b"1") {
        tracing::debug!(%error, "the connection of a mount cannot be ended");
    }
}

/// A `fusectl` that is in no name space. Only root of the machine may make one.
fn own_fusectl() -> rustix::io::Result<OwnedFd> {
    let system = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mount_of_a_user_has_no_connection() {
        for device in ["", "0:", "0:x", "0:../../x", "0:0"] {
            assert!(Connection::open(device).is_err(), "{device:?}");
        }
    }
}
