//! Counters of the location service.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::vl;

use super::{LocationServer, code};
use crate::guard::anyone;

/// The opcode of the first counter.
const FIRST: u32 = 501;
const COUNT: usize = 50;

/// Calls, and refused calls, by opcode.
pub(super) struct Counters {
    requests: [AtomicI32; COUNT],
    aborts: [AtomicI32; COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicI32::new(0));
        Counters { requests: zeros(), aborts: zeros() }
    }
}

impl Counters {
    pub(super) fn count(&self, opcode: u32, good: bool) {
        let place = opcode.wrapping_sub(FIRST) as usize;
        if let (Some(requests), Some(aborts)) = (self.requests.get(place), self.aborts.get(place)) {
            requests.fetch_add(1, Ordering::Relaxed);
            aborts.fetch_add(i32::from(!good), Ordering::Relaxed);
        }
    }
}

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    anyone(table, |server: Arc<LocationServer>, _: vl::GetStats| async move { server.statistics().await })
}

impl LocationServer {
    async fn statistics(&self) -> Result<vl::GetStatsReply, AbortCode> {
        let totals = self.db.totals().await.map_err(code)?;
        let read = |counters: &[AtomicI32; COUNT]| {
            std::array::from_fn(|place| counters[place].load(Ordering::Relaxed))
        };
        let statistics = vl::ServerStatistics {
            start_time: self.started,
            requests: read(&self.counters.requests),
            aborts: read(&self.counters.aborts),
            spares: [0; 5],
        };
        let header = vl::DatabaseHeader {
            // The version of OpenAFS's format whose entries have 13 sites and uuids.
            version: 4,
            allocations: totals.entries as i32,
            volume_id_max: totals.next_volume_id,
            entries: [totals.entries as i32, 0, 0],
            ..vl::DatabaseHeader::default()
        };
        Ok(vl::GetStatsReply { statistics, header })
    }
}
