//! Options of a cell's last start: `options.toml` in the state directory. A later start uses them where it is not given
//! others.

use crate::configuration::kept_cells::KeptCells;
use crate::configuration::kept_data_path::KeptDataPath;
use crate::error::CellResult;
use afs_files::{Syntax, Versioned};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Name of the file.
const FILE: &str = "options.toml";

/// [`KeptOptions::server_wait`] of programs that wait for a server as long as it takes.
pub const HARD_SERVER_WAIT: u32 = u32::MAX;

/// Options that were given; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOptions {
    /// `--listen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Ipv4Addr>,
    /// `--base-port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_port: Option<u16>,
    /// `--mount`, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<PathBuf>,
    /// `--no-mount`; false after `--mount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_mount: Option<bool>,
    /// `--allow-other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_other: Option<bool>,
    /// `--cache-size`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_size: Option<u64>,
    /// `--bypass-size`, in bytes; 0 is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_size: Option<u64>,
    /// `--bypass-streams`, in percent of the cache; 0 is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_streams: Option<u8>,
    /// `--lease`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<bool>,
    /// `--server-wait`, in seconds; [`HARD_SERVER_WAIT`] is `hard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_wait: Option<u32>,
    /// `--snapshots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<String>,
    /// `--serve-data-path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve_data_path: Option<bool>,
    /// `--data-path` and what belongs to it. This and the next are the last fields: they are tables.
    #[serde(default, skip_serializing_if = "KeptDataPath::is_default")]
    pub data_path: KeptDataPath,
    /// `--dynroot`, and the other options of cells.
    #[serde(default, skip_serializing_if = "KeptCells::is_default")]
    pub cells: KeptCells,
}

impl Versioned for KeptOptions {
    const SYNTAX: Syntax = Syntax::Toml;
    const REMEDY: &'static str = "give the options again, after its removal; if you have changed it by hand, remove its first line alone";
}

impl KeptOptions {
    /// Reads the options that a state directory keeps; the defaults in a new one.
    ///
    /// # Errors
    /// The file cannot be read or is damaged; the message names it.
    pub fn read(state: &Path) -> CellResult<Self> {
        Ok(Self::read_file(&state.join(FILE))?.unwrap_or_default())
    }

    /// These options, completed by those of `before`.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        let no_mount = self.no_mount.or(self.mount.is_some().then_some(false));
        Self {
            listen: self.listen.or(before.listen),
            base_port: self.base_port.or(before.base_port),
            mount: self.mount.or(before.mount),
            no_mount: no_mount.or(before.no_mount),
            allow_other: self.allow_other.or(before.allow_other),
            cache_size: self.cache_size.or(before.cache_size),
            bypass_size: self.bypass_size.or(before.bypass_size),
            bypass_streams: self.bypass_streams.or(before.bypass_streams),
            lease: self.lease.or(before.lease),
            server_wait: self.server_wait.or(before.server_wait),
            snapshots: self.snapshots.or(before.snapshots),
            serve_data_path: self.serve_data_path.or(before.serve_data_path),
            data_path: self.data_path.or(before.data_path),
            cells: self.cells.or(before.cells),
        }
    }

    /// Writes the options durably, unless the file has them already.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn write(&self, state: &Path) -> CellResult {
        if Self::read(state).is_ok_and(|kept| kept == *self) {
            return Ok(());
        }
        Ok(self.write_file(&state.join(FILE))?)
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(text: &str) -> bool {
    let decode = |text: &str| KeptOptions::decode(Path::new(FILE), text.as_bytes()).ok();
    let Some(options) = decode(text) else { return false };
    let again = options.encode().ok().and_then(|text| decode(&text));
    assert_eq!(again, Some(options), "what was read can be written");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_not_given_is_as_before() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(KeptOptions::read(dir.path()).unwrap(), KeptOptions::default());
        let first = KeptOptions { base_port: Some(7200), no_mount: Some(true), ..KeptOptions::default() };
        first.write(dir.path()).unwrap();
        let given = KeptOptions { mount: Some("/a".into()), ..KeptOptions::default() };
        let both = given.or(KeptOptions::read(dir.path()).unwrap());
        assert_eq!((both.base_port, both.no_mount), (Some(7200), Some(false)));
        both.write(dir.path()).unwrap();
        assert_eq!(KeptOptions::read(dir.path()).unwrap(), both);
    }

    #[test]
    fn the_options_of_the_mount_stay_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let first = KeptOptions {
            bypass_size: Some(1 << 30),
            lease: Some(true),
            server_wait: Some(HARD_SERVER_WAIT),
            ..KeptOptions::default()
        };
        first.write(dir.path()).unwrap();
        let given = KeptOptions { bypass_streams: Some(50), ..KeptOptions::default() };
        let both = given.or(KeptOptions::read(dir.path()).unwrap());
        assert_eq!(both.server_wait, Some(HARD_SERVER_WAIT));
        assert_eq!(
            (both.bypass_size, both.bypass_streams, both.lease),
            (Some(1 << 30), Some(50), Some(true))
        );
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "base_port = 'x'").unwrap();
        let error = KeptOptions::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("options.toml is damaged"), "{error}");
    }
}
