//! Client machine: a cache manager before it starts, with a configuration that a test changes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvRef;
use afs_sim::{Hang, NodeId, World};
use afs_venus::{
    CellConfig, Limits, MemoryCache, NoSink, RootKind, SecurityConfig, Venus, VenusConfig, VenusError,
};
use afs_wire::ids::{CellName, Uuid};

/// A cell as a client knows it: its name and its location servers. File servers are at port 7000.
///
/// # Panics
/// If the name is none of a cell.
#[must_use]
pub fn cell_of(name: &str, location_servers: Vec<SocketAddr>) -> CellConfig {
    CellConfig { name: CellName::new(name).unwrap(), location_servers, file_port: 7000, is_listed: true }
}

/// A client machine on which nothing runs yet.
pub struct ClientMachine {
    /// The machine.
    pub node: NodeId,
    /// Its environment.
    pub env: EnvRef,
    /// The configuration of its cache manager. Default: the cells as root, a cache of 64 MiB in memory, no user with a
    /// token.
    pub config: VenusConfig,
    world: World,
}

impl ClientMachine {
    /// A machine with the name `client<number>`, whose permanent name is made of `number + 1`. Its calls come from port 7001.
    #[must_use]
    pub fn new(world: &World, number: u8, address: IpAddr, cells: Vec<CellConfig>) -> Self {
        Self::with_rx(world, number, address, cells, afs_rx::Config::default())
    }

    /// The same with settings of Rx.
    #[must_use]
    pub fn with_rx(
        world: &World,
        number: u8,
        address: IpAddr,
        cells: Vec<CellConfig>,
        rx: afs_rx::Config,
    ) -> Self {
        let node = world.node(&format!("client{number}"), address);
        Self::on(world, node, number, address, cells, rx)
    }

    /// The same on a machine that exists, in its present incarnation.
    #[must_use]
    pub fn on(
        world: &World,
        node: NodeId,
        number: u8,
        address: IpAddr,
        cells: Vec<CellConfig>,
        rx: afs_rx::Config,
    ) -> Self {
        let env = world.env(node);
        let at = SocketAddr::new(address, 7001);
        let config = VenusConfig {
            env: env.clone(),
            rx: world.rx(node, env.clone(), at, rx, afs_rpc::Limits::default()),
            cells,
            resolver: None,
            root: RootKind::Cells,
            uuid: Uuid([number.wrapping_add(1); 16]),
            cache: Arc::new(MemoryCache::new(64 << 20)),
            sink: Arc::new(NoSink),
            snapshots: Some(".snapshots".into()),
            sysnames: Vec::new(),
            limits: Limits::default(),
            security: SecurityConfig::default(),
            data_path: Default::default(),
            objects: None,
        };
        Self { node, env, config, world: world.clone() }
    }

    /// Starts the cache manager.
    ///
    /// # Errors
    /// [`Hang`] if it has not started after `limit` of virtual time; the inner error is its own.
    pub fn start(self, limit: Duration) -> Result<Result<Arc<Venus>, VenusError>, Hang> {
        self.world.block_on(self.node, limit, Venus::start(self.config))
    }
}
