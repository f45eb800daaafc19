//! The cell: one server machine with a disk, and client machines, in a simulated world.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_db::{EmbeddedLocationDb, LocationDb, Proposal, ProposedSite, entry_flags, site_flags};
use afs_drive::SegmentDrive;
use afs_kv::Kv;
use afs_rpc::{EnvRef, Limits};
use afs_server::location::LocationServer;
use afs_server::subject::BuiltInNames;
use afs_server::{FileServer, FileServerConfig, FileServerLimits, Guard, Partitions, VolumeStates};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim};
use afs_venus::cache::MemoryCache;
use afs_venus::{CellConfig, NoSink, RootKind, Venus, VenusConfig};
use afs_volume::{VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::ids::{CellName, Rights, UnixSeconds, Uuid, ViceId, VolumeId, VolumeName};

use super::history::History;
use super::user::User;

/// A cell of one server in a world.
pub struct Cell {
    /// The world.
    pub sim: Sim,
    /// The server machine.
    pub server: NodeId,
    /// Its disk.
    pub disk: SimDisk,
}

/// Something could not be brought up.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

impl Cell {
    /// A world with a server machine that has not been started.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let server = sim.node("server", SERVER.into());
        let disk = sim.disk(server);
        Self { sim, server, disk }
    }

    /// Starts the servers of the machine on what its disk holds; on an empty disk a cell is made, with one volume in
    /// which anybody may do anything.
    ///
    /// # Errors
    /// The disk fails while they start.
    pub async fn start_server(world: afs_sim::World, server: NodeId, disk: SimDisk) -> Result<(), Trouble> {
        let env = world.env(server);
        let rows = index(&env, &disk, "index", afs_volume::TABLES)?;
        let db: Arc<dyn LocationDb> =
            Arc::new(EmbeddedLocationDb::new(index(&env, &disk, "db", afs_db::TABLES)?));
        let blocking = env.clone();
        let runner = Arc::new(move |job: afs_drive::Job| blocking.blocking(job));
        let drive = Arc::new(SegmentDrive::open(disk.segments("drive"), runner, SEGMENT_BYTES)?);
        let clock = env.clone();
        let config = afs_volume::Config::new(move || UnixSeconds(clock.wall().secs_u32()));
        let store = VolumeStore::open(rows, drive, config).await?;
        env.spawn(Box::pin(store.clone().run_background()));
        let sweeping = store.clone();
        env.spawn(Box::pin(async move {
            // An error here is a disk that has failed, which the next change to the store says too.
            let _ = sweeping.sweep().await;
        }));
        if store.volumes().is_empty() {
            make_volume(&store, db.as_ref()).await?;
        }
        serve(&world, server, &env, store, db)
    }

    /// Starts the servers, and waits until they have.
    ///
    /// # Panics
    /// If they cannot be.
    pub fn start(&self) {
        let start = Self::start_server(self.sim.world(), self.server, self.disk.clone());
        let started =
            self.sim.block_on(self.server, START, async move { start.await.map_err(|e| e.to_string()) });
        if let Err(error) = started.map_err(|hang| hang.to_string()).and_then(|started| started) {
            panic!("the server does not start: {error}");
        }
    }

    /// A client machine with an empty cache, and a user at it.
    ///
    /// # Panics
    /// If the cell cannot be reached.
    pub fn user(&self, number: usize, history: &History) -> User {
        let last = u8::try_from(10 + number).unwrap_or(255);
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let node = self.sim.node(&format!("client{number}"), address);
        let env = self.sim.env(node);
        let rx = self.sim.rx(
            node,
            env.clone(),
            SocketAddr::new(address, 7001),
            afs_rx::Config::default(),
            Limits::default(),
        );
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
            cache: Arc::new(MemoryCache::new(CACHE_BYTES)),
            sink: Arc::new(NoSink),
            snapshots: Some(".snapshots".into()),
            sysnames: Vec::new(),
            limits: afs_venus::Limits::default(),
            security: afs_venus::SecurityConfig::default(),
        };
        let started = self.sim.block_on(node, START, Venus::start(config));
        match started {
            Ok(Ok(venus)) => User { number, venus, env, history: history.clone(), node },
            Ok(Err(error)) => panic!("client {number} does not start: {error}\n{}", self.sim.log_tail(60)),
            Err(hang) => panic!("client {number} does not start: {hang}"),
        }
    }
}

fn index(env: &EnvRef, disk: &SimDisk, name: &str, tables: &[&str]) -> Result<Kv, Trouble> {
    let env = env.clone();
    let runner = Arc::new(move |job: afs_kv::Job| env.blocking(job));
    let config = afs_kv::Config { log_bytes: LOG_BYTES, cache_bytes: 1 << 20, ..afs_kv::Config::default() };
    Ok(Kv::open(Arc::new(disk.medium(name)), tables, runner, config)?)
}

async fn make_volume(store: &VolumeStore, db: &dyn LocationDb) -> Result<(), Trouble> {
    db.register(SERVER_UUID, vec![SERVER]).await?;
    let id = match db.entry(afs_db::EntryKey::Name(VOLUME.to_owned())).await {
        Ok(located) => located.entry.ids[0],
        Err(_) => enter_volume(db).await?,
    };
    let spec = VolumeSpec {
        id,
        name: volume_name(),
        owner: ViceId(1),
        max_quota: 0,
        kind: afs_wire::ids::VolumeKind::ReadWrite,
        parent: id,
        root: Some(Acl::new(vec![(ViceId::ANYUSER, Rights::ALL)], Vec::new())?),
    };
    store.create_volume(spec).await?;
    Ok(())
}

async fn enter_volume(db: &dyn LocationDb) -> Result<VolumeId, Trouble> {
    let id = db.new_volume_ids(3).await?;
    let site = ProposedSite { address: SERVER, partition: 0, flags: i32::from(site_flags::READ_WRITE) };
    let proposal = Proposal {
        name: VOLUME.to_owned(),
        ids: [id, VolumeId(0), VolumeId(0)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site],
    };
    db.create(proposal).await?;
    Ok(id)
}

fn serve(
    world: &afs_sim::World,
    server: NodeId,
    env: &EnvRef,
    store: VolumeStore,
    db: Arc<dyn LocationDb>,
) -> Result<(), Trouble> {
    let bind = |port| {
        let address = SocketAddr::new(SERVER.into(), port);
        world.rx(server, env.clone(), address, afs_rx::Config::default(), Limits::default())
    };
    let rx = bind(7000);
    let guard = Guard::new(Arc::new(BuiltInNames::default()));
    // A network that loses datagrams must not make the server think a client away: it would let others read old data.
    let mut limits = FileServerLimits::default();
    limits.patience.breaking = Duration::from_secs(30);
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: rx.clone(),
        uuid: SERVER_UUID,
        partitions: Partitions::one(store),
        guard: guard.clone(),
        states: Arc::new(VolumeStates::default()),
        limits,
    });
    rx.listen(files.service())?;
    let locations = bind(7003);
    locations.listen(LocationServer::service(env.clone(), db, guard))?;
    // For as long as this life of the machine lasts.
    env.spawn(Box::pin(async move {
        let _held = (rx, locations, files);
        std::future::pending::<()>().await;
    }));
    Ok(())
}

fn cell_name() -> CellName {
    CellName::new("sim.test").unwrap_or_else(|error| panic!("{error}"))
}

fn volume_name() -> VolumeName {
    VolumeName::new(VOLUME).unwrap_or_else(|error| panic!("{error}"))
}

const VOLUME: &str = "root.cell";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER_UUID: Uuid = Uuid([0x5e; 16]);
/// Small, so that checkpoints fall into every run.
const LOG_BYTES: u64 = 64 << 10;
const SEGMENT_BYTES: u64 = 1 << 20;
const CACHE_BYTES: u64 = 16 << 20;
/// Virtual time.
const START: Duration = Duration::from_secs(300);
