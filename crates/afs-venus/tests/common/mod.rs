//! A small cell in a simulated world: one server machine with four volumes, and any number of clients.
// Each test uses a part of it, and a cell that cannot be created is a failed test.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

mod client;
pub mod fakes;
mod sink;
mod users;

pub use client::{Client, pattern};
pub use sink::RecordingSink;
pub use users::{AUTHENTICATES_CALLBACKS, EXPIRED, TrustedNames, UserTable, trusted_name};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_db::{EmbeddedLocationDb, LocationDb, Proposal, ProposedSite, entry_flags, site_flags};
use afs_drive::SegmentDrive;
use afs_kv::Kv;
use afs_rpc::EnvRef;
use afs_server::{
    DataPathOptions, FileServer, FileServerConfig, FileServerLimits, Guard, LocationServer, Partitions,
    VolumeStates,
};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim, World};
use afs_venus::cache::CacheStore;
use afs_venus::{CellConfig, DataPathConfig, Limits, MemoryCache, RootKind, Venus, VenusConfig, VenusError};
use afs_volume::{VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::ids::{CellName, Rights, UnixSeconds, Uuid, ViceId, VolumeId, VolumeName};

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const UUID: Uuid = Uuid([0x5e; 16]);
/// Limit of simulated time for any operation.
pub const LIMIT: Duration = Duration::from_secs(3600);
/// The cell's root volume, with all rights for all users.
pub const ROOT: &str = "root.cell";
/// Another volume, with the same rights.
pub const PROJ: &str = "proj";
/// A volume with a quota of [`SMALL_KIB`].
pub const SMALL: &str = "small";
pub const SMALL_KIB: u32 = 40;
/// A volume in which all users may list, and none may change anything.
pub const GUARDED: &str = "guarded";
/// A volume whose files bypass the disk cache.
pub const VIDEO: &str = "__video.data";

/// Added to the number of a client for its successor of the same permanent name.
pub const SUCCESSOR: u8 = 100;

pub struct Cell {
    pub sim: Sim,
    pub server: NodeId,
    disk: SimDisk,
    pub states: Arc<VolumeStates>,
    limits: Mutex<Limits>,
    /// Location servers of clients created from now on.
    pub locations: Mutex<Vec<SocketAddr>>,
    ids: Mutex<Vec<(String, VolumeId)>>,
    /// The users of the cell.
    pub users: UserTable,
    /// Identity, without a token, of the user with the number of a client created from now on.
    pub own: Mutex<Option<afs_venus::OwnIdentity>>,
    pub sessions: Mutex<Option<Arc<dyn afs_venus::SessionLookup>>>,
    /// How clients made from now on use the data path.
    pub data_path: Mutex<DataPathConfig>,
    /// The server's data path, if it has one.
    drive: Option<DataPathOptions>,
}

impl Cell {
    /// A running cell, whose server has no data path.
    pub fn new(seed: u64) -> Cell {
        Cell::made(seed, None)
    }

    /// The same, with a data path at port 7100, which clients use for 4 KiB and more.
    pub fn with_data_path(seed: u64, clear: bool) -> Cell {
        let listen = SocketAddr::new(SERVER.into(), 7100);
        let drive = DataPathOptions { listen, addresses: Vec::new(), clear, minimum_size: 0 };
        let cell = Cell::made(seed, Some(drive));
        let config =
            DataPathConfig { minimum_size: Some(4096), allow_clear: clear, ..DataPathConfig::default() };
        *cell.data_path.lock().unwrap() = config;
        cell
    }

    fn made(seed: u64, drive: Option<DataPathOptions>) -> Cell {
        let sim = Sim::new(seed);
        let server = sim.node("server", SERVER.into());
        let disk = sim.disk(server);
        let cell = Cell {
            sim,
            server,
            disk,
            states: Arc::new(VolumeStates::default()),
            limits: Mutex::new(Limits::default()),
            locations: Mutex::new(vec![SocketAddr::new(SERVER.into(), 7003)]),
            ids: Mutex::default(),
            users: UserTable::default(),
            own: Mutex::default(),
            sessions: Mutex::default(),
            data_path: Mutex::default(),
            drive,
        };
        cell.start_server();
        cell
    }

    pub fn start_server(&self) {
        let (world, server, disk, states) =
            (self.sim.world(), self.server, self.disk.clone(), self.states.clone());
        let (users, drive) = (self.users.clone(), self.drive.clone());
        let work = async move { serve(world, server, disk, states, users, drive).await };
        let made = self.sim.block_on(server, LIMIT, work);
        let ids = made.unwrap();
        if !ids.is_empty() {
            *self.ids.lock().unwrap() = ids;
        }
    }

    pub fn volume(&self, name: &str) -> VolumeId {
        self.ids.lock().unwrap().iter().find(|(known, _)| known == name).unwrap().1
    }

    /// Crashes and restarts the server.
    pub fn restart_server(&self) {
        self.sim.crash(self.server);
        self.sim.restart(self.server);
        self.start_server();
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
        let address = IpAddr::from([10, 0, 0, 10 + number]);
        let node = self.sim.node(&format!("client{number}"), address);
        let env = self.sim.env(node);
        let rx = self.sim.rx(
            node,
            env.clone(),
            SocketAddr::new(address, 7001),
            Default::default(),
            Default::default(),
        );
        let invalidated = RecordingSink::default();
        let config = VenusConfig {
            env: env.clone(),
            rx,
            cells: vec![CellConfig {
                name: CellName::new("test.cell").unwrap(),
                location_servers: self.locations.lock().unwrap().clone(),
                file_port: 7000,
            }],
            root,
            uuid: Uuid([number % SUCCESSOR + 1; 16]),
            cache,
            sink: Arc::new(invalidated.clone()),
            snapshots: Some(".snapshots".into()),
            sysnames: vec!["amd64_linux26".into(), "any".into()],
            limits: self.limits.lock().unwrap().clone(),
            security: afs_venus::SecurityConfig {
                own: self.own.lock().unwrap().clone(),
                sessions: self.sessions.lock().unwrap().clone(),
                callback_classes: vec![Box::new(afs_rx::NullServer), Box::new(TrustedNames)],
            },
            data_path: self.data_path.lock().unwrap().clone(),
        };
        let venus = self.sim.block_on(node, LIMIT, Venus::start(config)).unwrap()?;
        Ok(Client { venus, node, env, invalidated, world: self.sim.world() })
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

async fn serve(
    world: World,
    server: NodeId,
    disk: SimDisk,
    states: Arc<VolumeStates>,
    users: UserTable,
    data_path: Option<DataPathOptions>,
) -> Vec<(String, VolumeId)> {
    let env = world.env(server);
    let db: Arc<dyn LocationDb> = Arc::new(EmbeddedLocationDb::new(kv(&env, &disk, "db", afs_db::TABLES)));
    let drive = Arc::new(SegmentDrive::open(disk.segments("drive"), env.clone(), 8 << 20).unwrap());
    let rows = kv(&env, &disk, "index", afs_volume::TABLES);
    let store = VolumeStore::open(rows, drive, env.clone(), afs_volume::Config::default()).await.unwrap();
    env.spawn(Box::pin(store.clone().run_background()));
    let mut ids = Vec::new();
    if store.volumes().is_empty() {
        db.register(UUID, vec![SERVER]).await.unwrap();
        for (name, quota, rights) in [
            (ROOT, 0, Rights::ALL),
            (PROJ, 0, Rights::ALL),
            (SMALL, SMALL_KIB, Rights::ALL),
            (GUARDED, 0, Rights(0x09)),
            (VIDEO, 0, Rights::ALL),
        ] {
            ids.push((name.to_owned(), make_volume(&store, db.as_ref(), name, quota, rights).await));
        }
    }
    let bind = |port| {
        world.rx(
            server,
            env.clone(),
            SocketAddr::new(SERVER.into(), port),
            Default::default(),
            Default::default(),
        )
    };
    let rx = bind(7000);
    let guard = Guard::new(Arc::new(users));
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: rx.clone(),
        uuid: UUID,
        partitions: Partitions::one(store),
        guard: guard.clone(),
        states,
        limits: FileServerLimits::default(),
    });
    let classes: Vec<Box<dyn afs_rx::ServerSecurity>> =
        vec![Box::new(afs_rx::NullServer), Box::new(users::TrustedNames)];
    rx.listen_with(files.service(), classes).unwrap();
    if let Some(options) = data_path {
        files.open_data_path(&options).unwrap();
    }
    let locations = bind(7003);
    locations.listen(LocationServer::service(env.clone(), db, guard)).unwrap();
    env.spawn(Box::pin(async move {
        let _held = (rx, locations, files);
        std::future::pending::<()>().await;
    }));
    ids
}

fn kv(env: &EnvRef, disk: &SimDisk, name: &str, tables: &[&str]) -> Kv {
    Kv::open(Arc::new(disk.medium(name)), tables, env.clone(), afs_kv::Config::default()).unwrap()
}

async fn make_volume(
    store: &VolumeStore,
    db: &dyn LocationDb,
    name: &str,
    quota: u32,
    rights: Rights,
) -> VolumeId {
    let id = db.new_volume_ids(3).await.unwrap();
    let spec = VolumeSpec {
        id,
        name: VolumeName::new(name).unwrap(),
        owner: ViceId(1),
        max_quota: quota,
        kind: afs_wire::ids::VolumeKind::ReadWrite,
        parent: id,
        root: Some(Acl::new(vec![(ViceId::ANYUSER, rights)], Vec::new()).unwrap()),
    };
    store.create_volume(spec).await.unwrap();
    let site = ProposedSite { address: SERVER, partition: 0, flags: i32::from(site_flags::READ_WRITE) };
    let proposal = Proposal {
        name: name.to_owned(),
        ids: [id, VolumeId(0), VolumeId(0)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site],
    };
    db.create(proposal).await.unwrap();
    id
}

/// An operation as a named type.
pub type Work = std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>>;
