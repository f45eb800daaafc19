//! Status of the volume that holds a path, from the attribute `afs.volstatus`.

use super::attribute;
use crate::error::{CommandError, CommandResult};
use crate::units;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A volume's status. Sizes are in units of 1024 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VolumeStatus {
    #[serde(rename = "id")]
    pub(super) volume_id: u32,
    pub(super) name: String,
    /// 0: no limit.
    #[serde(rename(serialize = "quota_bytes"), serialize_with = "units::limit")]
    pub(super) quota_kib: u64,
    #[serde(rename(serialize = "used_bytes"), serialize_with = "units::bytes")]
    pub(super) used_kib: u64,
    #[serde(rename(serialize = "partition_free_bytes"), serialize_with = "units::bytes")]
    pub(super) partition_free_kib: u64,
    #[serde(
        rename(serialize = "partition_total_bytes", deserialize = "partition_kib"),
        serialize_with = "units::bytes"
    )]
    pub(super) partition_total_kib: u64,
    #[serde(default)]
    pub(super) offline_message: String,
    #[serde(default)]
    pub(super) motd: String,
}

impl VolumeStatus {
    /// The status of the volume that holds `path`.
    pub(super) fn of(path: &Path) -> CommandResult<Self> {
        let text = attribute::get(path, "afs.volstatus")?;
        serde_json::from_slice(&text).map_err(|e| {
            CommandError::failed(format!("fs: the mount sent an invalid reply for '{}': {e}", path.display()))
        })
    }

    /// Percentage of the quota that is used; `None` without a quota.
    pub(super) fn percent_used(&self) -> Option<u64> {
        percent(self.used_kib, self.quota_kib)
    }

    /// Percentage of the partition that is used.
    pub(super) fn partition_percent_used(&self) -> Option<u64> {
        let used = self.partition_total_kib.saturating_sub(self.partition_free_kib);
        percent(used, self.partition_total_kib)
    }
}

fn percent(part: u64, whole: u64) -> Option<u64> {
    let rounded = u128::from(part) * 100 + u128::from(whole) / 2;
    rounded.checked_div(u128::from(whole)).map(|p| u64::try_from(p).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(super) fn example() -> VolumeStatus {
    VolumeStatus {
        volume_id: 536_870_915,
        name: "root.cell".into(),
        quota_kib: 5000,
        used_kib: 1234,
        partition_free_kib: 900_000,
        partition_total_kib: 1_000_000,
        offline_message: String::new(),
        motd: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages() {
        let status = example();
        assert_eq!((status.percent_used(), status.partition_percent_used()), (Some(25), Some(10)));
        assert_eq!(VolumeStatus { quota_kib: 0, ..status }.percent_used(), None);
    }
}
