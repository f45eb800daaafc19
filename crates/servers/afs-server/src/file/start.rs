//! Start of a file server: its parts, its bounds, and the table of its calls.

use std::sync::Arc;

use afs_datapath::session::DriveLimits;
use afs_rpc::{EnvRef, Rx, Service, Table};
use afs_wire::ids::{UnixSeconds, Uuid};
use afs_wire::rpc::ServiceId;

use super::Tickets;
use super::gauges::Gauges;
use super::server::FileServer;
use super::statistics::Statistics;
use super::stores::Stores;
use crate::clients::{ClientTimeouts, Clients};
use crate::data_path::{DataPath, FileObjects};
use crate::guard::Guard;
use crate::kept_locks;
use crate::locks::Locks;
use crate::partitions::Partitions;
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
            data_path: DataPath::new(&env, Arc::new(FileObjects(server.clone())), &partitions, limits.drive),
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
}
