//! A cell of several scripted servers, to observe the behaviour of a client.

mod fetches;
mod image;
mod server;

pub use fetches::{Answer, Fetches};
pub use image::Image;
pub use server::{FakeServer, Shared};

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use afs_rpc::Table;
use afs_sim::{NodeId, Sim};
use afs_venus::{CacheStore, CellConfig, Limits, MemoryCache, RootKind, SecurityConfig, Venus, VenusConfig};
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, PartitionNumber, Uuid, VolumeId, VolumeName};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{self, Entry, EntryFlags, NameChars, Site, SiteFlags};
use afs_wire::xdr::BoundedVec;

use super::{Client, LIMIT, RecordingSink};

/// Numbers of the volumes of the initial group.
pub const RW: VolumeId = VolumeId(1000);
pub const RO: VolumeId = VolumeId(1001);
/// Name of the group.
pub const NAME: &str = "proj";

type Entries = Arc<Mutex<BTreeMap<String, Entry>>>;

pub struct Fakes {
    pub sim: Sim,
    pub servers: Vec<FakeServer>,
    pub locations: Vec<NodeId>,
    entries: Entries,
    limits: Limits,
}

impl Fakes {
    /// File servers without volumes, and location servers without entries.
    pub fn new(seed: u64, servers: u8, locations: u8) -> Fakes {
        let sim = Sim::new(seed);
        let server = |n: u8| {
            let address = Ipv4Addr::new(10, 0, 1, n);
            let node = sim.node(&format!("server{n}"), address.into());
            FakeServer::new(node, address, sim.env(node))
        };
        let servers: Vec<FakeServer> = (0..servers).map(server).collect();
        let location = |n: u8| sim.node(&format!("location{n}"), Ipv4Addr::new(10, 0, 2, n).into());
        let locations: Vec<NodeId> = (0..locations).map(location).collect();
        // Small, so that files of a mebibyte are fetched in many calls.
        let limits = Limits { chunk_bytes: 64 << 10, read_ahead_chunks: 2, ..Limits::default() };
        let fakes = Fakes { sim, servers, locations, entries: Entries::default(), limits };
        (0..fakes.servers.len()).for_each(|n| fakes.start(n));
        (0..fakes.locations.len()).for_each(|n| fakes.start_location(n));
        fakes
    }

    pub fn set_limits(&mut self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.limits);
    }

    fn start(&self, n: usize) {
        let server = &self.servers[n];
        let at = SocketAddr::new(server.address.into(), 7000);
        server.serve(self.rx(server.node, at));
    }

    fn start_location(&self, n: usize) {
        let table = Table::new(ServiceId::LOCATION, self.entries.clone()).call(
            |entries: Arc<Mutex<BTreeMap<String, Entry>>>, _, request: vl::GetEntryByNameN| async move {
                let entry = entries.lock().unwrap().get(&request.name.to_text()).cloned();
                entry.map(|entry| vl::EntryReply { entry }).ok_or(AbortCode::VL_NOENT)
            },
        );
        self.start_location_with(n, table);
    }

    /// Replaces a location server by a scripted one.
    pub fn start_location_with<T: Send + Sync + 'static>(&self, n: usize, table: Table<T>) {
        let rx = self.rx(self.locations[n], SocketAddr::new(IpAddr::from([10, 0, 2, n as u8]), 7003));
        rx.listen(Arc::new(table)).unwrap();
        let env = self.sim.env(self.locations[n]);
        env.spawn(Box::pin(async move {
            let _held = rx;
            std::future::pending::<()>().await;
        }));
    }

    fn rx(&self, node: NodeId, at: SocketAddr) -> afs_rpc::Rx {
        self.sim.rx(node, self.sim.env(node), at, Default::default(), Default::default())
    }

    /// Restarts a server; its state is kept.
    pub fn restart(&self, n: usize) {
        self.sim.restart(self.servers[n].node);
        self.start(n);
    }

    /// The same for a location server, with its original service.
    pub fn restart_location(&self, n: usize) {
        self.sim.restart(self.locations[n]);
        self.start_location(n);
    }

    /// Sets the location entry of the group: sites of its volumes, with flags.
    pub fn locate(&self, sites: &[(usize, SiteFlags)]) {
        let site = |(n, flags): &(usize, SiteFlags)| Site {
            server: self.servers[*n].address,
            partition: PartitionNumber(0),
            flags: *flags,
        };
        let has = |flag| sites.iter().any(|(_, flags)| flags.contains(flag));
        let mut flags = EntryFlags::NONE;
        for (kind, exists) in
            [(SiteFlags::RW_VOLUME, EntryFlags::RW_EXISTS), (SiteFlags::RO_VOLUME, EntryFlags::RO_EXISTS)]
        {
            flags = if has(kind) { flags | exists } else { flags };
        }
        self.enter(NAME, [RW, RO, VolumeId(0)], flags, sites.iter().map(site).collect());
    }

    /// Removes all location entries.
    pub fn forget_location(&self) {
        self.entries.lock().unwrap().clear();
    }

    /// Adds a location entry for one volume on one server.
    pub fn locate_alone(&self, name: &str, id: VolumeId, server: usize) {
        let address = self.servers[server].address;
        let site = Site { server: address, partition: PartitionNumber(0), flags: SiteFlags::RW_VOLUME };
        self.enter(name, [id, VolumeId(0), VolumeId(0)], EntryFlags::RW_EXISTS, vec![site]);
    }

    fn enter(&self, name: &str, ids: [VolumeId; 3], flags: EntryFlags, sites: Vec<Site>) {
        let entry = Entry {
            name: NameChars::new(name.as_bytes()).unwrap(),
            sites: BoundedVec::first_of(sites),
            ids,
            flags,
            ..Entry::default()
        };
        let mut entries = self.entries.lock().unwrap();
        entries.insert(name.into(), entry.clone());
        for id in ids.into_iter().filter(|id| id.0 != 0) {
            entries.insert(id.to_string(), entry.clone());
        }
    }

    /// A client whose root is the read-only volume if there is one.
    pub fn client(&self, number: u8) -> Client {
        self.client_of(number, NAME)
    }

    pub fn client_of(&self, number: u8, root: &str) -> Client {
        let all = (0..self.locations.len()).collect();
        self.client_with(number, RootKind::Volume(VolumeName::new(root).unwrap()), &[("test.cell", all)])
    }

    /// A client with a given cache.
    pub fn client_keeping(&self, number: u8, cache: Arc<dyn CacheStore>) -> Client {
        let all = (0..self.locations.len()).collect();
        let root = RootKind::Volume(VolumeName::new(NAME).unwrap());
        self.client_of_cells(number, root, &[("test.cell", all)], cache)
    }

    /// A client of several cells, each with the location servers of these numbers.
    pub fn client_with(&self, number: u8, root: RootKind, cells: &[(&str, Vec<usize>)]) -> Client {
        self.client_of_cells(number, root, cells, Arc::new(MemoryCache::new(64 << 20)))
    }

    fn client_of_cells(
        &self,
        number: u8,
        root: RootKind,
        cells: &[(&str, Vec<usize>)],
        cache: Arc<dyn CacheStore>,
    ) -> Client {
        let address = IpAddr::from([10, 0, 0, 10 + number]);
        let node = self.sim.node(&format!("client{number}"), address);
        let env = self.sim.env(node);
        let at = |n: usize| SocketAddr::new(IpAddr::from([10, 0, 2, n as u8]), 7003);
        let invalidated = RecordingSink::default();
        let config = VenusConfig {
            env: env.clone(),
            rx: self.rx(node, SocketAddr::new(address, 7001)),
            cells: cells
                .iter()
                .map(|(name, servers)| CellConfig {
                    name: CellName::new(name).unwrap(),
                    location_servers: servers.iter().copied().map(at).collect(),
                    file_port: 7000,
                })
                .collect(),
            root,
            uuid: Uuid([number + 1; 16]),
            cache,
            sink: Arc::new(invalidated.clone()),
            snapshots: Some(".snapshots".into()),
            sysnames: Vec::new(),
            limits: self.limits.clone(),
            security: SecurityConfig::default(),
            data_path: Default::default(),
        };
        let venus = self.sim.block_on(node, LIMIT, Venus::start(config)).unwrap().unwrap();
        Client { venus, node, env, invalidated, world: self.sim.world() }
    }

    /// Runs a future on a client's machine.
    pub fn on<T, F>(&self, client: &Client, work: F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.sim.block_on(client.node, LIMIT, work).unwrap_or_else(|hang| panic!("{hang}"))
    }
}
