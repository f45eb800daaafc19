//! Test kit: a file server and the host of a drive in a simulated world.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch, Revocations, StoreNumber};
use afs_datapath::session::{Drive as Served, DriveLimits, Objects, Offer, Security, accept};
use afs_drive::{ChunkId, ChunkRef, DriveError, LiveChunks, SegmentStore};
use afs_env::EnvRef;
use afs_remote::{Adopt, ChunkStores, RemoteDrive, RemoteOptions, Run};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim};
use bytes::Bytes;

pub const HOUR: Duration = Duration::from_secs(3600);
pub const STORE: StoreNumber = StoreNumber(3);

pub struct Kit {
    pub sim: Sim,
    pub host: NodeId,
    pub server: NodeId,
    pub disk: SimDisk,
    opened: Arc<AtomicU32>,
}

pub fn at() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 7010))
}

pub fn key(byte: u8) -> DriveKey {
    DriveKey::new(DriveId(0xd1), KeyEpoch(1), [byte; 32])
}

pub fn data(seed: u8, len: usize) -> Bytes {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect::<Vec<_>>().into()
}

/// The chunks that a file server refers to.
pub struct Live(pub Vec<ChunkRef>);

impl LiveChunks for Live {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        Ok(self.0.iter().copied().filter(|chunk| (first..=last).contains(&chunk.id)).collect())
    }
}

impl Kit {
    /// A world without a drive.
    pub fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let host = sim.node("drive", Ipv4Addr::new(10, 0, 0, 1).into());
        let server = sim.node("server", Ipv4Addr::new(10, 0, 0, 2).into());
        let disk = sim.disk(host);
        Self { sim, host, server, disk, opened: Arc::default() }
    }

    /// A world with a drive in its first run.
    pub fn with_drive(seed: u64) -> Self {
        let kit = Self::new(seed);
        kit.start(1);
        kit
    }

    /// Starts the drive.
    pub fn start(&self, run: u64) -> Arc<Served> {
        self.start_with(run, key(7), Arc::new(|_, _| false))
    }

    /// Starts it with another key, and a place for those that it is given.
    pub fn start_with(&self, run: u64, key: DriveKey, adopt: Adopt) -> Arc<Served> {
        self.start_at(at(), run, key, adopt)
    }

    /// Starts another one there, at an address of the same host.
    pub fn start_at(&self, at: SocketAddr, run: u64, key: DriveKey, adopt: Adopt) -> Arc<Served> {
        let (disk, opened) = (self.disk.clone(), self.opened.clone());
        let open = move |store: StoreNumber| {
            opened.fetch_add(1, Ordering::Relaxed);
            Ok(disk.segments(&format!("store-{}", store.0)))
        };
        let stores = ChunkStores::with_keys(self.sim.env(self.host), Run(run), adopt, open);
        let revocations = stores.revocations();
        self.serve_with(at, key, Arc::new(stores), revocations)
    }

    /// How often a store was opened.
    pub fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }

    pub fn serve(&self, objects: Arc<dyn Objects>) -> Arc<Served> {
        self.serve_with(at(), key(7), objects, Revocations::default())
    }

    fn serve_with(
        &self,
        at: SocketAddr,
        key: DriveKey,
        objects: Arc<dyn Objects>,
        revocations: Revocations,
    ) -> Arc<Served> {
        let drive = Served::new(key, revocations, objects, DriveLimits::default());
        let env = self.sim.env(self.host);
        let listener = env.listen(at).unwrap();
        env.spawn(Box::pin(accept(env.clone(), listener, Offer::clear(), drive.clone())));
        drive
    }

    /// A power failure of the drive's host, and the next start.
    pub fn crash(&self, next_run: u64) -> Arc<Served> {
        self.sim.crash(self.host);
        self.sim.restart(self.host);
        self.start(next_run)
    }

    pub fn env(&self) -> EnvRef {
        self.sim.env(self.server)
    }

    pub fn options(&self, byte: u8) -> RemoteOptions {
        RemoteOptions::new("far", at(), Security::Clear, Arc::new(key(byte)), STORE)
    }

    /// The drive as a file server that was just started has it.
    pub fn remote(&self) -> RemoteDrive {
        RemoteDrive::new(self.env(), self.options(7))
    }

    /// Runs work of the file server, which must end within an hour.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        match self.sim.block_on(self.server, HOUR, work) {
            Ok(value) => value,
            Err(hang) => panic!("{hang}"),
        }
    }

    /// The segments of the store on the drive's disk.
    pub fn segments(&self) -> Vec<u64> {
        self.disk.segments(&format!("store-{}", STORE.0)).list().unwrap()
    }
}
