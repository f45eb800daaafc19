//! The file service (docs/protocol fileserver.md): names, status, access, data, callback promises.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afs_datapath::session::DriveLimits;
use afs_rpc::{Caller, EnvRef, Identity, Rx, Service, Table};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{UnixSeconds, Uuid};
use afs_wire::rpc::ServiceId;

use super::Tickets;
use super::gauges::Gauges;
use super::statistics::{Statistics, StatisticsNow};
use super::stores::Stores;
use crate::audit::CallKind;
use crate::clients::{ClientTimeouts, Clients};
use crate::data_path::DataPath;
use crate::guard::Guard;
use crate::hosts::Host;
use crate::kept_locks;
use crate::locks::Locks;
use crate::partitions::Partitions;
use crate::subject::Subject;
use crate::volume_states::VolumeStates;

/// The parts of a file server.
pub struct FileServerConfig {
    /// Time, tasks and randomness.
    pub env: EnvRef,
    /// The transport for calls of clients and for callbacks to them.
    pub rx: Rx,
    /// The permanent name of this server, the one in the location database.
    pub uuid: Uuid,
    /// The volumes.
    pub partitions: Partitions,
    /// Name service, requirements on connections, and audit log.
    pub guard: Guard,
    /// Volume states that the volume service sets; shared with it.
    pub states: Arc<VolumeStates>,
    /// Bounds and time-outs.
    pub limits: FileServerLimits,
}

/// Bounds of a file server.
#[derive(Clone, Copy, Debug)]
pub struct FileServerLimits {
    /// Clients known at a time: a quarter of the entries is reserved for authenticated clients, and the
    /// clients of one address have at most 1/64 of them (16 in any case). A further client takes the entry of
    /// one without promises, or is answered VBUSY. Default 65,536.
    pub hosts: usize,
    /// Promises held; beyond that the oldest are broken. Each takes at most 100 bytes. Default 1,048,576.
    pub promises: usize,
    /// Advisory locks held; a further one is refused with EAGAIN. Default 262,144.
    pub locks: usize,
    /// Time-outs for calls to clients.
    pub timeouts: ClientTimeouts,
    /// Bounds of the data path.
    pub drive: DriveLimits,
}

impl Default for FileServerLimits {
    fn default() -> Self {
        FileServerLimits {
            hosts: 1 << 16,
            promises: 1 << 20,
            locks: 1 << 18,
            timeouts: ClientTimeouts::default(),
            drive: DriveLimits::default(),
        }
    }
}

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

/// One call by an identified client.
pub(crate) struct CallContext {
    pub(crate) host: Arc<Host>,
    pub(crate) subject: Subject,
    pub(crate) identity: Identity,
    /// The address that the call comes from, and with the port.
    pub(crate) address: IpAddr,
    pub(crate) peer: SocketAddr,
}

impl FileServer {
    /// A file server that knows no client yet: each is reset at its first call. Sweeps its tables every few
    /// minutes for as long as it lives.
    pub fn new(config: FileServerConfig) -> Arc<Self> {
        let FileServerConfig { env, rx, uuid, partitions, guard, states, limits } = config;
        let clients = Clients::new(env.clone(), &rx, uuid, limits.hosts, limits.promises, limits.timeouts);
        clients.start_sweeping();
        clients.start_breaking_rights(guard.shared_names());
        let started = UnixSeconds(env.wall().secs_u32());
        let locks = Locks::new(limits.locks);
        kept_locks::restore(&locks, &partitions, clients.now());
        let server = Arc::new_cyclic(|server| FileServer {
            tickets: Tickets::new(env.clone()),
            data_path: DataPath::new(&env, server.clone(), &partitions, limits.drive),
            env,
            partitions,
            clients,
            guard,
            locks,
            states,
            stores: Stores::new(),
            statistics: Statistics::default(),
            gauges: Gauges::new(&rx),
            started,
        });
        server.start_sweeping_locks();
        server.start_sweeping_leases();
        server.states.belong_to(Arc::downgrade(&server));
        server
    }

    /// The service, for port 7000 ([`Rx::listen`]).
    pub fn service(self: &Arc<Self>) -> Arc<dyn Service> {
        Arc::new(self.table())
    }

    /// The calls of the service.
    pub fn table(self: &Arc<Self>) -> Table<Self> {
        super::add_all(Table::new(ServiceId::FILE, self.clone()))
    }

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

impl CallContext {
    /// The code in the form that this client understands: clients that do not know translated error numbers
    /// get Linux ones (docs/protocol fileserver.md "9.2 errno ↔ UAE translation").
    pub(crate) fn code(&self, code: AbortCode) -> AbortCode {
        if self.host.translates() { code } else { untranslated(code) }
    }
}

/// The Linux error number for a translated one; other codes unchanged.
pub(crate) fn untranslated(code: AbortCode) -> AbortCode {
    let first = Errno::EPERM.to_uae().0;
    if code.0 < first || code.0 > first + UAE_SPAN {
        return code;
    }
    AbortCode(code.to_errno().unwrap_or(code.0))
}

/// Number of translated error numbers (docs/protocol fileserver.md "9.2 errno ↔ UAE translation").
const UAE_SPAN: i32 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_clients_get_linux_numbers() {
        assert_eq!(untranslated(Errno::EACCES.to_uae()), AbortCode(13));
        assert_eq!(untranslated(Errno::EDQUOT.to_uae()), AbortCode(122));
        for code in [AbortCode::VNOVOL, AbortCode::RXGEN_OPCODE, AbortCode::VL_NOENT] {
            assert_eq!(untranslated(code), code);
        }
    }
}
