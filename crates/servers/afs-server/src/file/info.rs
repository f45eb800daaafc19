//! Calls about the server itself: clock, capabilities, counters.
//!
//! Callers that only read counters need not be clients: monitors have no callback service.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::{Caller, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, Capabilities, ViceStatistics, capability, statistic64};
use afs_wire::xdr::BoundedVec;

use super::gauges::Reading;
use super::server::FileServer;
use crate::call_context::CallContext;

/// A client counts as active for this many seconds after its last call.
const ACTIVE_SECONDS: u64 = 15 * 60;
/// The collection of callback counters.
const CALLBACK_COUNTERS: i32 = 3;
/// The collection of call counters, which is empty.
const CALL_COUNTERS: i32 = 0;
/// No such collection (docs/protocol fileserver.md "7. Operation semantics and errors", GetXStats).
const NO_COLLECTION: AbortCode = AbortCode(1);

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::call(table, |_: Arc<FileServer>, context: Arc<CallContext>, _: fs::FlushCps| async move {
            // Memberships are looked up at every call, so there is nothing to flush.
            if !context.subject.is_administrator() {
                return Err(Errno::EPERM.to_uae());
            }
            Ok(fs::FlushCpsReply { spare2: 0, spare3: 0 })
        });
    let table =
        super::call(table, |server: Arc<FileServer>, _: Arc<CallContext>, _: fs::GetTime| async move {
            let now = server.env.wall();
            Ok(fs::GetTimeReply { seconds: now.secs_u32(), microseconds: now.nanos / 1000 })
        });
    let table =
        super::call(table, |_: Arc<FileServer>, _: Arc<CallContext>, _: fs::GetCapabilities| async move {
            let of_all = capability::ERROR_TRANSLATION | capability::LARGE_FILES | capability::WRITE_LOCK_ACL;
            let capabilities = Capabilities::first_of([of_all | capability::FINE_TIMES]);
            Ok(fs::GetCapabilitiesReply { capabilities })
        });
    table
        .call::<fs::GetStatistics, _, _, AbortCode>(
            |server: Arc<FileServer>, _: Caller, _: fs::GetStatistics| async move {
                Ok(fs::GetStatisticsReply { statistics: server.vice_statistics() })
            },
        )
        .call::<fs::GetStatistics64, _, _, AbortCode>(
            |server: Arc<FileServer>, _: Caller, call: fs::GetStatistics64| async move {
                if call.version != statistic64::COUNT as i32 {
                    return Err(Errno::EINVAL.to_uae());
                }
                Ok(fs::GetStatistics64Reply { counters: BoundedVec::first_of(server.statistics64()) })
            },
        )
        .call::<fs::XStatsVersion, _, _, AbortCode>(|_: Arc<FileServer>, _: Caller, _| async move {
            Ok(fs::XStatsVersionReply { version: fs::XSTATS_VERSION })
        })
        .call::<fs::GetXStats, _, _, AbortCode>(
            |server: Arc<FileServer>, _: Caller, call: fs::GetXStats| async move { server.extended(&call) },
        )
}

impl FileServer {
    fn vice_statistics(&self) -> ViceStatistics {
        let now = self.statistics.now();
        let (hosts, active) = self.workstations();
        let Reading { disks, process_kib } = self.gauges.read(self.env.now(), &self.partitions);
        let rx = self.gauges.network();
        ViceStatistics {
            current_time: self.unix_now().0,
            start_time: self.started.0,
            current_connections: rx.connections as u32,
            total_calls: now.calls as u32,
            total_fetches: now.fetches as u32,
            fetch_datas: now.fetched_files as u32,
            fetched_bytes: now.fetched_bytes as u32,
            total_stores: now.stores as u32,
            store_datas: now.stored_files as u32,
            stored_bytes: now.stored_bytes as u32,
            rpc_packets_sent: rx.packets_sent as u32,
            rpc_packets_received: rx.packets_read as u32,
            rpc_packets_lost: rx.packets_lost as u32,
            process_size: process_kib as u32,
            workstations: hosts as u32,
            active_workstations: active as u32,
            disks,
            ..ViceStatistics::default()
        }
    }

    fn statistics64(&self) -> [u64; statistic64::COUNT] {
        let now = self.statistics.now();
        let (hosts, active) = self.workstations();
        let mut counters = [0; statistic64::COUNT];
        counters[statistic64::CURRENT_TIME] = self.unix_now().0.into();
        counters[statistic64::START_TIME] = self.started.0.into();
        counters[statistic64::CURRENT_CONNECTIONS] = self.gauges.network().connections;
        counters[statistic64::PROCESS_SIZE] = self.gauges.read(self.env.now(), &self.partitions).process_kib;
        counters[statistic64::TOTAL_FETCHES] = now.fetches;
        counters[statistic64::FETCH_DATAS] = now.fetched_files;
        counters[statistic64::FETCHED_BYTES] = now.fetched_bytes;
        counters[statistic64::TOTAL_STORES] = now.stores;
        counters[statistic64::STORE_DATAS] = now.stored_files;
        counters[statistic64::STORED_BYTES] = now.stored_bytes;
        counters[statistic64::TOTAL_CALLS] = now.calls;
        counters[statistic64::WORKSTATIONS] = hosts as u64;
        counters[statistic64::ACTIVE_WORKSTATIONS] = active as u64;
        counters
    }

    /// Number of clients, and of those active lately.
    fn workstations(&self) -> (usize, usize) {
        let (hosts, now) = (self.clients.hosts().all(), self.clients.now());
        let active = |last: u64| now.saturating_sub(last) <= ACTIVE_SECONDS;
        (hosts.len(), hosts.iter().filter(|host| active(host.last_call())).count())
    }

    fn extended(&self, call: &fs::GetXStats) -> Result<fs::GetXStatsReply, AbortCode> {
        let data = match call.collection {
            CALL_COUNTERS => BoundedVec::new(),
            CALLBACK_COUNTERS => BoundedVec::first_of(self.callback_counters()),
            _ => return Err(NO_COLLECTION),
        };
        Ok(fs::GetXStatsReply { version: fs::XSTATS_VERSION, time: self.unix_now().0 as i32, data })
    }

    fn callback_counters(&self) -> [i32; 16] {
        let callbacks = self.clients.callbacks();
        let counters = callbacks.counters();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as i32;
        let mut words = [0; 16];
        words[0] = read(&counters.files_deleted);
        words[1] = read(&counters.given_up);
        words[2] = read(&counters.breaks);
        words[3] = read(&counters.granted);
        words[4] = read(&counters.reclaims);
        words[5] = read(&counters.hosts_dropped);
        words[6] = callbacks.files() as i32;
        words[7] = callbacks.len() as i32;
        words[9] = read(&counters.expired);
        words
    }
}
