//! Paths of the token sockets of mounts.

use crate::state::StateDir;
use rustix::process::{geteuid, getuid};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Directory of the sockets of root's mounts, to which all users may connect.
const OF_ROOT: &str = "/run/andrew/mounts";

/// Environment variable with one directory that replaces root's and the user's own: commands with the same value find
/// mounts that were started with it, and no others.
const VARIABLE: &str = "ANDREW_RUN";

/// A name for the token socket of a mount of this process, in a directory that is created for it. Root's directory is
/// for all users of the machine, another user's for that user alone.
///
/// # Errors
/// The directory cannot be created, or others could put sockets of their own into it.
pub fn socket_path() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (directory, mode) = if let Some(only) = only() {
        (only, 0o700)
    } else if geteuid().is_root() {
        (PathBuf::from(OF_ROOT), 0o755)
    } else {
        (own().ok_or(io::ErrorKind::NotFound)?, 0o700)
    };
    DirBuilder::new().recursive(true).mode(mode).create(&directory)?;
    // The mode above is subject to the umask.
    fs::set_permissions(&directory, Permissions::from_mode(mode))?;
    if !is_safe(&directory) {
        return Err(io::Error::other(format!("{} belongs to another user", directory.display())));
    }
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(directory.join(format!("{}-{number}.sock", std::process::id())))
}

/// The sockets of all mounts that this user trusts with tokens: root's and the user's own.
pub(super) fn sockets() -> Vec<PathBuf> {
    let directories = match only() {
        Some(only) => vec![only],
        None => [Some(PathBuf::from(OF_ROOT)), own()].into_iter().flatten().collect(),
    };
    let safe = directories.into_iter().filter(|directory| is_safe(directory));
    let mut found: Vec<PathBuf> = safe.flat_map(|directory| sockets_in(&directory)).collect();
    found.sort();
    found
}

fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "sock")).collect()
}

fn only() -> Option<PathBuf> {
    let set = std::env::var_os(VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
    set.map(|run| run.join("mounts"))
}

/// `andrew/mounts` in the user's runtime directory, or in the state directory if there is none.
fn own() -> Option<PathBuf> {
    runtime().map(|runtime| runtime.join("mounts"))
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
