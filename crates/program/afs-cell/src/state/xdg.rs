//! Base directories of the XDG specification.

use std::path::PathBuf;

/// A base directory: that in the variable if it is an absolute path, otherwise `default` in the home directory.
pub(super) fn xdg(variable: &str, default: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    set.or_else(|| home().map(|h| h.join(default)))
}

/// The home directory, from the environment.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|p| p.is_absolute())
}

/// Default cache of a cell served by other machines: `$XDG_CACHE_HOME/andrew/CELL`, by default `~/.cache/andrew/CELL`.
#[must_use]
pub fn default_cache(cell: &str) -> Option<PathBuf> {
    xdg("XDG_CACHE_HOME", ".cache").map(|base| base.join("andrew").join(cell))
}

/// A file in the user's directory of configuration: `$XDG_CONFIG_HOME/andrew/NAME`, by default `~/.config/andrew/NAME`.
#[must_use]
pub fn config_file(name: &str) -> Option<PathBuf> {
    xdg("XDG_CONFIG_HOME", ".config").map(|base| base.join("andrew").join(name))
}
