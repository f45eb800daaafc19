//! A cell in a simulated world: databases on one machine, volume servers on others, a tool, a client that writes.

mod volumes;

pub use volumes::{Append, Disk, DiskVolume, Implementation, address, head, row};

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_admin::{Admin, AdminResult};
use afs_rpc::{CallOptions, EnvExt, EnvRef, Rx, Security};
use afs_sim::{NodeId, Sim};
use afs_testkit::administrator::{admin, no_operation_is_open};
use afs_testkit::net::{endpoint, keep};
use afs_testkit::{AllAdministrators, Server, ServerPlan, Service};
use afs_wire::ids::{KindNumber, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{Entry, GetEntryByIdN, SiteFlags};
use volumes::VolumeModel;

/// Machines.
pub struct World {
    pub sim: Sim,
    implementation: Implementation,
    databases: Server,
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
        let services = vec![Service::Location, Service::Journal];
        let plan = ServerPlan { services, ..ServerPlan::new(Arc::new(AllAdministrators)) };
        let databases = Server::new(&sim, "databases", address(1), plan);
        let node = |last: u8| sim.node(&format!("server{last}"), address(last).into());
        let servers = (0..servers).map(|n| (node(2 + n), Disk::default())).collect();
        let tool = sim.node("tool", address(100).into());
        let client = sim.node("client", address(101).into());
        let (acknowledged, pause) = (Arc::default(), Arc::new(AtomicU64::new(BUSY_MS)));
        let world = Self { implementation, sim, databases, servers, tool, client, acknowledged, pause };
        world.start_databases();
        (0..world.servers.len()).for_each(|n| world.start_server(n, false));
        world
    }

    fn rx(&self, node: NodeId, last: u8, port: u16) -> (EnvRef, Rx) {
        (self.sim.env(node), endpoint(&self.sim, node, SocketAddr::new(address(last).into(), port)))
    }

    fn start_databases(&self) {
        self.databases.start_databases().expect("the databases open");
    }

    fn start_server(&self, index: usize, again: bool) {
        let Some((node, disk)) = self.servers.get(index) else { return };
        let (env, rx) = self.rx(*node, 2 + index as u8, 7005);
        let service =
            VolumeModel::service(self.implementation, env.clone(), rx.downgrade(), disk.clone(), again);
        rx.listen(service).unwrap();
        keep(&env, rx);
    }

    /// Restarts a machine, with its services. The tool is not restarted.
    pub fn restart(&self, node: NodeId) {
        self.sim.restart(node);
        if node == self.databases.node {
            self.start_databases();
        }
        if let Some(index) = self.servers.iter().position(|(id, _)| *id == node) {
            self.start_server(index, true);
        }
    }

    /// The machines that can crash.
    pub fn victims(&self) -> Vec<NodeId> {
        self.servers.iter().map(|(node, _)| *node).chain([self.tool, self.databases.node]).collect()
    }

    /// The tool's handle.
    pub fn admin(&self) -> Admin {
        let (env, rx) = self.rx(self.tool, 100, 7009);
        admin(&env, rx, address(1), "tool")
    }

    /// Runs an operation to its end, on a machine that does not crash.
    pub fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Admin) -> F) -> T
    where
        F: Future<Output = AdminResult<T>> + Send + 'static,
    {
        let (env, rx) = self.rx(self.client, 101, 7009);
        let done =
            self.sim.block_on(self.client, SECONDS(120), work(admin(&env, rx, address(1), "somebody")));
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
        let (_, rx) = self.rx(self.client, 101, 7002);
        let databases = SocketAddr::from((address(1), 7003));
        let connection = rx.connection(databases, ServiceId::LOCATION, Security::null());
        let asked = async move { connection.call(&GetEntryByIdN { volume, kind: KindNumber::ANY }).await };
        self.sim.block_on(self.client, SECONDS(60), asked).expect("an answer").ok().map(|reply| reply.entry)
    }

    /// Waits until no operation is in the journal.
    pub fn wait_until_quiet(&self, limit: Duration) {
        let (env, rx) = self.rx(self.client, 101, 7004);
        let admin = admin(&env, rx, address(1), "asker");
        let quiet = no_operation_is_open(admin, env);
        if let Err(hang) = self.sim.block_on(self.client, limit, quiet) {
            panic!("an operation does not end: {hang}");
        }
    }
}

/// The site of the read-write volume in an entry.
pub fn home(entry: &Entry) -> Option<std::net::Ipv4Addr> {
    entry.sites.iter().find(|s| s.flags.contains(SiteFlags::RW_VOLUME)).map(|s| s.server)
}
