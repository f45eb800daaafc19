//! Simulated cell: one server machine with a disk, and client machines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvRef;
use afs_sim::{NodeId, Sim, SimRng};
use afs_testkit::{ClientMachine, cell_of};
use afs_venus::cache::MemoryCache;
use afs_venus::{DiskCache, OwnIdentity, RootKind, SecurityConfig};
use afs_wire::ids::{Uuid, VolumeId, VolumeName};

use super::history::History;
use super::identities::name_of;
use super::kernel::Kernel;
use super::machine::{Machine, VOLUME};
use super::settings::CellSettings;
use super::user::User;

/// A cell of one server in a world.
pub struct Cell {
    /// The world.
    pub sim: Sim,
    /// The server machine.
    pub server: NodeId,
    /// Its disk and the state to start it.
    pub machine: Machine,
}

impl Cell {
    /// A world with a server machine that is not started, in a cell without security.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(seed, CellSettings::default())
    }

    /// As [`Cell::new`], with other settings.
    #[must_use]
    pub fn with(seed: u64, settings: CellSettings) -> Self {
        let sim = Sim::new(seed);
        let server = sim.node("server", SERVER.into());
        let machine = Machine::new(&sim, server, settings);
        Self { sim, server, machine }
    }

    /// Starts the servers, and waits until they run.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start(&self) {
        self.machine.server.start_now();
    }

    /// The number of the cell's volume.
    #[must_use]
    pub fn volume(&self) -> VolumeId {
        self.machine.server.volume(VOLUME).unwrap_or_default()
    }

    /// Adds a client machine with an empty cache, and a user.
    ///
    /// # Errors
    /// The cell cannot be reached.
    pub fn user(&self, number: usize, history: &History) -> Result<User, String> {
        let node = self.sim.node(&format!("client{number}"), client_address(number).ip());
        self.user_on(node, number, BOOT, history)
    }

    /// A user on the machine of the client with that number, which has been restarted, or is new. `boot` names the run of the machine, not
    /// of the client: a cache on disk is trusted in its own run.
    ///
    /// # Errors
    /// The cell cannot be reached, or the cache cannot be opened.
    pub fn user_on(
        &self,
        node: NodeId,
        number: usize,
        boot: &str,
        history: &History,
    ) -> Result<User, String> {
        started(self.client_machine(node, number, boot)?, number, history)
    }

    /// As [`Cell::user`], under a kernel whose delays are drawn from `rng`.
    ///
    /// # Errors
    /// The cell cannot be reached.
    pub fn user_with_kernel(
        &self,
        number: usize,
        history: &History,
        rng: SimRng,
    ) -> Result<(User, Kernel), String> {
        let node = self.sim.node(&format!("client{number}"), client_address(number).ip());
        let mut machine = self.client_machine(node, number, BOOT)?;
        let kernel = Kernel::new(machine.env.clone(), rng);
        machine.config.sink = Arc::new(kernel.clone());
        Ok((started(machine, number, history)?, kernel))
    }

    /// A client machine whose cache manager is configured and not started.
    fn client_machine(&self, node: NodeId, number: usize, boot: &str) -> Result<ClientMachine, String> {
        let settings = &self.machine.settings;
        let cells = vec![cell_of("sim.test", vec![SocketAddr::new(SERVER.into(), 7003)])];
        let (named, at) = (u8::try_from(number).unwrap_or(u8::MAX), client_address(number).ip());
        let rx = afs_rx::Config::of_client();
        let mut machine = ClientMachine::on(&self.sim, node, named, at, cells, rx);
        self.machine.note_client(&machine.config.rx);
        let root = VolumeName::new(VOLUME).map_err(|error| error.to_string())?;
        machine.config.root = RootKind::Volume(root);
        machine.config.uuid = Uuid([client_byte(number); 16]);
        machine.config.cache = match &settings.disk_caches {
            None => Arc::new(MemoryCache::new(settings.cache)),
            Some(folder) => {
                let cache = DiskCache::open(&folder.join(number.to_string()), settings.cache, boot);
                Arc::new(cache.map_err(|error| format!("the cache of client {number}: {error}"))?)
            }
        };
        machine.config.limits = settings.venus.clone();
        machine.config.limits.leases = settings.takes_leases(number);
        machine.config.data_path = settings.data_path_of_clients();
        machine.config.security = self.security_of(number, &machine.env);
        Ok(machine)
    }

    fn security_of(&self, number: usize, env: &EnvRef) -> SecurityConfig {
        let Machine { settings, keys, .. } = &self.machine;
        let Some(level) = settings.proofs[number % settings.proofs.len()] else {
            return SecurityConfig::default();
        };
        let uuid = Uuid([client_byte(number); 16]);
        let (security, called_back) = keys.token(env, name_of(number), level, uuid);
        SecurityConfig {
            own: Some(OwnIdentity { uid: 0, security }),
            sessions: None,
            callback_classes: vec![Box::new(afs_rx::NullServer), called_back],
        }
    }
}

fn started(machine: ClientMachine, number: usize, history: &History) -> Result<User, String> {
    let (env, node) = (machine.env.clone(), machine.node);
    match machine.start(START) {
        Ok(Ok(venus)) => Ok(User { number, venus, env, history: history.clone(), node }),
        Ok(Err(error)) => Err(format!("client {number} does not start: {error}")),
        Err(hang) => Err(format!("client {number} does not start: {hang}")),
    }
}

fn client_byte(number: usize) -> u8 {
    u8::try_from(10 + number).unwrap_or(255)
}

/// Callback address of the client machine with that number.
#[must_use]
pub fn client_address(number: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client_byte(number))), 7001)
}

/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// First run of a client machine.
pub const BOOT: &str = "first boot";
/// Virtual time.
const START: Duration = Duration::from_secs(300);
