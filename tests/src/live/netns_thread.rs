//! Threads of this process in another network namespace.

#![allow(unsafe_code, reason = "the standard library has no setns")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Runs `work` on a thread in the namespace. A socket that it opens stays in the namespace, whichever thread uses it
/// later.
///
/// # Panics
/// If there is no such namespace, or this process may not enter it, or `work` panics.
pub fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    let entered = || {
        enter(name).unwrap_or_else(|error| panic!("the namespace {name}: {error}"));
        work()
    };
    std::thread::scope(|scope| {
        scope.spawn(entered).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread into the namespace; other threads stay.
fn enter(name: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{name}"))?;
    // SAFETY: the descriptor is open until the end of this function; the call touches no memory of this process.
    match unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
