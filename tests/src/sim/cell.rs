//! Simulated cell: one server machine with a disk, and client machines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Limits};
use afs_sim::{NodeId, Sim};
use afs_venus::cache::MemoryCache;
use afs_venus::{CellConfig, NoSink, OwnIdentity, RootKind, SecurityConfig, Venus, VenusConfig};
use afs_wire::ids::{CellName, Uuid, VolumeId};

use super::history::History;
use super::identities::{Keys, name_of};
use super::ledger::Ledger;
use super::machine::{Machine, volume_name};
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

/// Error of the setup.
pub type SetupError = Box<dyn std::error::Error + Send + Sync>;

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
        let machine = Machine {
            world: sim.world(),
            node: server,
            disk: sim.disk(server),
            keys: Arc::new(Keys::new(&sim.env(server))),
            settings: Arc::new(settings),
            ledger: Ledger::default(),
            states: Arc::default(),
            inside: Arc::default(),
            clients: Arc::default(),
        };
        Self { sim, server, machine }
    }

    /// Starts the servers, and waits until they run.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start(&self) {
        let machine = self.machine.clone();
        let start = async move { machine.start().await.map_err(|e| e.to_string()) };
        let started = self.sim.block_on(self.server, START, start);
        if let Err(error) = started.map_err(|hang| hang.to_string()).and_then(|started| started) {
            panic!("the server does not start: {error}");
        }
    }

    /// The number of the cell's volume.
    #[must_use]
    pub fn volume(&self) -> VolumeId {
        self.machine.inside(|inside| inside.volume).unwrap_or_default()
    }

    /// Adds a client machine with an empty cache, and a user.
    ///
    /// # Errors
    /// The cell cannot be reached.
    pub fn user(&self, number: usize, history: &History) -> Result<User, String> {
        let last = client_byte(number);
        let address = client_address(number).ip();
        let node = self.sim.node(&format!("client{number}"), address);
        let env = self.sim.env(node);
        let rx = self.sim.rx(
            node,
            env.clone(),
            SocketAddr::new(address, 7001),
            afs_rx::Config::of_client(),
            Limits::default(),
        );
        self.machine.note_client(&rx);
        let settings = &self.machine.settings;
        let config = VenusConfig {
            env: env.clone(),
            rx,
            cells: vec![CellConfig {
                name: cell_name(),
                location_servers: vec![SocketAddr::new(SERVER.into(), 7003)],
                file_port: 7000,
            }],
            root: RootKind::Volume(volume_name()),
            uuid: Uuid([last; 16]),
            cache: Arc::new(MemoryCache::new(settings.cache)),
            sink: Arc::new(NoSink),
            snapshots: Some(".snapshots".into()),
            sysnames: Vec::new(),
            limits: settings.venus.clone(),
            security: self.security_of(number, &env),
            data_path: Default::default(),
        };
        let started = self.sim.block_on(node, START, Venus::start(config));
        match started {
            Ok(Ok(venus)) => Ok(User { number, venus, env, history: history.clone(), node }),
            Ok(Err(error)) => Err(format!("client {number} does not start: {error}")),
            Err(hang) => Err(format!("client {number} does not start: {hang}")),
        }
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

fn client_byte(number: usize) -> u8 {
    u8::try_from(10 + number).unwrap_or(255)
}

/// Callback address of the client machine with that number.
#[must_use]
pub fn client_address(number: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, client_byte(number))), 7001)
}

fn cell_name() -> CellName {
    CellName::new("sim.test").unwrap_or_else(|error| panic!("{error}"))
}

/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Virtual time.
const START: Duration = Duration::from_secs(300);
