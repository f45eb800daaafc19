//! `close(2)` with its result.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

/// Closes a descriptor that the caller owns and gives up.
///
/// # Errors
/// The system's error, for a file system that stores on close: no space, quota exceeded.
pub(crate) fn close(fd: RawFd) -> io::Result<()> {
    // SAFETY: the caller took the descriptor out of its owner (`into_raw_fd`), so no other code closes or
    // uses it after this call.
    if unsafe { libc::close(fd) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
