//! Unmounting a directory.

use rustix::mount::UnmountFlags;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Unmounts `directory`. With `lazy` a mount in use disappears from the name space now and ends when its last file is
/// closed.
///
/// Root unmounts directly; other users through `fusermount3`, which permits it to the user who mounted.
///
/// # Errors
/// EBUSY while the mount is in use (without `lazy`), EINVAL if nothing is mounted there, or the error of the helper.
pub fn unmount(directory: &Path, lazy: bool) -> io::Result<()> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(directory, flags) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::PERM) => through_helper(directory, lazy),
        Err(error) => Err(error.into()),
    }
}

fn through_helper(directory: &Path, lazy: bool) -> io::Result<()> {
    let mut helper = Command::new("fusermount3");
    helper.arg("-u").args(lazy.then_some("-z")).arg("--").arg(directory);
    let output = helper.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("busy") {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    Err(io::Error::other(said.trim().to_owned()))
}
