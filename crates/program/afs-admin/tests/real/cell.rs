//! A cell in a simulated world whose file servers are the real ones, with two partitions each on disks that crash.

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use afs_admin::ServerPartition;
use afs_testkit::{AllAdministrators, Server, ServerPlan, Service};
use afs_volume::VolumeStore;
use afs_wire::ids::{KindNumber, PartitionId, VolumeId};
use afs_wire::vl::DeleteEntry;

/// The machines.
pub struct Cell(afs_testkit::Cell);

/// Address of a machine: 1 has the databases, 2 and on are file servers.
pub fn address(last: u8) -> Ipv4Addr {
    afs_testkit::Cell::address(last)
}

/// A partition of a file server, both counted from 0.
pub fn place(server: u8, partition: u8) -> ServerPartition {
    ServerPartition::new(address(2 + server), PartitionId(partition))
}

impl Deref for Cell {
    type Target = afs_testkit::Cell;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cell {
    /// A cell with everything running.
    pub fn new(seed: u64, servers: u8) -> Self {
        Self::with(seed, servers, false)
    }

    /// The same with a data path at each file server.
    pub fn with_path(seed: u64, servers: u8) -> Self {
        Self::with(seed, servers, true)
    }

    fn with(seed: u64, servers: u8, has_path: bool) -> Self {
        let partitions = vec![PartitionId(0), PartitionId(1)];
        let services = if has_path { vec![Service::Data] } else { Vec::new() };
        let plan = ServerPlan::new(Arc::new(AllAdministrators));
        // The randomness of TLS is not that of the seed.
        let plan = ServerPlan { partitions, services, clear_data: has_path, ..plan };
        Self(afs_testkit::Cell::new(seed, servers, &plan))
    }

    /// Streams of volumes that came or left by the data path of a file server, in its present life.
    pub fn streams(&self, server: usize) -> u64 {
        let files = self.servers[server].processes(|processes| processes.files.upgrade()).flatten();
        files.map_or(0, |files| files.data_path_counts().streams)
    }

    /// Crashes a file server's machine for good.
    pub fn lose(&self, server: usize) {
        self.sim.crash(self.servers[server].node);
    }

    /// Deletes an entry from the location database, and nothing else.
    pub fn lose_entry(&self, volume: VolumeId) {
        self.tell_databases(DeleteEntry { volume, kind: KindNumber::ANY });
    }

    fn server(&self, place: ServerPartition) -> &Server {
        self.servers.iter().find(|server| server.address == place.server).unwrap()
    }

    /// The store of a site in the present process of its server.
    pub fn store(&self, place: ServerPartition) -> VolumeStore {
        let partition = place.partition.check().unwrap();
        self.server(place).processes(|processes| processes.stores[&partition].clone()).unwrap()
    }

    /// Runs work on a file server's machine.
    pub fn on_server<T: Send + 'static>(
        &self,
        place: ServerPartition,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.sim.block_on(self.server(place).node, Duration::from_secs(300), work).expect("an answer")
    }

    /// The ids of the volumes at a site.
    pub fn volumes(&self, place: ServerPartition) -> Vec<VolumeId> {
        self.store(place).volumes().iter().map(|v| v.id()).collect()
    }
}
