//! Counters of what Venus does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Values of all counters since the start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CounterValues {
    /// Calls made, by name. Each attempt counts.
    pub calls: BTreeMap<&'static str, u64>,
    /// Changes sent in lists, by the name of the call that each would have been by itself.
    pub changes_listed: BTreeMap<&'static str, u64>,
    /// Leases of directories that were taken.
    pub leases_taken: u64,
    /// Leases that servers have recalled.
    pub leases_recalled: u64,
    /// Leases that were lost before all that was decided under them was sent, or of which a list was refused.
    pub leases_lost: u64,
    /// Changes that were decided under leases.
    pub changes_decided: u64,
    /// Those of them that could not be made after the loss of the lease. Each is in the log.
    pub changes_given_up: u64,
    /// Calls received from servers, by name.
    pub callbacks: BTreeMap<&'static str, u64>,
    /// Uses of a cached and promised status.
    pub status_hits: u64,
    /// Fetches of a status.
    pub status_misses: u64,
    /// Reads of cached data.
    pub data_hits: u64,
    /// Fetches of data for a read.
    pub data_misses: u64,
    /// Bytes of data fetched.
    pub bytes_fetched: u64,
    /// Of these, bytes that did not go through the disk cache.
    pub bytes_bypassed: u64,
    /// Open files that were read past the disk cache.
    pub files_bypassed: u64,
    /// Bytes of data stored.
    pub bytes_stored: u64,
    /// Promises broken by servers.
    pub promises_broken: u64,
    /// Waits for the kernel to drop what a server broke that the time limit ended ([`crate::Limits::settle_max`]).
    pub kernel_waits_cut: u64,
    /// Volumes of which pinned files are read without a promise at present, because no server replies.
    pub volumes_unpromised: u64,
    /// Calls received from servers without authentication.
    pub callbacks_unproven: u64,
    /// Of the bytes fetched, those that came by the data path.
    pub path_bytes_fetched: u64,
    /// Of the bytes fetched, those that were read at drives past the file server.
    pub drive_bytes_fetched: u64,
    /// Reads of parts that a drive was to give and did not, and stores that a drive was to take, by reason. Another copy or the file
    /// server gave or took the bytes.
    pub drive_fallbacks: BTreeMap<&'static str, u64>,
    /// Of the bytes stored, those that went by the data path.
    pub path_bytes_stored: u64,
    /// Of the bytes stored, those that were left at drives past the file server.
    pub drive_bytes_stored: u64,
    /// Connections of the data path that were opened.
    pub path_connections: u64,
    /// Fetches and stores made by calls although the server has a data path, by reason.
    pub path_fallbacks: BTreeMap<&'static str, u64>,
}

impl CounterValues {
    /// Number of all calls made.
    pub fn calls_total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// The counters as a JSON object.
    pub fn to_json(&self) -> String {
        let table = |calls: &BTreeMap<&str, u64>| {
            let rows: Vec<String> = calls.iter().map(|(name, n)| format!("\"{name}\":{n}")).collect();
            format!("{{{}}}", rows.join(","))
        };
        format!(
            "{{\"calls\":{},\"changes_listed\":{},\
             \"leases\":{{\"taken\":{},\"recalled\":{},\"lost\":{},\"changes_decided\":{},\"changes_given_up\":{}}},\"callbacks\":{},\"status_hits\":{},\"status_misses\":{},\"data_hits\":{},\
             \"data_misses\":{},\"bytes_fetched\":{},\"bytes_bypassed\":{},\"files_bypassed\":{},\"bytes_stored\":{},\
             \"promises_broken\":{},\"kernel_waits_cut\":{},\"volumes_unpromised\":{},\"callbacks_unproven\":{},\
             \"data_path\":{{\"bytes_fetched\":{},\"bytes_stored\":{},\"connections\":{},\"fallbacks\":{},\
             \"fetched_at_drives\":{},\"stored_at_drives\":{},\"drive_fallbacks\":{}}}}}",
            table(&self.calls),
            table(&self.changes_listed),
            self.leases_taken,
            self.leases_recalled,
            self.leases_lost,
            self.changes_decided,
            self.changes_given_up,
            table(&self.callbacks),
            self.status_hits,
            self.status_misses,
            self.data_hits,
            self.data_misses,
            self.bytes_fetched,
            self.bytes_bypassed,
            self.files_bypassed,
            self.bytes_stored,
            self.promises_broken,
            self.kernel_waits_cut,
            self.volumes_unpromised,
            self.callbacks_unproven,
            self.path_bytes_fetched,
            self.path_bytes_stored,
            self.path_connections,
            table(&self.path_fallbacks),
            self.drive_bytes_fetched,
            self.drive_bytes_stored,
            table(&self.drive_fallbacks)
        )
    }
}

/// The counters.
#[derive(Default)]
pub(crate) struct Counters {
    calls: Mutex<BTreeMap<&'static str, u64>>,
    changes_listed: Mutex<BTreeMap<&'static str, u64>>,
    pub leases_taken: AtomicU64,
    pub leases_recalled: AtomicU64,
    pub leases_lost: AtomicU64,
    pub changes_decided: AtomicU64,
    pub changes_given_up: AtomicU64,
    callbacks: Mutex<BTreeMap<&'static str, u64>>,
    pub status_hits: AtomicU64,
    pub status_misses: AtomicU64,
    pub data_hits: AtomicU64,
    pub data_misses: AtomicU64,
    pub bytes_fetched: AtomicU64,
    pub bytes_bypassed: AtomicU64,
    pub files_bypassed: AtomicU64,
    pub bytes_stored: AtomicU64,
    pub promises_broken: AtomicU64,
    pub kernel_waits_cut: AtomicU64,
    pub volumes_unpromised: AtomicU64,
    pub callbacks_unproven: AtomicU64,
    pub path_bytes_fetched: AtomicU64,
    pub drive_bytes_fetched: AtomicU64,
    drive_fallbacks: Mutex<BTreeMap<&'static str, u64>>,
    pub path_bytes_stored: AtomicU64,
    pub drive_bytes_stored: AtomicU64,
    pub path_connections: AtomicU64,
    path_fallbacks: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    pub fn call(&self, name: &'static str) {
        *self.calls.lock().entry(name).or_default() += 1;
    }

    /// A change is sent in a list.
    pub fn listed(&self, name: &'static str) {
        *self.changes_listed.lock().entry(name).or_default() += 1;
    }

    /// A call that was counted was not made: something else was in its place.
    pub fn not_made(&self, name: &'static str) {
        if let Some(count) = self.calls.lock().get_mut(name) {
            *count = count.saturating_sub(1);
        }
    }

    pub fn callback(&self, name: &'static str) {
        *self.callbacks.lock().entry(name).or_default() += 1;
    }

    pub fn path_fallback(&self, reason: &'static str) {
        *self.path_fallbacks.lock().entry(reason).or_default() += 1;
    }

    pub fn drive_fallback(&self, reason: &'static str) {
        *self.drive_fallbacks.lock().entry(reason).or_default() += 1;
    }

    pub fn values(&self) -> CounterValues {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CounterValues {
            calls: self.calls.lock().clone(),
            changes_listed: self.changes_listed.lock().clone(),
            leases_taken: get(&self.leases_taken),
            leases_recalled: get(&self.leases_recalled),
            leases_lost: get(&self.leases_lost),
            changes_decided: get(&self.changes_decided),
            changes_given_up: get(&self.changes_given_up),
            callbacks: self.callbacks.lock().clone(),
            status_hits: get(&self.status_hits),
            status_misses: get(&self.status_misses),
            data_hits: get(&self.data_hits),
            data_misses: get(&self.data_misses),
            bytes_fetched: get(&self.bytes_fetched),
            bytes_bypassed: get(&self.bytes_bypassed),
            files_bypassed: get(&self.files_bypassed),
            bytes_stored: get(&self.bytes_stored),
            promises_broken: get(&self.promises_broken),
            kernel_waits_cut: get(&self.kernel_waits_cut),
            volumes_unpromised: get(&self.volumes_unpromised),
            callbacks_unproven: get(&self.callbacks_unproven),
            path_bytes_fetched: get(&self.path_bytes_fetched),
            drive_bytes_fetched: get(&self.drive_bytes_fetched),
            drive_fallbacks: self.drive_fallbacks.lock().clone(),
            path_bytes_stored: get(&self.path_bytes_stored),
            drive_bytes_stored: get(&self.drive_bytes_stored),
            path_connections: get(&self.path_connections),
            path_fallbacks: self.path_fallbacks.lock().clone(),
        }
    }
}

/// Adds one to a counter.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n` to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
