//! What `close` says: the standard library throws it away.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// Closes a file, and answers what the file system says to it.
///
/// # Errors
/// Of `close`, which is where a file that could not be stored is told of.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was this file's own and nobody else has it; it is not used again.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Replaces what is in a file, or makes it, and closes it. What comes back without an error was acknowledged.
///
/// # Errors
/// Of any step.
pub fn write_and_close(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    let written = file.write_all(contents);
    written.and(close(file))
}
