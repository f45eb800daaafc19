//! Calls for capabilities and layouts of a client that goes on using its files, as its mount counted them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of some minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmClient {
    /// Minutes that were counted.
    pub minutes: u32,
    /// Files that it opened in each, none of whose bytes were cached.
    pub opens_per_minute: u32,
    /// Directories in which they are.
    pub directories: u32,
    /// Calls in a minute, by name.
    pub calls_per_minute: BTreeMap<String, f64>,
}

impl WarmClient {
    pub(super) fn is_valid(&self) -> bool {
        self.opens_per_minute > 0 && self.calls_per_minute.values().all(|count| *count >= 0.0)
    }
}
