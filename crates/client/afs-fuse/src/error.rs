//! Errors of mounting.

use std::io;
use std::path::{Path, PathBuf};

/// Why a mount failed. Each message says what would help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The kernel has no FUSE device, or the device is not visible to this process.
    #[error(
        "there is no /dev/fuse; load the kernel module (`modprobe fuse`), or give the container the device"
    )]
    NoDevice,
    /// This user may not open the device.
    #[error(
        "this user may not open /dev/fuse; the administrator allows it with `chmod 666 /dev/fuse`, as most systems do by themselves"
    )]
    DeviceDenied,
    /// The helper with which an ordinary user mounts is missing.
    #[error("fusermount3 is not installed; install the package fuse3 (`apt install fuse3`)")]
    NoHelper,
    /// The mount point does not exist.
    #[error("{} does not exist; make it, or give another directory", .0.display())]
    Missing(PathBuf),
    /// The mount point is not a directory.
    #[error("{} is not a directory; give a directory", .0.display())]
    NotDirectory(PathBuf),
    /// The mount point contains files, which the mount would hide.
    #[error("{} is not empty; give an empty directory", .0.display())]
    NotEmpty(PathBuf),
    /// A file system is mounted on it already.
    #[error("{} is mounted already; unmount it with `andrew umount`, or give another directory", .0.display())]
    Mounted(PathBuf),
    /// Admitting other users needs the administrator's consent.
    #[error(
        "other users may only be let in when /etc/fuse.conf says user_allow_other; ask the administrator, or leave --allow-other out"
    )]
    AllowOther,
    /// Another error of the system.
    #[error("cannot mount {}: {source}", path.display())]
    System {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl MountError {
    /// Determines the cause of an error of the mount call.
    pub(crate) fn explain(path: &Path, source: io::Error) -> Self {
        let text = source.to_string();
        if !Path::new("/dev/fuse").exists() {
            return Self::NoDevice;
        }
        if text.contains("user_allow_other") {
            return Self::AllowOther;
        }
        if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
            return Self::DeviceDenied;
        }
        if source.kind() == io::ErrorKind::NotFound && !rustix::process::geteuid().is_root() {
            return Self::NoHelper;
        }
        Self::System { path: path.to_owned(), source }
    }
}

/// Checks whether a directory can be mounted on: it exists, is an empty directory, and nothing is mounted on it.
///
/// # Errors
/// The condition that is not met.
pub(crate) fn check_mount_point(path: &Path) -> Result<(), MountError> {
    let status = match std::fs::metadata(path) {
        Ok(status) => status,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(MountError::Missing(path.to_owned())),
        // A dead mount: its program ended without unmounting.
        Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => {
            return Err(MountError::Mounted(path.to_owned()));
        }
        Err(source) => return Err(MountError::System { path: path.to_owned(), source }),
    };
    if !status.is_dir() {
        return Err(MountError::NotDirectory(path.to_owned()));
    }
    let entries =
        std::fs::read_dir(path).map_err(|source| MountError::System { path: path.to_owned(), source });
    if entries?.next().is_some() {
        return Err(MountError::NotEmpty(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_that_cannot_be() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| check_mount_point(path).unwrap_err().to_string();
        let missing = dir.path().join("no");
        assert_eq!(
            said(&missing),
            format!("{} does not exist; make it, or give another directory", missing.display())
        );
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(said(&file), format!("{} is not a directory; give a directory", file.display()));
        assert_eq!(
            said(dir.path()),
            format!("{} is not empty; give an empty directory", dir.path().display())
        );
        std::fs::remove_file(&file).unwrap();
        check_mount_point(dir.path()).unwrap();
    }
}
