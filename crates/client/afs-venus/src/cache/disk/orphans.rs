//! Sweep of the data files that no index names, while the cache is in use; numbers of files that make it possible.
//!
//! The number of a file begins with the number of the run that created it: `run << 40 | count`. No run has the number of
//! another one, so that a file of an earlier run which the index did not name when this run began has no user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::local::{remove_if_there, write_synced};
use crate::cache::kept::KeptFiles;

/// Bits of a file's number below those of its run.
const COUNT_BITS: u32 = 40;
/// Numbers of runs are smaller.
const RUNS_MAX: u64 = 1 << (u64::BITS - COUNT_BITS);

/// The first number of a new run: greater than those of all files of earlier ones, kept or not. `named` are those that
/// something names.
pub(super) fn begin_run(dir: &Path, named: impl Iterator<Item = u64>) -> io::Result<u64> {
    let path = dir.join("run");
    let noted = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    // A number that no run can have had was damaged.
    let noted = noted.filter(|run| *run < RUNS_MAX - 1).unwrap_or(0);
    let run = named.max().map_or(0, |number| number >> COUNT_BITS).max(noted) + 1;
    if run >= RUNS_MAX {
        return Err(io::Error::other("the numbers of cache files are used up; delete the cache's directory"));
    }
    write_synced(&path, run.to_string().as_bytes())?;
    Ok(run << COUNT_BITS)
}

/// The sweep of a cache that was opened without one. It may run beside any use of the cache.
#[must_use = "files that nothing names take room until they are swept"]
pub struct Sweeper {
    dir: PathBuf,
    /// Numbers of the files that the index named when the cache was opened.
    known: Vec<u64>,
    /// First number of this run.
    first: u64,
}

impl Sweeper {
    pub(super) fn new(dir: &Path, kept: &KeptFiles, first: u64) -> Self {
        Sweeper { dir: dir.to_owned(), known: kept.file_numbers().collect(), first }
    }

    /// Removes data files of earlier runs that the index did not name. Returns how many it removed.
    ///
    /// # Errors
    /// A directory cannot be read or a file cannot be removed; the rest remains until the next start.
    pub fn sweep(mut self) -> io::Result<u64> {
        self.known.sort_unstable();
        let mut removed = 0;
        for sub in fs::read_dir(self.dir.join("data"))? {
            for file in fs::read_dir(sub?.path())? {
                let file = file?;
                if self.is_orphan(file.file_name().to_str()) {
                    remove_if_there(&file.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Whether a file of that name is of no use. One that is named unlike any data file is.
    fn is_orphan(&self, name: Option<&str>) -> bool {
        match name.and_then(|name| u64::from_str_radix(name, 16).ok()) {
            Some(number) => number < self.first && self.known.binary_search(&number).is_err(),
            None => true,
        }
    }
}
