//! A cell in a simulated world: databases on one machine, volume servers on others, a tool, a client that writes.

mod volumes;

pub use volumes::{Append, Disk, DiskVolume, Implementation, address, head, row};

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_admin::journal::Holder;
use afs_admin::{Admin, AdminResult, Cell, CellJournal, Resumer};
use afs_db::{EmbeddedLocationDb, EmbeddedOperationsDb};
use afs_kv::Kv;
use afs_rpc::{CallOptions, EnvExt, EnvRef, Identity, Limits, Rx, Security};
use afs_server::location::LocationServer;
use afs_server::subject::{NameService, Pending};
use afs_server::{Guard, JournalServer, Subject};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim};
use afs_wire::ids::{KindNumber, ViceId, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{Entry, GetEntryByIdN, SiteFlags};
use volumes::VolumeModel;

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

/// Machines.
pub struct World {
    pub sim: Sim,
    implementation: Implementation,
    databases: NodeId,
    database_disk: SimDisk,
    /// Volume servers, from 10.0.0.2 on.
    pub servers: Vec<(NodeId, Disk)>,
    pub tool: NodeId,
    client: NodeId,
    /// Acknowledged numbers.
    pub acknowledged: Arc<Mutex<BTreeSet<u64>>>,
    /// Time between two of the client's writes, in milliseconds.
    pause: Arc<AtomicU64>,
}

const SECONDS: fn(u64) -> Duration = Duration::from_secs;
const BUSY_MS: u64 = 20;
const CALM_MS: u64 = 300;

impl World {
    /// A cell with everything running.
    pub fn new(seed: u64, servers: u8, implementation: Implementation) -> Self {
        let sim = Sim::new(seed);
        let databases = sim.node("databases", address(1).into());
        let database_disk = sim.disk(databases);
        let node = |last: u8| sim.node(&format!("server{last}"), address(last).into());
        let servers = (0..servers).map(|n| (node(2 + n), Disk::default())).collect();
        let tool = sim.node("tool", address(100).into());
        let client = sim.node("client", address(101).into());
        let (acknowledged, pause) = (Arc::default(), Arc::new(AtomicU64::new(BUSY_MS)));
        let world = Self {
            implementation,
            sim,
            databases,
            database_disk,
            servers,
            tool,
            client,
            acknowledged,
            pause,
        };
        world.start_databases();
        (0..world.servers.len()).for_each(|n| world.start_server(n, false));
        world
    }

    fn rx(&self, node: NodeId, last: u8, port: u16) -> (EnvRef, Rx) {
        let env = self.sim.env(node);
        let at = SocketAddr::new(address(last).into(), port);
        let rx = self.sim.rx(node, env.clone(), at, afs_rx::Config::default(), Limits::default());
        (env, rx)
    }

    fn start_databases(&self) {
        let (env, rx) = self.rx(self.databases, 1, 7003);
        let config =
            afs_kv::Config { log_bytes: 64 << 10, cache_bytes: 1 << 20, ..afs_kv::Config::default() };
        let medium = Arc::new(self.database_disk.medium("db"));
        let kv = Kv::open(medium, afs_db::TABLES, env.clone(), config).expect("the databases open");
        let guard = Guard::new(Arc::new(AllAdministrators));
        let location = Arc::new(EmbeddedLocationDb::new(kv.clone()));
        rx.listen(LocationServer::service(env.clone(), location, guard.clone())).unwrap();
        rx.listen(JournalServer::service(env.clone(), Arc::new(EmbeddedOperationsDb::new(kv)), guard))
            .unwrap();
        let resumer = Resumer::new(admin_of(&env, rx, "resumer"));
        env.spawn(Box::pin(resumer.run()));
    }

    fn start_server(&self, index: usize, again: bool) {
        let Some((node, disk)) = self.servers.get(index) else { return };
        let (env, rx) = self.rx(*node, 2 + index as u8, 7005);
        let service =
            VolumeModel::service(self.implementation, env.clone(), rx.downgrade(), disk.clone(), again);
        rx.listen(service).unwrap();
        env.spawn(Box::pin(async move {
            let _held = rx;
            std::future::pending::<()>().await;
        }));
    }

    /// Restarts a machine, with its services. The tool is not restarted.
    pub fn restart(&self, node: NodeId) {
        self.sim.restart(node);
        if node == self.databases {
            self.start_databases();
        }
        if let Some(index) = self.servers.iter().position(|(id, _)| *id == node) {
            self.start_server(index, true);
        }
    }

    /// The machines that can crash.
    pub fn victims(&self) -> Vec<NodeId> {
        self.servers.iter().map(|(node, _)| *node).chain([self.tool, self.databases]).collect()
    }

    /// The tool's handle.
    pub fn admin(&self) -> Admin {
        let (env, rx) = self.rx(self.tool, 100, 7009);
        admin_of(&env, rx, "tool")
    }

    /// Runs an operation to its end, on a machine that does not crash.
    pub fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Admin) -> F) -> T
    where
        F: Future<Output = AdminResult<T>> + Send + 'static,
    {
        let (env, rx) = self.rx(self.client, 101, 7009);
        let done = self.sim.block_on(self.client, SECONDS(120), work(admin_of(&env, rx, "somebody")));
        done.expect("an end").expect("success")
    }

    /// A client that adds numbers to a volume for ever, at its site in the location database.
    pub fn write(&self, volume: VolumeId) {
        let (env, rx) = self.rx(self.client, 101, 7001);
        let (acknowledged, pause) = (self.acknowledged.clone(), self.pause.clone());
        self.sim.env(self.client).spawn(Box::pin(async move {
            let patience = CallOptions { dead: Some(SECONDS(6)), hard: None };
            let call =
                |at: SocketAddr, service| rx.connection(at, service, Security::null()).with_options(patience);
            let databases = call(SocketAddr::from((address(1), 7003)), ServiceId::LOCATION);
            for number in 0u64.. {
                loop {
                    let asked = databases.call(&GetEntryByIdN { volume, kind: KindNumber::ANY }).await;
                    let home = asked.ok().and_then(|r| home(&r.entry));
                    let Some(home) = home else {
                        env.sleep(SECONDS(1)).await;
                        continue;
                    };
                    let server = call(SocketAddr::from((home, 7005)), ServiceId::VOLUME);
                    if server.call(&Append { volume, number }).await.is_ok() {
                        acknowledged.lock().unwrap().insert(number);
                        break;
                    }
                    env.sleep(Duration::from_millis(500)).await;
                }
                env.sleep(Duration::from_millis(pause.load(Ordering::Relaxed))).await;
            }
        }));
    }

    /// Makes the client write less often: much time passes idle until a lease expires.
    pub fn calm(&self) {
        self.pause.store(CALM_MS, Ordering::Relaxed);
    }

    /// The volumes of a server, except strangers'.
    pub fn disk(&self, server: usize) -> BTreeMap<VolumeId, DiskVolume> {
        volumes::without_strangers(self.servers[server].1.lock().unwrap().clone())
    }

    /// The entry of a volume that must exist.
    pub fn entry(&self, volume: VolumeId) -> Entry {
        self.find_entry(volume).expect("an entry")
    }

    /// The entry of a volume.
    pub fn find_entry(&self, volume: VolumeId) -> Option<Entry> {
        let env = self.sim.env(self.client);
        let at = SocketAddr::new(address(101).into(), 7002);
        let rx = self.sim.rx(self.client, env, at, afs_rx::Config::default(), Limits::default());
        let databases = SocketAddr::from((address(1), 7003));
        let connection = rx.connection(databases, ServiceId::LOCATION, Security::null());
        let asked = async move { connection.call(&GetEntryByIdN { volume, kind: KindNumber::ANY }).await };
        self.sim.block_on(self.client, SECONDS(60), asked).expect("an answer").ok().map(|reply| reply.entry)
    }

    /// Waits until no operation is in the journal.
    pub fn wait_until_quiet(&self, limit: Duration) {
        let env = self.sim.env(self.client);
        let at = SocketAddr::new(address(101).into(), 7004);
        let rx = self.sim.rx(self.client, env.clone(), at, afs_rx::Config::default(), Limits::default());
        let admin = admin_of(&env, rx, "asker");
        let quiet = async move {
            loop {
                if admin.operations().await.is_ok_and(|open| open.is_empty()) {
                    return;
                }
                env.sleep(SECONDS(2)).await;
            }
        };
        if let Err(hang) = self.sim.block_on(self.client, limit, quiet) {
            panic!("an operation does not end: {hang}");
        }
    }
}

/// The site of the read-write volume in an entry.
pub fn home(entry: &Entry) -> Option<std::net::Ipv4Addr> {
    entry.sites.iter().find(|s| s.flags.contains(SiteFlags::RW_VOLUME)).map(|s| s.server)
}

fn admin_of(env: &EnvRef, rx: Rx, who: &str) -> Admin {
    let cell = Cell::new(&[address(1)], 7000);
    let journal = Arc::new(CellJournal::new(env.clone(), &rx, &Security::null(), &cell));
    let holder = Holder { who: who.into(), host: who.into(), pid: 1 };
    Admin::new(env.clone(), rx, Security::null(), cell, journal, holder)
}
