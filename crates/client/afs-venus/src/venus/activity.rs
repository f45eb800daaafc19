//! Activity of a mount: counters, caches, servers and calls, gathered from the parts without a call.

use afs_rpc::boxed;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;

use crate::api::{
    Activity, ActivityCounts, CacheActivity, LeaseActivity, OngoingCall, ServerActivity, SlowCall,
};
use crate::calls::{EndedCall, TimedCall};
use crate::location::Server;
use crate::venus::Venus;

/// Limit of the servers that are told.
const SERVERS_MAX: usize = 64;
/// Limit of the calls in progress that are told.
const CALLS_MAX: usize = 32;

impl Venus {
    /// What this mount does and has done. Makes no calls, but may block on the disk of the cache. Names no files: any user of
    /// the mount may be told.
    pub fn activity(&self) -> Activity {
        let now = self.now();
        let servers = self.location.servers().all();
        let in_progress = self.calls.times().in_progress(CALLS_MAX);
        Activity {
            at_micros: now.as_nanos() / 1000,
            cache: self.cache_activity(),
            counts: self.activity_counts(),
            leases: self.lease_activity(),
            servers: servers.iter().take(SERVERS_MAX).map(|it| self.server_activity(it, now)).collect(),
            in_progress: in_progress.iter().map(|call| ongoing(call, now)).collect(),
            slowest: self.calls.times().slowest(now).iter().map(|call| slow(call, now)).collect(),
            sysnames: self.names.sysnames().to_vec(),
        }
    }

    /// Calls the servers that are thought to be unreachable, all at once, so that [`Venus::activity`] tells which of them do not
    /// reply now. Takes at most six seconds, the dead time of a probe.
    #[boxed]
    pub async fn check_servers(&self) {
        self.calls.probe_unreachable(self.location.servers().all()).await;
    }

    fn cache_activity(&self) -> CacheActivity {
        CacheActivity {
            used_bytes: self.files.bytes_used(),
            limit_bytes: self.files.bytes_max(),
            statuses: self.statuses() as u64,
            statuses_limit: self.limits.statuses_max as u64,
            bypass_bytes: self.bypass_bytes(),
            store_retries: self.files.store_retries().len() as u64,
        }
    }

    fn activity_counts(&self) -> ActivityCounts {
        let values = self.counters();
        ActivityCounts {
            calls: values.calls_total(),
            status_hits: values.status_hits,
            status_misses: values.status_misses,
            data_hits: values.data_hits,
            data_misses: values.data_misses,
            fetched_bytes: values.bytes_fetched,
            bypassed_bytes: values.bytes_bypassed,
            fetched_by_data_path_bytes: values.path_bytes_fetched,
            fetched_at_drives_bytes: values.drive_bytes_fetched,
            drive_fallbacks: values.drive_fallbacks.values().sum(),
            stored_bytes: values.bytes_stored,
            stored_by_data_path_bytes: values.path_bytes_stored,
            stored_at_drives_bytes: values.drive_bytes_stored,
            promises_broken: values.promises_broken,
        }
    }

    fn lease_activity(&self) -> LeaseActivity {
        let (values, held) = (self.counters(), self.leases.all());
        LeaseActivity {
            held: held.len() as u64,
            waiting_changes: held.iter().map(|lease| lease.journal(|journal| journal.unsettled())).sum(),
            taken: values.leases_taken,
            recalled: values.leases_recalled,
            lost: values.leases_lost,
            decided_changes: values.changes_decided,
        }
    }

    fn server_activity(&self, server: &Arc<Server>, now: Instant) -> ServerActivity {
        let addresses = server.addresses();
        let mut told = ServerActivity {
            cell: self.location.cell(server.cell).map_or(String::new(), |cell| cell.name.to_string()),
            ranks: addresses.iter().map(|address| address.given_rank()).collect(),
            addresses: addresses.iter().map(|address| address.peer.to_string()).collect(),
            unreachable_seconds: server.unreachable_for(now).map(|time| time.as_secs()),
            last_reply_seconds_ago: addresses
                .iter()
                .filter_map(|it| it.absence.idle_for(now))
                .min()
                .map(|it| it.as_secs()),
            round_trip_micros: addresses.iter().find_map(|it| it.measured_round_trip()).map(micros),
            data_path: self.transfer.path_state(server),
            ..ServerActivity::default()
        };
        for address in &addresses {
            let times = self.calls.times().of_peer(address.peer);
            told.calls += times.calls;
            told.failed_calls += times.failed;
            told.calls_micros += micros(times.total);
        }
        told
    }
}

fn ongoing(call: &TimedCall, now: Instant) -> OngoingCall {
    OngoingCall {
        operation: call.operation.into(),
        server: call.peer.to_string(),
        micros: micros(now.saturating_since(call.begun)),
    }
}

fn slow(ended: &EndedCall, now: Instant) -> SlowCall {
    SlowCall {
        operation: ended.call.operation.into(),
        server: ended.call.peer.to_string(),
        micros: micros(ended.took()),
        has_failed: ended.has_failed,
        ended_seconds_ago: now.saturating_since(ended.ended).as_secs(),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
