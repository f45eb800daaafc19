//! Settings of the drives of a host, in its configuration file.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[drives]` of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrivesTable {
    /// Days after which a drive on another host is given another key; 0: at the owner's request alone.
    pub rekey_days: u32,
}

impl Default for DrivesTable {
    fn default() -> Self {
        Self { rekey_days: 30 }
    }
}

impl DrivesTable {
    /// How old a key may be; `None` if that does not matter.
    pub(crate) fn key_age(&self) -> Option<Duration> {
        (self.rekey_days != 0).then(|| Duration::from_secs(u64::from(self.rekey_days) * 86_400))
    }
}
