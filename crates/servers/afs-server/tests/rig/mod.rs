//! Test kit: a server and its clients in one simulated world, real services over a simulated network.
#![allow(dead_code, unused_imports, clippy::unwrap_used)] // Each test uses a part of this.

mod client;
pub mod drive;
pub mod far;
mod heard;
pub mod leasing;
pub mod people;
pub mod recorder;
mod tokens;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_db::EmbeddedLocationDb;
use afs_drive::MemoryDrive;
use afs_kv::Kv;
use afs_rpc::Parts;
use afs_rpc::{Rx, Service};
use afs_rx::NullServer;
use afs_server::{
    Audit, AuditOptions, CellSpec, FileServer, FileServerConfig, FileServerLimits, FirstVolumes, Guard,
    LocationServer, Partitions, SharedPolicy, VolumeServer, VolumeStates, VoteServer, bootstrap,
};
use afs_sim::crash::{CrashDisk, Rng};
use afs_sim::{NodeId, Sim, World};
use afs_testkit::net::endpoint;
pub use afs_testkit::{BAD_PROOF, Claim, ClaimServer, WORD};
use afs_volume::{Config, VolumeStore};
use afs_wire::ids::{CellName, DataVersion, Fid, PartitionId, UnixSeconds, Uuid, VolumeId};

pub use client::{CallResult, Client, mode, name};
pub use heard::{Heard, Manner, OnRecall};
pub use people::People;
pub use recorder::Recorder;
pub use tokens::Tokens;

/// Longer than any wait of a test, in virtual time.
pub const PATIENCE: Duration = Duration::from_secs(600);
pub const SERVER_UUID: Uuid = Uuid([0x5e; 16]);
pub const SERVER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const FILES: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_IP), 7000);
pub const LOCATIONS: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_IP), 7003);
pub const VOLUMES: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_IP), 7005);
pub const OWNER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7001);

/// One cell with one server.
pub struct Cell {
    pub sim: Sim,
    pub server: NodeId,
    pub volumes: FirstVolumes,
    pub drive: Arc<MemoryDrive>,
    pub people: Arc<People>,
    pub policy: SharedPolicy,
    pub recorder: Arc<Recorder>,
    audit: AuditOptions,
    pub tokens: Tokens,
    /// That of the index.
    disk: CrashDisk,
    limits: FileServerLimits,
    /// Always present, except during a restart.
    live: Option<Started>,
}

impl Cell {
    /// A new cell whose root directory gives all rights to all users.
    pub fn new(seed: u64) -> Self {
        Cell::with(seed, FileServerLimits::default(), "rlidwka")
    }

    pub fn with(seed: u64, limits: FileServerLimits, anyuser: &str) -> Self {
        let sim = Sim::new(seed);
        let server = sim.node("server", IpAddr::V4(SERVER_IP));
        let disk = CrashDisk::new();
        let drive = Arc::new(MemoryDrive::in_memory(1 << 30));
        let (people, policy, recorder) = <(Arc<People>, SharedPolicy, Arc<Recorder>)>::default();
        let tokens = Tokens::new(sim.env(server));
        let mut cell = Cell {
            volumes: FirstVolumes { root_afs: VolumeId(0), root_cell: VolumeId(0) },
            live: None,
            sim,
            server,
            drive,
            people,
            policy,
            recorder,
            audit: AuditOptions::default(),
            tokens,
            disk,
            limits,
        };
        cell.start(anyuser);
        cell
    }

    pub fn files(&self) -> &Arc<FileServer> {
        &self.live.as_ref().unwrap().files
    }

    pub fn partitions(&self) -> &Partitions {
        &self.live.as_ref().unwrap().partitions
    }

    /// The version of a file on the server's disks.
    pub fn version(&self, fid: Fid) -> DataVersion {
        let live = self.live.as_ref().unwrap();
        live.partitions.volume(fid.volume).unwrap().fetch(fid).unwrap().data_version
    }

    /// Bytes that the server's drive holds.
    pub fn bytes_on_drive(&self) -> u64 {
        use afs_drive::Drive;
        let usage = self.drive.usage().unwrap();
        usage.total - usage.free
    }

    /// The volume service.
    pub fn volume_server(&self) -> Arc<VolumeServer> {
        self.live.as_ref().unwrap().volume_server.clone()
    }

    /// Ends the server process and starts it again on the same disks.
    pub fn restart(&mut self) {
        self.stop();
        self.start("rlidwka");
    }

    /// The disk of the index fails after so many writes and syncs.
    pub fn fail_after(&self, changes: u64) {
        self.disk.crash_after(changes);
    }

    /// Ends the server process by a power failure, which leaves of the index what it may, and starts it again.
    pub fn restart_after_power_failure(&mut self, rng: &mut Rng) {
        self.stop();
        self.disk = self.disk.image(rng);
        self.start("rlidwka");
    }

    fn stop(&mut self) {
        // The old store must be gone before the new one opens the same disk.
        let old = self.live.take().map(|live| Arc::downgrade(&live.files)).unwrap();
        self.sim.restart(self.server);
        assert_eq!(old.strong_count(), 0, "something keeps the old server alive");
    }

    /// The first work of an orderly stop, while calls are served.
    pub fn recall_leases(&self) {
        let files = self.files().clone();
        self.sim.block_on(self.server, PATIENCE, async move { files.recall_leases().await }).unwrap();
    }

    /// The file server's work at an orderly stop.
    pub fn settle(&self) {
        let files = self.live.as_ref().unwrap().files.clone();
        self.sim.block_on(self.server, PATIENCE, async move { files.settle().await }).unwrap();
    }

    /// Starts the server again, to record what is read, too.
    pub fn restart_with_reads_recorded(&mut self) {
        self.audit.everything = true;
        self.restart();
    }

    fn start(&mut self, anyuser: &str) {
        let live = start(self, anyuser);
        self.volumes = live.volumes;
        self.live = Some(live);
    }

    /// Name service, policy and audit log of the servers.
    fn guard(&self) -> Guard {
        let audit = Audit::new(self.sim.env(self.server), self.recorder.clone(), self.audit);
        Guard::new(self.people.clone()).with_policy(self.policy.clone()).with_audit(audit)
    }

    /// Records since the last call.
    pub fn recorded(&self) -> Vec<String> {
        let audit = self.live.as_ref().unwrap().guard.audit().clone();
        self.sim.block_on(self.server, PATIENCE, async move { audit.flush().await }).unwrap();
        self.recorder.take()
    }

    pub fn world(&self) -> World {
        self.sim.world()
    }

    /// The root directory of the cell.
    pub fn root(&self) -> Fid {
        Fid::root(self.volumes.root_cell)
    }

    /// A client on a machine of its own, which calls from port 7001.
    pub fn client(&self, number: u8) -> Client {
        let address = SocketAddr::from(([10, 0, 0, 100 + number], 7001));
        self.client_at(address, Uuid([number; 16]), Manner::Modern)
    }

    pub fn client_at(&self, address: SocketAddr, uuid: Uuid, manner: Manner) -> Client {
        Client::new(self.world(), address, uuid, manner)
    }

    /// The cell's own process, which the server trusts.
    pub fn owner(&self) -> Client {
        self.client_at(OWNER, Uuid([0xaa; 16]), Manner::Modern)
    }
}

struct Started {
    files: Arc<FileServer>,
    guard: Guard,
    volumes: FirstVolumes,
    partitions: Partitions,
    volume_server: Arc<VolumeServer>,
    /// Dropping an endpoint closes its port.
    endpoints: Vec<Rx>,
}

fn start(cell: &Cell, anyuser: &str) -> Started {
    let Cell { sim, server, disk, drive, limits, .. } = cell;
    let (server, limits) = (*server, *limits);
    let env = sim.env(server);
    let tables = [afs_volume::TABLES, afs_db::TABLES].concat();
    let kv = Kv::open(Arc::new(disk.clone()), &tables, Parts::inline(), afs_kv::Config::default()).unwrap();
    let db = Arc::new(EmbeddedLocationDb::new(kv.clone()));
    let spec = CellSpec {
        cell: CellName::new("test.cell").unwrap(),
        server: SERVER_UUID,
        addresses: vec![SERVER_IP],
        partition: PartitionId(0),
        anyuser: anyuser.parse().unwrap(),
        quota: 0,
    };
    let (within, drive, place) = (env.clone(), drive.clone(), db.clone());
    let opening = async move {
        let store = VolumeStore::open(kv, drive, within, Config::default()).await.unwrap();
        let partitions = Partitions::one(store);
        let volumes = bootstrap(&*place, &partitions, &spec).await.unwrap();
        (partitions, volumes)
    };
    let (partitions, volumes) = sim.block_on(server, PATIENCE, opening).unwrap();
    let bind = |address| {
        let rx = endpoint(sim, server, address);
        rx.trust(OWNER).unwrap();
        rx
    };
    let (files_rx, locations_rx, volumes_rx) = (bind(FILES), bind(LOCATIONS), bind(VOLUMES));
    let states = Arc::new(VolumeStates::default());
    let guard = cell.guard();
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: files_rx.clone(),
        uuid: SERVER_UUID,
        partitions: partitions.clone(),
        guard: guard.clone(),
        states: states.clone(),
        limits,
    });
    offer(cell, &files_rx, files.service());
    offer(cell, &locations_rx, LocationServer::service(env.clone(), db, guard.clone()));
    locations_rx.listen(VoteServer::service(env.clone(), LOCATIONS)).unwrap();
    let volume_server =
        VolumeServer::new(env, partitions.clone(), states, files.clients().clone(), guard.clone());
    volume_server.use_data_path(&files);
    volume_server.reach_peers(&volumes_rx, Arc::new(|| Claim::of_key().security()));
    offer(cell, &volumes_rx, volume_server.service());
    let endpoints = vec![files_rx, locations_rx, volumes_rx];
    Started { files, guard, volumes, partitions, volume_server, endpoints }
}

/// Offers a service over rxnull, over claims, or over tokens.
fn offer(cell: &Cell, rx: &Rx, service: Arc<dyn Service>) {
    let mut classes = cell.tokens.classes();
    classes.push(Box::new(NullServer));
    classes.push(Box::new(ClaimServer(WORD.into())));
    rx.listen_with(service, classes).unwrap();
}
