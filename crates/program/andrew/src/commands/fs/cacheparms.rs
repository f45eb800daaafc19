//! `andrew fs getcacheparms`: size and use of the disk caches.

use super::of_mounts::{OfMounts, of_mounts};
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;

/// Options of `andrew fs getcacheparms`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The size of a cache is set when the cell is mounted (--cache-size). `andrew top` shows how it is used.

Examples:
  andrew fs getcacheparms")]
pub struct Args {}

#[derive(Serialize)]
struct CacheUse {
    used_bytes: u64,
    size_bytes: u64,
}

impl Args {
    /// Prints the size and use of the cache of each mount.
    ///
    /// # Errors
    /// No mount of this user's or of root's runs.
    pub fn run(self, json: bool) -> CommandResult {
        let caches: OfMounts<CacheUse> = of_mounts(|told| CacheUse {
            used_bytes: told.cache.used_bytes,
            size_bytes: told.cache.limit_bytes,
        })?;
        output::show(json, &caches);
        Ok(())
    }
}

impl fmt::Display for CacheUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, size) = (self.used_bytes.div_ceil(1024), self.size_bytes / 1024);
        writeln!(f, "AFS using {used} of the cache's available {size} 1K byte blocks.")
    }
}
