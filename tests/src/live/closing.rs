//! close(2) with its error, which the standard library discards.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// Closes a file.
///
/// # Errors
/// Those of close(2), which reports a file that could not be stored.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was this file's own and has no other user; it is not used again.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Replaces the contents of a file, or creates it, and closes it. Without an error the contents are acknowledged.
///
/// # Errors
/// Those of any step.
pub fn write_and_close(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    let written = file.write_all(contents);
    written.and(close(file))
}
