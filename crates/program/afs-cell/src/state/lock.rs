//! Lock of a state directory, and the record of the process that holds it.

use super::StateError;
use crate::error::CellResult;
use crate::servers::DataPathState;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// Record of the process that uses a state directory: kept in the lock file while the lock is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellProcess {
    /// Process number.
    pub pid: u32,
    /// The cell served.
    pub cell: String,
    /// Address of the servers.
    pub listen: IpAddr,
    /// Port of the file server; the others follow from it.
    pub base_port: u16,
    /// The cell's location servers; empty if the servers of this process are the only ones.
    #[serde(default)]
    pub locations: Vec<Ipv4Addr>,
    /// File with the cell's keys, if it is not in the state directory.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// The mount point, if this process has mounted the cell.
    pub mount: Option<PathBuf>,
    /// Whether the data path is served.
    #[serde(default)]
    pub data_path: DataPathState,
    /// Why the last stop was incomplete, as one line for the user.
    #[serde(default)]
    pub trouble: Option<String>,
}

impl CellProcess {
    /// This process, which serves `cell` at `listen`; nothing else is recorded yet.
    #[must_use]
    pub fn own(cell: &str, listen: Ipv4Addr, base_port: u16) -> Self {
        Self {
            pid: std::process::id(),
            cell: cell.to_owned(),
            listen: listen.into(),
            base_port,
            locations: Vec::new(),
            key_file: None,
            mount: None,
            data_path: DataPathState::Off,
            trouble: None,
        }
    }
}

/// The lock of a state directory, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct StateLock {
    pub(super) file: File,
}

impl StateLock {
    /// Writes the record of the process that holds the lock.
    ///
    /// # Errors
    /// The disk is full.
    pub fn record(&mut self, running: &CellProcess) -> CellResult {
        let text = serde_json::to_vec(running).map_err(|e| StateError::Record(e.into()))?;
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)
        };
        write().map_err(|e| StateError::Record(e).into())
    }
}

/// Longest record read, in bytes: a path of 4096 bytes, escaped, and the rest.
const RECORD_LEN_MAX: u64 = 32 * 1024;

/// The record in a lock file; `None` without a valid one.
pub(super) fn read_record(path: &Path) -> Option<CellProcess> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(RECORD_LEN_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
