//! Cache directory of a mount: its lock, the client's UUID, its default size.

use super::{ClientError, cache_lock};
use crate::error::CellResult;
use afs_files::write_durably;
use afs_net::System;
use afs_own::{self as own, Opening};
use afs_rpc::EnvExt;
use afs_wire::ids::Uuid;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Largest default size of the cache, in bytes.
const CACHE_BYTES_MAX: u64 = 8 << 30;
/// Longest file with a UUID that is read, in bytes.
const UUID_LEN_MAX: u64 = 128;
/// Smallest size of a cache, in bytes.
pub const CACHE_BYTES_MIN: u64 = 16 << 20;

/// Creates the directory if it is missing, and takes its lock for the mount at `mount`.
///
/// # Errors
/// The directory cannot be used, or another mount holds the lock.
pub(super) fn lock(cache: &Path, mount: &Path) -> CellResult<File> {
    let cannot = |error| ClientError::Cache { path: cache.to_owned(), error };
    own::given_directory(cache).map_err(cannot)?;
    let path = cache.join("lock");
    let lock = Opening::write().or_make().open(&path).map_err(|error| ClientError::Cache { path, error })?;
    cache_lock::take(&lock, mount)
        .map_err(|holder| ClientError::CacheInUse { path: cache.to_owned(), holder })?;
    Ok(lock)
}

/// The UUID of this client for servers, which exists as long as its cache.
pub(super) fn client_uuid(system: &Arc<System>, cache: &Path) -> io::Result<Uuid> {
    let mut text = String::new();
    let kept = Opening::read()
        .open(&cache.join("uuid"))
        .and_then(|file| file.take(UUID_LEN_MAX).read_to_string(&mut text));
    if kept.is_ok()
        && let Ok(uuid) = text.trim().parse()
    {
        return Ok(uuid);
    }
    let uuid = Uuid(system.random_bytes());
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", cache.join("uuid").display()));
    write_durably(cache, "uuid", uuid.to_string().as_bytes()).map_err(named)?;
    Ok(uuid)
}

/// Half of the free space of the disk, within the bounds.
pub(super) fn default_cache_bytes(cache: &Path) -> u64 {
    let free = rustix::fs::statvfs(cache).map_or(CACHE_BYTES_MAX, |s| s.f_bavail.saturating_mul(s.f_frsize));
    (free / 2).clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX)
}

/// Whether a directory is on overlayfs, as in most containers.
pub(super) fn is_stacked(directory: &Path) -> bool {
    // The type of `f_type` differs between architectures.
    rustix::fs::statfs(directory).is_ok_and(|s| s.f_type == 0x794c_7630)
}
