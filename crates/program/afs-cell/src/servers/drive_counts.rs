//! Counters of a file server's drive, as the control socket and `andrew status` show them.

use afs_server::FileServer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the drive of a file server is doing, and has done since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriveCounts {
    /// Connections now.
    pub connections: u64,
    /// Requests in progress now.
    pub requests: u64,
    /// Connections so far that got as far as the drive's first frame.
    pub connections_accepted: u64,
    /// Reads that were opened.
    pub reads: u64,
    /// Stores that became tickets.
    pub stores: u64,
    /// Streams of volumes that were sent or taken to their end.
    pub streams: u64,
    /// Bytes of files and streams sent.
    pub sent_bytes: u64,
    /// Bytes of files and streams received.
    pub received_bytes: u64,
    /// Requests that failed for another reason than a refusal.
    pub failed: u64,
    /// Connections and requests that exceeded a bound.
    pub turned_away: u64,
    /// Connections that ended because the client violated the protocol.
    pub violations: u64,
    /// Refusals of capabilities by reason, every reason.
    pub refused: BTreeMap<String, u64>,
    /// How often capabilities for a group of files were revoked.
    pub revocations: u64,
}

impl DriveCounts {
    /// The counters of a file server.
    pub(super) fn of(server: &FileServer) -> Self {
        let counts = server.data_path_counts();
        let refused = counts.refused_by_name().map(|(name, count)| (name.to_owned(), count));
        Self {
            connections: counts.connected as u64,
            requests: counts.in_progress as u64,
            connections_accepted: counts.connections,
            reads: counts.reads,
            stores: counts.stores,
            streams: counts.streams,
            sent_bytes: counts.bytes_sent,
            received_bytes: counts.bytes_received,
            failed: counts.failed,
            turned_away: counts.turned_away,
            violations: counts.violations,
            refused: refused.collect(),
            revocations: counts.revocations,
        }
    }
}
