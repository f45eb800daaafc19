//! What a mount does and has done: the reply of [`crate::Venus::activity`].
//!
//! Times are in microseconds of the machine's clock, sizes in bytes. Counts are those since the start of the mount.

use serde::{Deserialize, Serialize};

/// What a mount does now, and has done since its start.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Activity {
    /// When this was told, for the difference to another one of the same mount.
    pub at_micros: u64,
    /// The caches.
    pub cache: CacheActivity,
    /// The counters.
    pub counts: ActivityCounts,
    /// Leases of directories.
    #[serde(default)]
    pub leases: LeaseActivity,
    /// The known file servers. At most 64.
    pub servers: Vec<ServerActivity>,
    /// Calls in progress, the oldest first. At most 32.
    pub in_progress: Vec<OngoingCall>,
    /// Of the calls that ended within the last five minutes those that took longest, longest first. At most 16.
    pub slowest: Vec<SlowCall>,
    /// What `@sys` in a name stands for, the first choice first.
    pub sysnames: Vec<String>,
}

/// State of the caches.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CacheActivity {
    /// Bytes in the cache of file data.
    pub used_bytes: u64,
    /// Its limit.
    pub limit_bytes: u64,
    /// Objects in the status cache.
    pub statuses: u64,
    /// Its limit.
    pub statuses_limit: u64,
    /// Bytes in memory of files that bypass the cache.
    pub bypass_bytes: u64,
    /// Files whose data is to be stored again, because a store failed.
    pub store_retries: u64,
}

/// Counts since the start of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ActivityCounts {
    /// Calls to servers of all kinds. Each attempt counts.
    pub calls: u64,
    /// Uses of a cached and promised status.
    pub status_hits: u64,
    /// Fetches of a status.
    pub status_misses: u64,
    /// Reads of cached data.
    pub data_hits: u64,
    /// Fetches of data for a read.
    pub data_misses: u64,
    /// Bytes of data fetched.
    pub fetched_bytes: u64,
    /// Of these, bytes that did not go through the disk cache.
    pub bypassed_bytes: u64,
    /// Of the bytes fetched, those that came by the data path.
    pub fetched_by_data_path_bytes: u64,
    /// Of the bytes fetched, those that were read at drives past the file server.
    pub fetched_at_drives_bytes: u64,
    /// Reads of parts that a drive was to give and did not, and stores that one was to take. Another copy or the file server gave or
    /// took the bytes.
    pub drive_fallbacks: u64,
    /// Bytes of data stored.
    pub stored_bytes: u64,
    /// Of these, those that went by the data path.
    pub stored_by_data_path_bytes: u64,
    /// Of the bytes stored, those that were left at drives past the file server.
    pub stored_at_drives_bytes: u64,
    /// Promises broken by servers.
    pub promises_broken: u64,
}

/// Leases of directories (docs/semantics.md "Mounts with leases"). All are zero on a mount that takes none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LeaseActivity {
    /// Leases that are held now, those that are being given back included. At most 32.
    pub held: u64,
    /// Changes that were decided here and that the server does not have yet.
    pub waiting_changes: u64,
    /// Leases taken since the start.
    pub taken: u64,
    /// Of these, leases that a server has recalled.
    pub recalled: u64,
    /// Of these, leases that were lost before all that was decided under them was sent, or of which a list was refused.
    pub lost: u64,
    /// Changes decided under leases since the start.
    pub decided_changes: u64,
}

/// A file server, and the calls to it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ServerActivity {
    /// Its cell.
    #[serde(default)]
    pub cell: String,
    /// Its addresses with ports, in the order in which they are tried.
    pub addresses: Vec<String>,
    /// Rank given to each of the addresses, in the same order; `None`: none was given, and it counts as 20 000.
    #[serde(default)]
    pub ranks: Vec<Option<u16>>,
    /// For how long it has not replied, in seconds; `None`: it is reachable as far as is known.
    pub unreachable_seconds: Option<u64>,
    /// Since its last reply, in seconds; `None`: it has never replied to this mount.
    pub last_reply_seconds_ago: Option<u64>,
    /// Round trip to its nearest address.
    pub round_trip_micros: Option<u64>,
    /// Use of its data path, as in [`crate::ExplainedServer::data_path`].
    pub data_path: String,
    /// Calls that ended.
    pub calls: u64,
    /// Of these, calls that got an error or no reply. A file that does not exist and a right that is missing count, too.
    pub failed_calls: u64,
    /// Time of all calls that ended, together.
    pub calls_micros: u64,
}

/// A call in progress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OngoingCall {
    /// Name of the call.
    pub operation: String,
    /// The address to which it was sent.
    pub server: String,
    /// How long it has taken so far.
    pub micros: u64,
}

/// A call that took long.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlowCall {
    /// Name of the call.
    pub operation: String,
    /// The address to which it was sent.
    pub server: String,
    /// How long it took.
    pub micros: u64,
    /// Whether it got an error, or no reply.
    pub has_failed: bool,
    /// Seconds since it ended.
    pub ended_seconds_ago: u64,
}
