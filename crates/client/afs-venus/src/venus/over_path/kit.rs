//! Test kit: a client, and its server with one file.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, Table};
use afs_sim::{NodeId, Sim, StreamFault, StreamMishap};
use afs_testkit::net::{endpoint, serve};
use afs_testkit::scripted::Locations;
use afs_wire::ids::{CellName, Fid, Uniquifier, Uuid, VnodeId};
use bytes::Bytes;
use parking_lot::Mutex;

use super::file::{File, SERVER, Shared};
use crate::api::{HandleId, NodeId as Node, OpenFlags};
use crate::cache::MemoryCache;
use crate::calls::test_kit::{CELL, VOLUME, enter};
use crate::config::{CellConfig, DataPathConfig, Limits, RootKind, VenusConfig};
use crate::data::FileData;
use crate::error::Result;
use crate::key::{Key, NodeTarget};
use crate::sink::NoSink;
use crate::venus::Venus;

/// Length of the file.
pub const LENGTH: u64 = 300;
/// Time limit of an operation of a test.
const LIMIT: Duration = Duration::from_secs(600);

/// Client and server.
pub struct Kit {
    pub sim: Sim,
    pub client: NodeId,
    pub server: NodeId,
    file: Shared,
    pub venus: Arc<Venus>,
    node: Node,
}

fn fid() -> Fid {
    Fid::new(VOLUME, VnodeId(2), Uniquifier(1))
}

pub fn key() -> Key {
    Key::new(CELL, fid())
}

/// Different bytes for every seed.
pub fn pattern(seed: u64) -> Vec<u8> {
    (0..LENGTH).map(|at| (at * 7 + seed * 13 + at / 64) as u8 | 1).collect()
}

impl Kit {
    /// The first version of the file.
    pub fn file() -> Shared {
        Arc::new(Mutex::new(File { bytes: pattern(0), version: 1 }))
    }

    /// A server with these calls, and a client that `start` starts.
    pub fn made<F>(
        seed: u64,
        file: Shared,
        calls: impl FnOnce(&Sim, NodeId) -> Table<Mutex<File>>,
        data_path: DataPathConfig,
        start: impl FnOnce(VenusConfig) -> F,
    ) -> Kit
    where
        F: Future<Output = Result<Arc<Venus>>> + Send + 'static,
    {
        let sim = Sim::new(seed);
        let (client, server) = (sim.node("client", [10, 0, 0, 1].into()), sim.node("server", SERVER.into()));
        let env = sim.env(client);
        let calls = Arc::new(calls(&sim, server));
        serve(&sim, server, SocketAddr::new(IpAddr::V4(SERVER), 7000), calls);
        let location = SocketAddr::from(([10, 0, 2, 1], 7003));
        let entries = Locations::default();
        enter(&entries, [SERVER].into_iter());
        serve(&sim, sim.node("location", location.ip()), location, entries.service());
        let config = VenusConfig {
            env: env.clone(),
            rx: endpoint(&sim, client, ([10, 0, 0, 1], 7001).into()),
            cells: vec![CellConfig {
                name: CellName::new("home.cell").unwrap(),
                location_servers: vec![location],
                file_port: 7000,
                is_listed: true,
            }],
            resolver: None,
            root: RootKind::Cells,
            uuid: Uuid([1; 16]),
            cache: Arc::new(MemoryCache::new(64 << 20)),
            sink: Arc::new(NoSink),
            snapshots: None,
            sysnames: Vec::new(),
            limits: Limits::default(),
            security: Default::default(),
            data_path,
            objects: None,
        };
        let venus = sim.block_on(client, LIMIT, start(config)).unwrap().unwrap();
        let node = venus.kernel.nodes().remember(NodeTarget::Object(key()), None);
        Kit { sim, client, server, file, venus, node }
    }

    fn run<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Venus>) -> F,
    ) -> T {
        self.sim.block_on(self.client, LIMIT, work(self.venus.clone())).unwrap()
    }

    /// Breaks the next stream after a number of bytes of one direction.
    pub fn cut(&self, from: NodeId, to: NodeId, after: usize, is_unreachable: bool) {
        let mishap = if is_unreachable { StreamMishap::Silence } else { StreamMishap::Reset };
        self.sim.break_stream(from, to, StreamFault { after: after as u64, mishap });
    }

    /// Stores a version by another machine.
    pub fn change(&self, seed: u64) {
        let mut file = self.file.lock();
        (file.bytes, file.version) = (pattern(seed), file.version + 1);
        drop(file);
        self.venus.promises.broken(fid());
    }

    pub fn open(&self, flags: OpenFlags) -> Result<HandleId> {
        let node = self.node;
        self.run(|venus| async move { Ok(venus.open(node, flags).await?.handle) })
    }

    pub fn read(&self, handle: HandleId) -> Result<Bytes> {
        self.run(|venus| async move { venus.read(handle, 0, LENGTH as usize).await })
    }

    pub fn write(&self, handle: HandleId, at: u64, bytes: Vec<u8>) {
        let written = self.run(|venus| async move { venus.write(handle, at, bytes.into()).await });
        written.unwrap();
    }

    pub fn flush(&self, handle: HandleId) -> Result<()> {
        self.run(|venus| async move { venus.flush(handle, 0).await })
    }

    pub fn release(&self, handle: HandleId) {
        self.run(|venus| async move { venus.release(handle).await }).unwrap();
    }

    /// Time passes.
    pub fn pass(&self, time: Duration) {
        let env = self.sim.env(self.client);
        self.sim.block_on(self.client, LIMIT.max(2 * time), async move { env.sleep(time).await }).unwrap();
    }

    pub fn data(&self) -> Arc<FileData> {
        self.venus.vnodes.peek(key()).and_then(|vnode| vnode.state().file.data().cloned()).unwrap()
    }

    pub fn at_server(&self) -> (Vec<u8>, u64) {
        let file = self.file.lock();
        (file.bytes.clone(), file.version)
    }
}
