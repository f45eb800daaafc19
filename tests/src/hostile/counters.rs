//! Counters of a client's calls, from the property `afs.counters` of its mount.

use std::path::Path;

use serde_json::Value;

use crate::live::properties::property;

/// All calls to servers since the client was started.
#[must_use]
pub fn calls(mount: &Path) -> u64 {
    counted(mount).values().sum()
}

/// Another counter, such as `bytes_stored`.
///
/// # Panics
/// If there is no such counter.
#[must_use]
pub fn number(mount: &Path, name: &str) -> u64 {
    counters(mount)[name].as_u64().unwrap_or_else(|| panic!("afs.counters have no {name}"))
}

fn counters(mount: &Path) -> Value {
    serde_json::from_str(&property(mount, "afs.counters"))
        .unwrap_or_else(|error| panic!("afs.counters of {}: {error}", mount.display()))
}

/// Calls by name.
#[must_use]
pub fn counted(mount: &Path) -> std::collections::BTreeMap<String, u64> {
    let counters = counters(mount);
    let calls = counters["calls"].as_object().cloned().unwrap_or_default();
    calls.into_iter().map(|(name, count)| (name, count.as_u64().unwrap_or(0))).collect()
}
