//! Caches between a reader and the bytes of a file: how one is emptied, and what it says of the bytes that passed it.

use crate::error::{Context, LabError};
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::path::Path;

/// Way by which a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Through the file system's cache, as usual.
    Cached,
    /// Past the disk cache.
    Bypassed,
}

/// How the caches of a file were emptied before it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// The mount dropped what it had of the file (`andrew fs flush`).
    Flushed,
    /// The file was written by another client, and never read by this one.
    OtherClient,
    /// The kernel dropped the file's pages (posix_fadvise); a cache that the file system has itself is as it was.
    PagesDropped,
}

/// Bytes of file data that a mount has moved, so far or within a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Fetched from servers.
    pub fetched_bytes: u64,
    /// Of these, past the disk cache.
    pub bypassed_bytes: u64,
    /// Of these, by the data path.
    pub fetched_by_data_path_bytes: u64,
    /// Of these, from drives, past the file server.
    #[serde(default)]
    pub fetched_at_drives_bytes: u64,
    /// Stored at servers.
    pub stored_bytes: u64,
    /// Of these, by the data path.
    pub stored_by_data_path_bytes: u64,
    /// Of these, at drives, past the file server.
    #[serde(default)]
    pub stored_at_drives_bytes: u64,
}

/// The caches that a directory is read through.
pub trait Cache: Sync {
    /// Ways by which files can be read.
    fn ways(&self) -> &[Way];

    /// Empties the caches of a file, so that the next read, by `way`, finds nothing there. Returns how.
    ///
    /// # Errors
    /// The system refuses it.
    fn make_cold(&self, file: &Path, way: Way) -> Result<Cold, LabError>;

    /// Bytes moved so far; `None` if they are not counted.
    fn moved(&self) -> Option<Moved>;
}

/// The kernel's page cache, or the caches of another client, which has not seen a file before. Only the pages of the file
/// are dropped: the kernel's other caches belong to all programs of the machine.
#[derive(Clone, Copy, Debug)]
pub struct KernelCache {
    /// Whether files are written by another client than this one.
    pub is_other_client: bool,
}

impl Cache for KernelCache {
    fn ways(&self) -> &[Way] {
        &[Way::Cached]
    }

    fn make_cold(&self, file: &Path, _: Way) -> Result<Cold, LabError> {
        if self.is_other_client {
            return Ok(Cold::OtherClient);
        }
        let open = File::open(file).during("open", file)?;
        // Dirty pages are not dropped. A file system without fsync has none, or keeps them.
        let _ = open.sync_all();
        fadvise(&open, 0, None, Advice::DontNeed)
            .map_err(std::io::Error::from)
            .during("drop the pages of", file)?;
        Ok(Cold::PagesDropped)
    }

    fn moved(&self) -> Option<Moved> {
        None
    }
}

impl Moved {
    /// What was moved since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            fetched_bytes: self.fetched_bytes.saturating_sub(before.fetched_bytes),
            bypassed_bytes: self.bypassed_bytes.saturating_sub(before.bypassed_bytes),
            fetched_by_data_path_bytes: self
                .fetched_by_data_path_bytes
                .saturating_sub(before.fetched_by_data_path_bytes),
            fetched_at_drives_bytes: self
                .fetched_at_drives_bytes
                .saturating_sub(before.fetched_at_drives_bytes),
            stored_bytes: self.stored_bytes.saturating_sub(before.stored_bytes),
            stored_by_data_path_bytes: self
                .stored_by_data_path_bytes
                .saturating_sub(before.stored_by_data_path_bytes),
            stored_at_drives_bytes: self.stored_at_drives_bytes.saturating_sub(before.stored_at_drives_bytes),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cached => "cached",
            Self::Bypassed => "past the cache",
        })
    }
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flushed => "the mount dropped the file from its cache",
            Self::OtherClient => "another client wrote the file",
            Self::PagesDropped => {
                "the kernel dropped the file's pages (a cache of the file system itself is as it was)"
            }
        })
    }
}
