//! Cache of a mount of Andrew's, by the properties of its files.

use super::mount_attributes as attributes;
use afs_lab::LabError;
use afs_lab::bulk::{Cache, Cold, Moved, Way};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The cache of the mount that a directory is in.
pub(super) struct MountCache {
    pub(super) directory: PathBuf,
}

/// Of the cached state of a file (`afs.status`).
#[derive(Deserialize)]
struct FileState {
    /// Open handles, also of programs that have closed the file, until the kernel says so.
    opens: u64,
}

/// Of the counters of a mount (`afs.counters`).
#[derive(Deserialize)]
struct Counters {
    bytes_fetched: u64,
    bytes_bypassed: u64,
    bytes_stored: u64,
    data_path: DataPathCounters,
}

/// Those of the data path.
#[derive(Deserialize)]
struct DataPathCounters {
    bytes_fetched: u64,
    bytes_stored: u64,
    /// An older mount knows none at drives.
    #[serde(default)]
    fetched_at_drives: u64,
    #[serde(default)]
    stored_at_drives: u64,
}

impl Counters {
    fn moved(self) -> Moved {
        Moved {
            fetched_bytes: self.bytes_fetched,
            bypassed_bytes: self.bytes_bypassed,
            fetched_by_data_path_bytes: self.data_path.bytes_fetched,
            fetched_at_drives_bytes: self.data_path.fetched_at_drives,
            stored_bytes: self.bytes_stored,
            stored_by_data_path_bytes: self.data_path.bytes_stored,
            stored_at_drives_bytes: self.data_path.stored_at_drives,
        }
    }
}

/// How often the mount is asked whether a file is still open.
const ASKED_MAX: u32 = 1000;

impl Cache for MountCache {
    fn ways(&self) -> &[Way] {
        &[Way::Cached, Way::Bypassed]
    }

    /// The request comes after the flush, which forgets it with everything else.
    fn make_cold(&self, file: &Path, way: Way) -> Result<Cold, LabError> {
        let is_open = || attributes::json(file, "afs.status").is_some_and(|state: FileState| state.opens > 0);
        // What is open is not dropped. A file that stays open is found by what is fetched of it.
        let _ = (0..ASKED_MAX).find(|_| !is_open());
        attributes::set(file, "afs.flush", b"file", "flush")?;
        // "off" also keeps the mount from recognising a stream.
        let request: &[u8] = if way == Way::Bypassed { b"on" } else { b"off" };
        attributes::set(file, "afs.bypass", request, "change the caching of")?;
        Ok(Cold::Flushed)
    }

    fn moved(&self) -> Option<Moved> {
        attributes::json(&self.directory, "afs.counters").map(Counters::moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_by_which_way_is_read_from_the_counters_of_a_mount() {
        let text = r#"{"calls":{"StoreData64":0},"bytes_fetched":5,"bytes_bypassed":4,"files_bypassed":3,"bytes_stored":7,
            "data_path":{"bytes_fetched":2,"bytes_stored":6,"connections":1,"fallbacks":{},"fetched_at_drives":1,"stored_at_drives":3}}"#;
        let moved = serde_json::from_str::<Counters>(text).unwrap().moved();
        let expected = Moved {
            fetched_bytes: 5,
            bypassed_bytes: 4,
            fetched_by_data_path_bytes: 2,
            fetched_at_drives_bytes: 1,
            stored_bytes: 7,
            stored_by_data_path_bytes: 6,
            stored_at_drives_bytes: 3,
        };
        assert_eq!(moved, expected);
    }
}
