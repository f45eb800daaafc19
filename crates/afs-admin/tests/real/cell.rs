//! A cell in a simulated world whose file servers are the real ones, with two partitions each on disks that crash.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_admin::journal::Holder;
use afs_admin::{Admin, AdminResult, Cell as Servers, CellJournal, Resumer, ServerPartition};
use afs_db::{EmbeddedLocationDb, EmbeddedOperationsDb};
use afs_drive::SegmentDrive;
use afs_kv::Kv;
use afs_rpc::{EnvExt, EnvRef, Identity, Limits, Rx, Security};
use afs_server::location::LocationServer;
use afs_server::subject::{NameService, Pending};
use afs_server::{
    FileServer, FileServerConfig, FileServerLimits, Guard, JournalServer, Partitions, Subject, VolumeServer,
    VolumeStates,
};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim};
use afs_volume::VolumeStore;
use afs_wire::ids::{KindNumber, PartitionId, Uuid, ViceId, VolumeId};
use afs_wire::rpc::Request;
use afs_wire::vl::{DeleteEntry, RegisterAddrs};
use afs_wire::xdr::BoundedVec;

/// Every caller is an administrator: permissions have other tests.
struct AllAdministrators;

impl NameService for AllAdministrators {
    fn subject<'a>(&'a self, _: &'a Identity, _: IpAddr) -> Pending<'a, Subject> {
        Box::pin(std::future::ready(Ok(Subject::administrator())))
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        Box::pin(std::future::ready(Ok(vec![None; names.len()])))
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        Box::pin(std::future::ready(Ok(vec![None; ids.len()])))
    }
}

type Stores = BTreeMap<PartitionId, VolumeStore>;

/// A file server's machine.
struct Server {
    node: NodeId,
    disk: SimDisk,
    /// Of its present process.
    stores: Arc<Mutex<Stores>>,
}

/// The machines.
pub struct Cell {
    pub sim: Sim,
    databases: NodeId,
    database_disk: SimDisk,
    servers: Vec<Server>,
    pub tool: NodeId,
}

const SECONDS: fn(u64) -> Duration = Duration::from_secs;
const PARTITIONS: [PartitionId; 2] = [PartitionId(0), PartitionId(1)];

/// Address of a machine: 1 has the databases, 2 and on are file servers.
pub fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// A partition of a file server, both counted from 0.
pub fn place(server: u8, partition: u8) -> ServerPartition {
    ServerPartition::new(address(2 + server), PartitionId(partition))
}

impl Cell {
    /// A cell with everything running.
    pub fn new(seed: u64, servers: u8) -> Self {
        let sim = Sim::new(seed);
        let databases = sim.node("databases", address(1).into());
        let database_disk = sim.disk(databases);
        let server = |n: u8| {
            let node = sim.node(&format!("server{n}"), address(2 + n).into());
            Server { node, disk: sim.disk(node), stores: Arc::default() }
        };
        let servers = (0..servers).map(server).collect();
        let tool = sim.node("tool", address(100).into());
        let cell = Self { sim, databases, database_disk, servers, tool };
        cell.start_databases();
        (0..cell.servers.len()).for_each(|n| cell.start_server(n));
        for server in 0..cell.servers.len() {
            let last = 2 + server as u8;
            let addresses = BoundedVec::first_of([address(last)]);
            cell.tell_databases(RegisterAddrs { uuid: Uuid([last; 16]), spare: 0, addresses });
        }
        cell
    }

    /// One call to the location service that must succeed.
    fn tell_databases<R: Request + Send + Sync + 'static>(&self, request: R)
    where
        R::Reply: Send,
    {
        let env = self.sim.env(self.tool);
        let rx = bind(&self.sim.world(), self.tool, &env, address(100), 0);
        let databases = rx.connection(SocketAddr::from((address(1), 7003)), R::SERVICE, Security::null());
        let told = async move { databases.call(&request).await.map(drop) };
        self.sim.block_on(self.tool, SECONDS(60), told).expect("an answer").expect("it is done");
    }

    fn start_databases(&self) {
        let env = self.sim.env(self.databases);
        let rx = bind(&self.sim.world(), self.databases, &env, address(1), 7003);
        let kv = index(&env, &self.database_disk, "db", afs_db::TABLES);
        let guard = Guard::new(Arc::new(AllAdministrators));
        let location = Arc::new(EmbeddedLocationDb::new(kv.clone()));
        rx.listen(LocationServer::service(env.clone(), location, guard.clone())).unwrap();
        rx.listen(JournalServer::service(env.clone(), Arc::new(EmbeddedOperationsDb::new(kv)), guard))
            .unwrap();
        env.spawn(Box::pin(Resumer::new(admin_of(&env, rx, "resumer")).run()));
    }

    fn start_server(&self, index: usize) {
        let Server { node, disk, stores } = &self.servers[index];
        let (world, node, last) = (self.sim.world(), *node, 2 + index as u8);
        let (disk, kept) = (disk.clone(), stores.clone());
        let start = async move {
            let env = world.env(node);
            let mut stores = Stores::new();
            for partition in PARTITIONS {
                stores.insert(partition, open(&env, &disk, partition).await);
            }
            *kept.lock().unwrap() = stores.clone();
            serve(&world, node, &env, last, Partitions::new(stores));
        };
        self.sim.block_on(node, SECONDS(300), start).expect("a server starts");
    }

    /// Crashes a machine and restarts it some seconds later, with its services. The tool is not restarted.
    pub fn crash(&self, node: NodeId) {
        self.sim.crash(node);
        self.sim.run_for(SECONDS(4));
        if node == self.tool {
            return;
        }
        self.sim.restart(node);
        match self.servers.iter().position(|s| s.node == node) {
            Some(index) => self.start_server(index),
            None => self.start_databases(),
        }
    }

    /// Crashes a file server's machine for good.
    pub fn lose(&self, server: usize) {
        self.sim.crash(self.servers[server].node);
    }

    /// The machines that can crash: file servers, tool, databases.
    pub fn victims(&self) -> Vec<NodeId> {
        self.servers.iter().map(|s| s.node).chain([self.tool, self.databases]).collect()
    }

    /// The tool's handle.
    pub fn admin(&self) -> Admin {
        let env = self.sim.env(self.tool);
        let rx = bind(&self.sim.world(), self.tool, &env, address(100), 0);
        admin_of(&env, rx, "tool")
    }

    /// Runs the tool's work to its end.
    pub fn run<T, W, F>(&self, work: W) -> AdminResult<T>
    where
        T: Send + 'static,
        W: FnOnce(Admin) -> F,
        F: Future<Output = AdminResult<T>> + Send + 'static,
    {
        let work = work(self.admin());
        self.sim.block_on(self.tool, SECONDS(1200), work).expect("an answer")
    }

    /// Deletes an entry from the location database, and nothing else.
    pub fn lose_entry(&self, volume: VolumeId) {
        self.tell_databases(DeleteEntry { volume, kind: KindNumber::ANY });
    }

    /// The store of a site in the present process of its server.
    pub fn store(&self, place: ServerPartition) -> VolumeStore {
        let index = usize::from(place.server.octets()[3]) - 2;
        let partition = place.partition.check().unwrap();
        self.servers[index].stores.lock().unwrap()[&partition].clone()
    }

    /// Runs work on a file server's machine.
    pub fn on_server<T: Send + 'static>(
        &self,
        place: ServerPartition,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let index = usize::from(place.server.octets()[3]) - 2;
        self.sim.block_on(self.servers[index].node, SECONDS(300), work).expect("an answer")
    }

    /// The ids of the volumes at a site.
    pub fn volumes(&self, place: ServerPartition) -> Vec<VolumeId> {
        self.store(place).volumes().iter().map(|v| v.id()).collect()
    }

    /// Waits until no operation is in progress. Asks from the databases' machine, because the tool may be
    /// dead.
    pub fn wait_until_quiet(&self) {
        let env = self.sim.env(self.databases);
        let rx = bind(&self.sim.world(), self.databases, &env, address(1), 0);
        let admin = admin_of(&env, rx, "asker");
        let quiet = async move {
            while !admin.operations().await.is_ok_and(|open| open.is_empty()) {
                env.sleep(SECONDS(2)).await;
            }
        };
        if let Err(hang) = self.sim.block_on(self.databases, SECONDS(1200), quiet) {
            panic!("an operation does not end: {hang}\n{}", self.sim.log_tail(40));
        }
    }
}

fn bind(world: &afs_sim::World, node: NodeId, env: &EnvRef, at: Ipv4Addr, port: u16) -> Rx {
    // 0: an unused port.
    let port = if port == 0 { world.fork_rng().between(20_000, 60_000) as u16 } else { port };
    world.rx(
        node,
        env.clone(),
        SocketAddr::new(at.into(), port),
        afs_rx::Config::default(),
        Limits::default(),
    )
}

fn index(env: &EnvRef, disk: &SimDisk, name: &str, tables: &'static [&'static str]) -> Kv {
    let config = afs_kv::Config { log_bytes: 64 << 10, cache_bytes: 1 << 20, ..afs_kv::Config::default() };
    Kv::open(Arc::new(disk.medium(name)), tables, env.clone(), config).expect("the index opens")
}

async fn open(env: &EnvRef, disk: &SimDisk, partition: PartitionId) -> VolumeStore {
    let rows = index(env, disk, &format!("index{}", partition.0), afs_volume::TABLES);
    let segments = disk.segments(&format!("drive{}", partition.0));
    let drive = Arc::new(SegmentDrive::open(segments, env.clone(), 1 << 20).expect("the drive opens"));
    let config = afs_volume::Config::default();
    let store = VolumeStore::open(rows, drive, env.clone(), config).await.expect("the store opens");
    env.spawn(Box::pin(store.clone().run_background()));
    store
}

fn serve(world: &afs_sim::World, node: NodeId, env: &EnvRef, last: u8, partitions: Partitions) {
    let (rx, volumes) =
        (bind(world, node, env, address(last), 7000), bind(world, node, env, address(last), 7005));
    let guard = Guard::new(Arc::new(AllAdministrators));
    let states = Arc::new(VolumeStates::default());
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: rx.clone(),
        uuid: Uuid([last; 16]),
        partitions: partitions.clone(),
        guard: guard.clone(),
        states: states.clone(),
        limits: FileServerLimits::default(),
    });
    rx.listen(files.service()).unwrap();
    let service = VolumeServer::new(env.clone(), partitions, states, files.clients().clone(), guard);
    service.reach_peers(&volumes, Arc::new(Security::null));
    volumes.listen(service.service()).unwrap();
    // For as long as this machine is up.
    env.spawn(Box::pin(async move {
        let _held = (rx, volumes, files, service);
        std::future::pending::<()>().await;
    }));
}

fn admin_of(env: &EnvRef, rx: Rx, who: &str) -> Admin {
    let cell = Servers::new(&[address(1)], 7000);
    let journal = Arc::new(CellJournal::new(env.clone(), &rx, &Security::null(), &cell));
    let holder = Holder { who: who.into(), host: who.into(), pid: 1 };
    Admin::new(env.clone(), rx, Security::null(), cell, journal, holder)
}
