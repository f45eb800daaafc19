//! The file service (docs/protocol fileserver.md): names, status, access, data, callback promises.

use std::sync::Arc;

use afs_rpc::{Caller, EnvRef};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::ServiceId;

use super::Tickets;
use super::gauges::Gauges;
use super::statistics::{Statistics, StatisticsNow};
use super::stores::Stores;
use crate::audit::CallKind;
use crate::call_context::CallContext;
use crate::clients::Clients;
use crate::data_path::DataPath;
use crate::guard::Guard;
use crate::locks::Locks;
use crate::partitions::Partitions;
use crate::volume_states::VolumeStates;

/// The file service over a volume store.
pub struct FileServer {
    pub(crate) env: EnvRef,
    pub(crate) partitions: Partitions,
    pub(crate) clients: Arc<Clients>,
    pub(crate) guard: Guard,
    pub(crate) locks: Locks,
    pub(crate) states: Arc<VolumeStates>,
    pub(crate) stores: Arc<Stores>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) data_path: DataPath,
    pub(crate) statistics: Statistics,
    pub(crate) gauges: Gauges,
    pub(crate) started: UnixSeconds,
}

impl FileServer {
    /// The clients, with their promises.
    pub fn clients(&self) -> &Arc<Clients> {
        &self.clients
    }

    /// How large the process is, in bytes, for monitors.
    pub fn tell_process_size(&self, read: impl Fn() -> u64 + Send + Sync + 'static) {
        self.gauges.tell_process_size(Box::new(read));
    }

    /// Its counters.
    pub fn statistics(&self) -> StatisticsNow {
        self.statistics.now()
    }

    /// Admits a call: its connection meets the requirements, and the client is identified and ready.
    pub(crate) async fn admit(&self, caller: &Caller, kind: CallKind) -> Result<CallContext, AbortCode> {
        self.statistics.count_call();
        if kind != CallKind::Probe && !self.guard.policy().service_hears(ServiceId::FILE, &caller.identity) {
            return Err(Errno::EACCES.to_uae());
        }
        let host = self.clients.admit(caller).await?;
        let subject = self.clients.subject(&host, caller, self.guard.names()).await?;
        let (identity, peer) = (caller.identity.clone(), caller.peer);
        Ok(CallContext { host, subject, identity, address: peer.ip(), peer })
    }

    pub(crate) fn unix_now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }
}
