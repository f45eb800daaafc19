//! Servers of a volume: which of them is used and why, and how it was last seen.

use std::sync::Arc;

use afs_rpc::Instant;
use afs_wire::ids::VolumeKind;

use crate::api::{ExplainedError, ExplainedServer, ExplainedVolume};
use crate::location::{Server, Volume};
use crate::venus::Venus;

/// Limit of the servers that are told.
const SERVERS_MAX: usize = 16;

impl Venus {
    pub(super) fn volume_explained(&self, volume: &Volume) -> ExplainedVolume {
        ExplainedVolume {
            id: volume.id.0,
            name: volume.name(),
            kind: kind_text(volume.kind).into(),
            located_seconds_ago: self.now().saturating_since(volume.located_at()).as_secs(),
        }
    }

    pub(super) fn servers_explained(&self, volume: &Volume) -> Vec<ExplainedServer> {
        let now = self.now();
        let sites = volume.sites(now);
        let one =
            |(index, server)| self.server_explained(server, index == 0, reason(&sites, index, now), now);
        sites.iter().enumerate().take(SERVERS_MAX).map(one).collect()
    }

    fn server_explained(
        &self,
        server: &Arc<Server>,
        is_used: bool,
        reason: &str,
        now: Instant,
    ) -> ExplainedServer {
        let addresses = server.addresses();
        let errors = server.errors.latest_first().into_iter().map(|error| ExplainedError {
            seconds_ago: now.saturating_since(error.at).as_secs(),
            operation: error.operation.into(),
            error: error.error.to_string(),
            times: error.times,
        });
        ExplainedServer {
            addresses: addresses.iter().map(|address| address.peer.to_string()).collect(),
            is_used,
            reason: reason.into(),
            unreachable_seconds: server.unreachable_for(now).map(|time| time.as_secs()),
            last_reply_seconds_ago: addresses
                .iter()
                .filter_map(|it| it.absence.idle_for(now))
                .min()
                .map(|it| it.as_secs()),
            round_trip_micros: addresses
                .iter()
                .find_map(|it| it.measured_round_trip())
                .map(|it| it.as_micros() as u64),
            data_path: self.transfer.path_state(server),
            drives: self.transfer.drives(server),
            errors: errors.collect(),
        }
    }
}

fn kind_text(kind: VolumeKind) -> &'static str {
    match kind {
        VolumeKind::ReadWrite => "read-write",
        VolumeKind::ReadOnly => "read-only",
        VolumeKind::Backup => "backup",
    }
}

/// Why the server at an index of the sites, the best first, is used or not.
fn reason(sites: &[Arc<Server>], index: usize, now: Instant) -> &'static str {
    let Some(server) = sites.get(index) else { return "" };
    let answers = |server: &&Arc<Server>| !server.is_unreachable();
    let nearest = sites.iter().filter(answers).map(|server| server.distance(now)).min();
    match (index, sites.len(), sites.iter().filter(answers).count()) {
        (0, 1, _) => "the only one",
        (0, _, 0) => "none of them answers",
        (0, _, 1) => "the only one that answers",
        (0, ..) if nearest == Some(server.distance(now)) => "the nearest",
        (0, ..) => "used before, and hardly farther than the nearest",
        _ if server.is_unreachable() => "does not answer",
        _ => "another one is as near, or nearer",
    }
}
