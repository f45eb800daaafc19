//! Paths of the token sockets of mounts.

use crate::state::StateDir;
use afs_own as own;
use rustix::process::{geteuid, getuid};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Root's directory for files that exist until the machine is restarted.
const OF_ROOT: &str = "/run/andrew";
/// In such a directory, the sockets of mounts; of root's, to which all users may connect.
const MOUNTS: &str = "mounts";
/// In such a directory, the tokens that mounts use, by mount.
const TOKENS: &str = "tokens";

/// Environment variable with a directory. It replaces root's directory for everybody; if it belongs to the user, or does not exist yet, it
/// replaces the user's own as well. Commands with the same value find the mounts that were started with it, and no others of root's.
const VARIABLE: &str = "ANDREW_RUN";

/// A name for the token socket of a mount of this process, in a directory that is created for it. Root's directory is
/// for all users of the machine, another user's for that user alone.
///
/// # Errors
/// The directory cannot be created, or others could put sockets of their own into it.
pub fn socket_path() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let directory = make(MOUNTS, geteuid().is_root())?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(directory.join(format!("{}-{number}.sock", std::process::id())))
}

/// The directory of the files of the tokens that mounts of this process's user use, created for this user alone. It is
/// where sockets are, in memory on usual systems: tokens that others have handed in are not written to a disk.
///
/// # Errors
/// As [`socket_path`].
pub(super) fn tokens_directory() -> io::Result<PathBuf> {
    make(TOKENS, false)
}

/// Creates a directory for the mounts of this process's user, which others may read if it `is_public`.
fn make(name: &str, is_public: bool) -> io::Result<PathBuf> {
    let is_root = geteuid().is_root();
    let own = if is_root { Some(of_root()) } else { own() };
    let run = own.ok_or(io::ErrorKind::NotFound)?;
    let directory = run.join(name);
    match is_root {
        true => own::public_directory(&run)?,
        false => own::given_directory(&run)?,
    }
    match is_public {
        true => own::public_directory(&directory)?,
        false => own::directory(&directory)?,
    }
    Ok(directory)
}

/// The sockets of all mounts that this user trusts with tokens: root's and the user's own.
pub(super) fn sockets() -> Vec<PathBuf> {
    let mut directories = vec![of_root()];
    directories.extend(own().filter(|own| *own != of_root()));
    let mounts = directories.into_iter().map(|run| run.join(MOUNTS));
    let safe = mounts.filter(|directory| is_safe(directory));
    let mut found: Vec<PathBuf> = safe.flat_map(|directory| sockets_in(&directory)).collect();
    found.sort();
    found
}

fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "sock")).collect()
}

/// Root's directory, or the one in its place.
fn of_root() -> PathBuf {
    only().unwrap_or_else(|| PathBuf::from(OF_ROOT))
}

/// The user's own directory.
fn own() -> Option<PathBuf> {
    only().filter(|only| is_own(only)).or_else(runtime)
}

fn only() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a directory is this user's, or will be.
fn is_own(directory: &Path) -> bool {
    fs::symlink_metadata(directory).map_or(true, |meta| meta.uid() == geteuid().as_raw())
}

/// The user's directory for files that exist until the machine is restarted.
#[must_use]
pub fn runtime() -> Option<PathBuf> {
    let set = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let usual =
        || Some(PathBuf::from(format!("/run/user/{}", getuid().as_raw()))).filter(|path| path.is_dir());
    let andrew = set.or_else(usual).map(|runtime| runtime.join("andrew"));
    andrew.or_else(|| StateDir::of_user().ok().map(|state| state.path().join("run")))
}

/// Whether only root or this user can have created files in a directory.
fn is_safe(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|meta| {
        let owner = meta.uid();
        meta.is_dir() && (owner == 0 || owner == geteuid().as_raw()) && meta.mode() & 0o022 == 0
    })
}
