//! Counters of the client and server under test, read before and after a run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Running totals of the file system under test; every field only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Calls of the client to servers.
    pub calls: u64,
    /// The same by operation; empty if the client does not tell them so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls_by_operation: BTreeMap<String, u64>,
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
    pub fn since(self, earlier: &Self) -> Self {
        let before = |operation: &str| earlier.calls_by_operation.get(operation).copied().unwrap_or_default();
        let more = self.calls_by_operation.into_iter().map(|(operation, count)| {
            let count = count.saturating_sub(before(&operation));
            (operation, count)
        });
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            calls_by_operation: more.filter(|(_, count)| *count > 0).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(calls: &[(&str, u64)]) -> Counters {
        let calls_by_operation = calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Counters { calls: calls.iter().map(|one| one.1).sum(), calls_by_operation, ..Counters::default() }
    }

    #[test]
    fn what_was_counted_before_a_run_is_not_of_it() {
        let (before, after) =
            (of(&[("fetch", 5), ("lock", 2)]), of(&[("fetch", 8), ("lock", 2), ("store", 1)]));
        assert_eq!(after.clone().since(&before), of(&[("fetch", 3), ("store", 1)]));
        assert_eq!(before.since(&after), of(&[]), "the mount was started again");
    }
}
