//! A small cell in a simulated world: one server machine with six volumes, and any number of clients. The bytes of the volumes are on the
//! server's own drive, or where the run of the test program says (`ANDREW_DRIVES`).
// Each test uses a part of it, and a cell that cannot be created is a failed test.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

mod client;
pub mod fakes;
mod sink;
pub mod small_disk;

pub use client::{Client, pattern};
pub use sink::RecordingSink;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_datapath::session::Identity;
use afs_rpc::{Class, Level, Security, Table};
use afs_server::{DataPathOptions, VolumeStates};
use afs_sim::{NodeId, Sim, StreamConfig};
use afs_testkit::{
    Claim, ClaimServer, ClientMachine, DrivePlan, EXPIRED as WORD_THAT_HAS_EXPIRED, FileCalls, NewVolume,
    Planned, Server, ServerPlan, Service, UntoldNames, UserDirectory, WORD, cell_of,
};
use afs_venus::cache::CacheStore;
use afs_venus::{DataPathConfig, Limits, MemoryCache, RootKind, SecurityConfig, VenusError};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Rights, Uuid, VolumeId, VolumeName};
use afs_wire::rpc::Opcode;
use afs_wire::vol::DataRoute;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Limit of simulated time for any operation.
pub const LIMIT: Duration = Duration::from_secs(3600);
/// The cell's root volume, with all rights for all users.
pub const ROOT: &str = "root.cell";
/// Another volume, with the same rights.
pub const PROJ: &str = "proj";
/// A volume with a quota of [`SMALL_KIB`].
pub const SMALL: &str = "small";
pub const SMALL_KIB: u32 = 40;
/// One with a quota of 400 KiB.
pub const MEDIUM: &str = "medium";
/// A volume in which all users may list, and none may change anything.
pub const GUARDED: &str = "guarded";
/// A volume whose files bypass the disk cache.
pub const VIDEO: &str = "__video.data";

/// Added to the number of a client for its successor of the same permanent name.
pub const SUCCESSOR: u8 = 100;

/// The name of a token that the server reports as expired.
pub const EXPIRED: &str = "late";
/// The name of a token of another cell with the same name.
pub const OF_ANOTHER_CELL: &str = "elsewhere";
/// The name of a user whose client gives servers credentials for callbacks.
pub const AUTHENTICATES_CALLBACKS: &str = "careful";

pub struct Cell {
    pub sim: Sim,
    pub server: NodeId,
    pub machine: Server,
    pub states: Arc<VolumeStates>,
    limits: Mutex<Limits>,
    /// Location servers of clients created from now on.
    pub locations: Mutex<Vec<SocketAddr>>,
    /// The users of the cell.
    pub users: UserDirectory,
    /// Identity, without a token, of the user with the number of a client created from now on.
    pub own: Mutex<Option<afs_venus::OwnIdentity>>,
    pub sessions: Mutex<Option<Arc<dyn afs_venus::SessionLookup>>>,
    /// How clients made from now on use the data path.
    pub data_path: Mutex<DataPathConfig>,
    /// With what clients made from now on read object stores.
    pub objects: Mutex<Option<Arc<dyn afs_venus::ObjectReader>>>,
    /// The drives that the run of the test program has the data on, as far as they are on other hosts or in a bucket.
    pub drives: Planned,
}

impl Cell {
    /// A running cell. Its server has no data path, unless the run of the test program has another organisation.
    pub fn new(seed: u64) -> Cell {
        Cell::made(seed, DrivePlan::of_run(), |_| {})
    }

    /// The same, whose server does not tell of changes of groups.
    pub fn untold(seed: u64) -> Cell {
        Cell::made(seed, DrivePlan::of_run(), |plan| {
            let guard = plan.guard.clone();
            plan.guard = Arc::new(move |env| afs_server::Guard::new(Arc::new(UntoldNames(guard(env)))));
        })
    }

    /// The same, without a data path in every run: the test is about calls.
    pub fn by_calls(seed: u64) -> Cell {
        Cell::made(seed, on_drives_of_run(DataRoute::Calls), |_| {})
    }

    /// The same, with a data path, which clients use for 4 KiB and more in every run: the test is about it.
    pub fn with_data_path(seed: u64, clear: bool) -> Cell {
        Cell::with_older_server(seed, clear, &[])
    }

    /// The same, of a server that does not know some calls of the file service.
    pub fn with_older_server(seed: u64, clear: bool, unknown: &[u32]) -> Cell {
        Cell::with_calls(seed, clear, refusing(unknown))
    }

    /// The same, of a server that does something else with some calls of the file service.
    pub fn with_calls(seed: u64, clear: bool, calls: FileCalls) -> Cell {
        Cell::planned(seed, on_drives_of_run(DataRoute::Server), clear, calls)
    }

    /// The same on the drives of a plan, or on the server's own: the test chooses them.
    pub fn planned(seed: u64, drives: Option<DrivePlan>, clear: bool, calls: FileCalls) -> Cell {
        Cell::made(seed, drives, |plan| {
            offer_data(plan, clear);
            plan.file_calls = calls;
        })
    }

    /// Drives on other hosts have TLS where the server's data path has it.
    pub fn made(seed: u64, drives: Option<DrivePlan>, change: impl FnOnce(&mut ServerPlan)) -> Cell {
        let (sim, users) = (Sim::new(seed), UserDirectory::default());
        let mut plan = plan(&users);
        change(&mut plan);
        let has_path = |plan: &ServerPlan| plan.services.contains(&Service::Data);
        if !has_path(&plan) && drives.as_ref().is_some_and(|drives| drives.route != DataRoute::Calls) {
            offer_data(&mut plan, true);
        }
        let (has_path, clear) = (has_path(&plan), plan.clear_data);
        let machine = Server::new(&sim, "server", SERVER, plan);
        machine.start_now();
        let identity = (has_path && !clear).then(|| Identity::of_seed(&[1; 32]).unwrap());
        let drives = drives.map(|drives| machine.use_plan(&drives, identity.as_ref())).unwrap_or_default();
        let data_path = DataPathConfig {
            minimum_size: has_path.then_some(4096),
            allow_clear: has_path && clear,
            ..DataPathConfig::default()
        };
        let objects = drives.store.clone().map(|store| Arc::new(store) as Arc<dyn afs_venus::ObjectReader>);
        Cell {
            server: machine.node,
            states: machine.states.clone(),
            limits: Mutex::new(Limits::default()),
            locations: Mutex::new(vec![SocketAddr::new(SERVER.into(), 7003)]),
            own: Mutex::default(),
            sessions: Mutex::default(),
            data_path: Mutex::new(data_path),
            objects: Mutex::new(objects),
            drives,
            users,
            machine,
            sim,
        }
    }

    pub fn start_server(&self) {
        self.machine.start_now();
    }

    pub fn volume(&self, name: &str) -> VolumeId {
        self.machine.volume(name).unwrap()
    }

    /// The partitions of the server, with their drives.
    pub fn partitions(&self) -> afs_server::Partitions {
        self.machine.processes(|processes| processes.partitions.clone()).unwrap()
    }

    /// Crashes and restarts the server.
    pub fn restart_server(&self) {
        self.machine.restart();
    }

    /// Crashes the server, and starts one in its place that has a data path.
    pub fn upgrade_server(&self) {
        self.restart_server();
        let files = self.machine.processes(|processes| processes.files.upgrade()).flatten().unwrap();
        let listen = SocketAddr::new(SERVER.into(), 7100);
        let options = DataPathOptions { listen, addresses: Vec::new(), clear: false, minimum_size: 0 };
        let opening = async move { files.open_data_path(&options).map(drop) };
        self.sim.block_on(self.server, LIMIT, opening).unwrap().unwrap();
        // Cells without a data path have volumes with calls alone in some runs.
        self.machine.edit_volume(ROOT, |header| header.route = DataRoute::Server);
    }

    /// Sets how byte streams are, but for those between the server and its drives: a server whose drives are away says so.
    pub fn set_streams(&self, streams: StreamConfig) {
        self.sim.set_streams(streams);
        for drive in self.drives.hosts.iter().map(|host| host.node).chain([self.server]) {
            self.sim.set_streams_between(self.server, drive, StreamConfig::default());
            self.sim.set_streams_between(drive, self.server, StreamConfig::default());
        }
    }

    /// Sets the limits of clients created from now on.
    pub fn set_limits(&self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.limits.lock().unwrap());
    }

    /// A client with an empty cache in memory. With [`SUCCESSOR`] added to its number it has the permanent name of an
    /// earlier client, at another address.
    pub fn client(&self, number: u8) -> Client {
        self.client_with(number, Arc::new(MemoryCache::new(64 << 20)))
    }

    /// A client with a given cache.
    pub fn client_with(&self, number: u8, cache: Arc<dyn CacheStore>) -> Client {
        self.client_at(number, cache, RootKind::Volume(VolumeName::new(ROOT).unwrap()))
    }

    pub fn client_at(&self, number: u8, cache: Arc<dyn CacheStore>, root: RootKind) -> Client {
        self.try_client(number, cache, root).unwrap()
    }

    pub fn try_client(
        &self,
        number: u8,
        cache: Arc<dyn CacheStore>,
        root: RootKind,
    ) -> Result<Client, VenusError> {
        let cells = vec![cell_of("test.cell", self.locations.lock().unwrap().clone())];
        let mut machine = ClientMachine::new(&self.sim, number, address(number), cells);
        let config = &mut machine.config;
        (config.root, config.cache) = (root, cache);
        config.uuid = Uuid([number % SUCCESSOR + 1; 16]);
        config.sysnames = vec!["amd64_linux26".into(), "any".into()];
        config.limits = self.limits.lock().unwrap().clone();
        config.security = SecurityConfig {
            own: self.own.lock().unwrap().clone(),
            sessions: self.sessions.lock().unwrap().clone(),
            callback_classes: classes(),
        };
        config.data_path = self.data_path.lock().unwrap().clone();
        config.objects = self.objects.lock().unwrap().clone();
        Client::start(machine, self.sim.world())
    }

    /// Runs a future on a client's machine.
    pub fn on<T, F>(&self, client: &Client, work: F) -> T
    where
        T: Send + 'static,
        F: std::future::Future<Output = T> + Send + 'static,
    {
        self.sim.block_on(client.node, LIMIT, work).unwrap_or_else(|hang| panic!("{hang}"))
    }
}

/// The kind of drives that the run of the test program is over, in another organisation.
fn on_drives_of_run(route: DataRoute) -> Option<DrivePlan> {
    DrivePlan::of_run().map(|plan| DrivePlan { route, ..plan })
}

fn offer_data(plan: &mut ServerPlan, clear: bool) {
    plan.services.push(Service::Data);
    plan.clear_data = clear;
}

/// Does not know some calls of the file service.
pub fn refusing(unknown: &[u32]) -> FileCalls {
    let unknown = unknown.to_vec();
    let refuse = |table: Table<_>, opcode: &u32| table.refuse(Opcode(*opcode), AbortCode::RXGEN_OPCODE);
    Arc::new(move |table| unknown.iter().fold(table, refuse))
}

/// The server of a cell with these users: its services, without a data path, and its volumes.
pub fn plan(users: &UserDirectory) -> ServerPlan {
    let limited = |name, quota_kib| NewVolume { quota_kib, ..NewVolume::open_to_all(name, Rights::ALL) };
    let volumes = vec![
        NewVolume::open_to_all(ROOT, Rights::ALL),
        NewVolume::open_to_all(PROJ, Rights::ALL),
        limited(SMALL, SMALL_KIB),
        NewVolume::open_to_all(GUARDED, Rights(0x09)),
        NewVolume::open_to_all(VIDEO, Rights::ALL),
        limited(MEDIUM, 400),
    ];
    ServerPlan { volumes, classes: Arc::new(|_| classes()), ..ServerPlan::new(Arc::new(users.clone())) }
}

/// Calls without security, and calls by claim.
fn classes() -> Vec<Box<dyn afs_rx::ServerSecurity>> {
    vec![Box::new(afs_rx::NullServer), Box::new(ClaimServer(WORD.into()))]
}

/// Security with which calls of a user authenticate.
pub fn trusted_name(name: &str) -> Security {
    let claim = Claim::of(name).protected(Class::Rxkad, Level::Clear);
    let claim = match name {
        OF_ANOTHER_CELL => claim.with_word("open another"),
        EXPIRED => claim.with_word(WORD_THAT_HAS_EXPIRED),
        AUTHENTICATES_CALLBACKS => claim.called_back_with(WORD),
        _ => claim,
    };
    claim.security()
}

/// The same for a user without groups.
pub fn trusted_name_without(name: &str, groups: &[i32]) -> Security {
    Claim::of(name).without(groups).protected(Class::Rxkad, Level::Clear).security()
}

/// The same for a user with a token of a generation.
pub fn trusted_name_of(name: &str, generation: u64) -> Security {
    Claim::of(name).of_generation(generation).protected(Class::Rxkad, Level::Clear).security()
}

/// The address of a client machine.
fn address(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, 10 + number])
}

/// An operation as a named type.
pub type Work = std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>>;
