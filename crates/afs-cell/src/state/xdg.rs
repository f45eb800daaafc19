//! Base directories of the XDG specification.

use std::path::PathBuf;

/// A base directory of the XDG specification: the variable when it is an absolute path, else
/// `default` in the home directory.
pub(super) fn xdg(variable: &str, default: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    set.or_else(|| home().map(|h| h.join(default)))
}

/// The home directory, from the environment.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|p| p.is_absolute())
}

/// Where caches of other people's cells go: `$XDG_CACHE_HOME/andrew/CELL`, which is
/// `~/.cache/andrew/CELL` unless set otherwise.
#[must_use]
pub fn default_cache(cell: &str) -> Option<PathBuf> {
    xdg("XDG_CACHE_HOME", ".cache").map(|base| base.join("andrew").join(cell))
}
