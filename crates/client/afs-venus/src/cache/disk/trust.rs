//! Trust in the files of a cache: until the machine crashes. The file `trust` has the boot under which the cache is in use.

use std::fs;
use std::io;
use std::path::Path;

use afs_own as own;

use super::local::{named, remove_if_there, write_synced};

/// Contents of the file after an orderly stop.
const CLEAN: &str = "clean";

/// Whether the machine has not crashed since the cache was in use.
pub(super) fn is_due(dir: &Path, boot: &str) -> bool {
    let trust = fs::read_to_string(dir.join("trust")).unwrap_or_default();
    trust == CLEAN || (!boot.is_empty() && trust == boot)
}

/// Deletes all that is kept.
pub(super) fn empty(dir: &Path) -> io::Result<()> {
    let data = dir.join("data");
    fs::remove_dir_all(&data).and_then(|()| own::directory(&data)).map_err(named(&data))?;
    remove_if_there(&dir.join("index"))
}

/// Notes under which boot the cache is in use.
pub(super) fn begin(dir: &Path, boot: &str) -> io::Result<()> {
    let path = dir.join("trust");
    write_synced(&path, boot.as_bytes()).map_err(named(&path))
}

/// Notes an orderly stop: all that is kept is on disk.
pub(super) fn stopped(dir: &Path) -> io::Result<()> {
    write_synced(&dir.join("trust"), CLEAN.as_bytes())
}
