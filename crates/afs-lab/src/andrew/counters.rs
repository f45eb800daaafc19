//! Counters of the client and server under test, read before and after a run.

use serde::{Deserialize, Serialize};

/// Running totals of the file system under test; every field only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Calls of the client to servers.
    pub calls: u64,
    /// Datagrams the client sent.
    pub packets_sent: u64,
    /// Datagrams the client received.
    pub packets_received: u64,
    /// Processor time used by the server's process, user and system, in microseconds.
    pub server_cpu_us: u64,
}

impl Counters {
    /// The increase since `earlier`. A total that went backwards (the server was restarted) counts as zero.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            packets_sent: self.packets_sent.saturating_sub(earlier.packets_sent),
            packets_received: self.packets_received.saturating_sub(earlier.packets_received),
            server_cpu_us: self.server_cpu_us.saturating_sub(earlier.server_cpu_us),
        }
    }
}

/// Source of counters. Read twice a run, outside the timed part.
pub trait Probe: Sync {
    /// The present totals, or `None` if they are not available.
    fn read(&self) -> Option<Counters>;
}
