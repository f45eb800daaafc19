//! A cell of several scripted servers, to observe the behaviour of a client.

mod fetches;
mod image;
mod server;

pub use fetches::{Answer, Fetches};
pub use image::Image;
pub use server::{FakeServer, Shared};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::Table;
use afs_sim::{NodeId, Sim};
use afs_testkit::scripted::{Locations, site};
use afs_testkit::{ClientMachine, cell_of, net};
use afs_venus::{CacheStore, Limits, MemoryCache, RootKind};
use afs_wire::ids::{VolumeId, VolumeName};
use afs_wire::vl::{EntryFlags, SiteFlags};

use super::{Client, LIMIT, address};

/// Numbers of the volumes of the initial group.
pub const RW: VolumeId = VolumeId(1000);
pub const RO: VolumeId = VolumeId(1001);
/// Name of the group.
pub const NAME: &str = "proj";

pub struct Fakes {
    pub sim: Sim,
    pub servers: Vec<FakeServer>,
    pub locations: Vec<NodeId>,
    entries: Locations,
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
        let fakes = Fakes { sim, servers, locations, entries: Locations::default(), limits };
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
        server.serve(net::endpoint(&self.sim, server.node, at));
    }

    fn start_location(&self, n: usize) {
        net::serve(&self.sim, self.locations[n], location_at(n), self.entries.service());
    }

    /// Replaces a location server by a scripted one.
    pub fn start_location_with<T: Send + Sync + 'static>(&self, n: usize, table: Table<T>) {
        net::serve(&self.sim, self.locations[n], location_at(n), Arc::new(table));
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
        let site = |(n, flags): &(usize, SiteFlags)| site(self.servers[*n].address, *flags);
        let has = |flag| sites.iter().any(|(_, flags)| flags.contains(flag));
        let mut flags = EntryFlags::NONE;
        for (kind, exists) in
            [(SiteFlags::RW_VOLUME, EntryFlags::RW_EXISTS), (SiteFlags::RO_VOLUME, EntryFlags::RO_EXISTS)]
        {
            flags = if has(kind) { flags | exists } else { flags };
        }
        self.entries.enter(NAME, [RW, RO, VolumeId(0)], flags, sites.iter().map(site).collect());
    }

    /// Removes all location entries.
    pub fn forget_location(&self) {
        self.entries.clear();
    }

    /// Adds a location entry for one volume on one server.
    pub fn locate_alone(&self, name: &str, id: VolumeId, server: usize) {
        let site = site(self.servers[server].address, SiteFlags::RW_VOLUME);
        self.entries.enter(name, [id, VolumeId(0), VolumeId(0)], EntryFlags::RW_EXISTS, vec![site]);
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
        let cell = |(name, servers): &(&str, Vec<usize>)| {
            cell_of(name, servers.iter().copied().map(location_at).collect())
        };
        let cells = cells.iter().map(cell).collect();
        let mut machine = ClientMachine::new(&self.sim, number, address(number), cells);
        let config = &mut machine.config;
        (config.root, config.cache, config.limits) = (root, cache, self.limits.clone());
        Client::start(machine, self.sim.world()).unwrap()
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

/// The address of the location server with that number.
fn location_at(n: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 0, 2, n as u8]), 7003)
}
