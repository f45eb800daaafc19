//! Drives of every kind, as a store of a test has them: opened, opened again, and after power failures.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use afs_bucket::{BucketDrive, MemoryBucket, OwnerId};
use afs_datapath::capability::{DriveId as Number, DriveKey, KeyEpoch, StoreNumber};
use afs_datapath::session::{Drive as Served, DriveLimits, Offer, Security, accept};
use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, DriveId, FileSegments, LiveChunks, MemorySegments,
    Returned, SegmentDrive, SweepReport, Usage,
};
use afs_env::Parts;
use afs_remote::{ChunkStores, RemoteDrive, RemoteOptions, Run};
use afs_sim::crash::{CrashDisk, CrashFolder, Rng};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim, World};
use afs_volume::{Volume, VolumeStore};
use bytes::Bytes;

use super::host_drive::Host;
use super::{now, place};

/// A kind of drive, and what outlives its processes.
enum Kind {
    Memory(MemorySegments),
    /// Files of segments on a disk.
    Files(CrashDisk),
    /// A host that runs inline with the file server.
    Host(Host),
    /// A host behind a network, by the frames of the data path.
    Remote(Remote),
    Bucket(MemoryBucket),
}

const KINDS: u64 = 5;

/// The drives of a store's data beside its own.
pub struct Drives {
    kinds: Vec<Kind>,
    network: Option<Network>,
}

impl Drives {
    /// None: data are on the store's own drive.
    pub fn none() -> Self {
        Self { kinds: Vec::new(), network: None }
    }

    /// So many, of kinds that seeds in a row go through.
    pub fn of_seed(seed: u64, count: usize) -> Self {
        let network = Network::new(seed);
        let kinds = (0..count as u64).map(|number| match (seed + number * (1 + seed / KINDS)) % KINDS {
            0 => Kind::Remote(network.remote(number as u8)),
            1 => Kind::Bucket(MemoryBucket::default()),
            2 => Kind::Host(Host::new()),
            3 => Kind::Files(CrashDisk::new()),
            _ => Kind::Memory(MemorySegments::new(1 << 30)),
        });
        Self { kinds: kinds.collect(), network: Some(network) }
    }

    fn ids(&self) -> Vec<DriveId> {
        (1..).map(DriveId).take(self.kinds.len()).collect()
    }

    /// Gives them to a store that was just opened, of a file server whose power is that of a disk.
    pub fn add_to(&self, store: &VolumeStore, power: &CrashDisk) {
        let ids = self.ids();
        for (id, kind) in ids.iter().zip(&self.kinds) {
            let drive = Powered { drive: self.open(kind), power: power.clone() };
            store.add_drive(*id, Arc::new(drive)).unwrap();
        }
        if !ids.is_empty() {
            store.use_drives(&ids).unwrap();
        }
    }

    fn open(&self, kind: &Kind) -> Arc<dyn Drive> {
        match kind {
            Kind::Memory(segments) => {
                Arc::new(SegmentDrive::open(segments.clone(), Parts::inline(), 1 << 20).unwrap())
            }
            Kind::Files(disk) => {
                let segments = FileSegments::over(CrashFolder(disk.clone()));
                Arc::new(SegmentDrive::open(segments, Parts::inline(), 1 << 20).unwrap())
            }
            Kind::Host(host) => host.drive(&CrashDisk::new()),
            Kind::Remote(remote) => Arc::new(self.network.as_ref().unwrap().drive(remote)),
            Kind::Bucket(bucket) => {
                let (bucket, config) = (Arc::new(bucket.clone()), afs_bucket::Config::default());
                let making = BucketDrive::create(bucket, OwnerId([4; 16]), Parts::inline(), config);
                Arc::new(now(making).unwrap())
            }
        }
    }

    /// The power of all fails together with the file server's, and comes back.
    pub fn crash(&mut self, rng: &mut Rng) {
        for kind in &mut self.kinds {
            match kind {
                // These lose nothing that they have taken.
                Kind::Memory(_) | Kind::Bucket(_) => {}
                Kind::Files(disk) => *disk = disk.image(rng),
                Kind::Host(host) => host.crash(rng),
                Kind::Remote(remote) => self.network.as_ref().unwrap().crash(remote),
            }
        }
    }

    /// Sweeps each, as after a start: nothing that files refer to is missing, and so many chunks are live.
    pub fn sweep(&self, store: &VolumeStore) -> u64 {
        let sweep = |id| now(store.sweep_drive(id)).unwrap();
        self.ids()
            .into_iter()
            .map(sweep)
            .map(|swept| {
                assert_eq!(swept.missing, []);
                swept.live
            })
            .sum()
    }

    /// Whether nothing is left where what is left can be seen. A sweep was made since the last start.
    pub fn are_empty(&self) -> bool {
        self.kinds.iter().all(|kind| match kind {
            Kind::Memory(segments) => segments.used() == 0,
            Kind::Bucket(bucket) => !bucket.objects().iter().any(|(key, _)| key.starts_with("packs/")),
            Kind::Remote(remote) => remote.disk.used() < 4096,
            Kind::Files(_) | Kind::Host(_) => true,
        })
    }
}

/// A drive of a file server: without that one's power nothing is asked of it any more.
struct Powered {
    drive: Arc<dyn Drive>,
    power: CrashDisk,
}

impl Powered {
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Drive) -> BoxFuture<Result<T, DriveError>>,
    ) -> BoxFuture<Result<T, DriveError>> {
        match self.power.is_dead() {
            true => Box::pin(async { Err(DriveError::Closed) }),
            false => work(&*self.drive),
        }
    }
}

impl Drive for Powered {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        self.ask(|drive| drive.write(data))
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.ask(|drive| drive.read(chunk, range))
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        self.ask(|drive| drive.sync(written))
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.ask(|drive| drive.discard(chunks))
    }

    fn continue_after(&self, last: ChunkId) {
        self.drive.continue_after(last);
    }

    fn on_return(&self, told: Returned) {
        self.drive.on_return(told);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        self.drive.usage()
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.ask(|drive| drive.sweep(live))
    }

    fn sweep_left(
        &self,
        live: Arc<dyn LiveChunks>,
        settled: BoxFuture<Result<(), DriveError>>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.ask(|drive| drive.sweep_left(live, settled))
    }
}

/// The network between the file server and hosts with drives.
struct Network {
    sim: Sim,
    server: NodeId,
}

/// A host with a drive there.
struct Remote {
    node: NodeId,
    at: SocketAddr,
    disk: SimDisk,
    run: u64,
}

const STORE: StoreNumber = StoreNumber(3);

fn key() -> DriveKey {
    DriveKey::new(Number(0xd1), KeyEpoch(1), [7; 32])
}

impl Network {
    fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let server = sim.node("server", Ipv4Addr::new(10, 0, 0, 1).into());
        NETWORK.set(Some(sim.world()));
        Self { sim, server }
    }

    fn remote(&self, number: u8) -> Remote {
        let at = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2 + number), 7010));
        let node = self.sim.node("drive", at.ip());
        let remote = Remote { node, at, disk: self.sim.disk(node), run: 1 };
        self.start(&remote);
        remote
    }

    fn start(&self, remote: &Remote) {
        let (env, disk) = (self.sim.env(remote.node), remote.disk.clone());
        let open = move |store: StoreNumber| Ok(disk.segments(&format!("store-{}", store.0)));
        let stores = ChunkStores::new(env.clone(), Run(remote.run), open);
        let revocations = stores.revocations();
        let served = Served::new(key(), revocations, Arc::new(stores), DriveLimits::default());
        let listener = env.listen(remote.at).unwrap();
        env.spawn(Box::pin(accept(env.clone(), listener, Offer::clear(), served)));
    }

    fn drive(&self, remote: &Remote) -> RemoteDrive {
        let options = RemoteOptions::new("far", remote.at, Security::Clear, Arc::new(key()), STORE);
        RemoteDrive::new(self.sim.env(self.server), options)
    }

    fn crash(&self, remote: &mut Remote) {
        for node in [self.server, remote.node] {
            self.sim.crash(node);
            self.sim.restart(node);
        }
        remote.run += 1;
        self.start(remote);
    }
}

thread_local! {
    /// The network of the store that this thread tests.
    static NETWORK: RefCell<Option<World>> = const { RefCell::new(None) };
    /// Drives of stores of this thread's test, which nobody else keeps.
    static KEPT: RefCell<Vec<Drives>> = const { RefCell::new(Vec::new()) };
}

/// Names the run of a test program that has the data of its stores on other drives.
const RUN: &str = "ANDREW_DRIVES";
/// Runs by their numbers: over one drive of each kind; then one over two drives that both have all data, and one over two that files go
/// round. The test kit of cells has the same names.
const NAMES: [&str; KINDS as usize + 2] = ["remote", "bucket", "host", "files", "memory", "copies", "round"];
const RUNS: u64 = NAMES.len() as u64;

/// The present run by its name or number, if it is not over the store's own drive. An organisation behind the name is a matter of clients.
fn run() -> Option<u64> {
    let named = std::env::var(RUN).ok()?;
    let kind = named.split('/').next().filter(|kind| *kind != "own")?;
    let number = NAMES.iter().position(|name| *name == kind).map(|number| number as u64);
    let number = number.or_else(|| kind.parse().ok()).filter(|number| *number < RUNS);
    Some(number.unwrap_or_else(|| panic!("{RUN}={named}: one of own, {}", NAMES.join(", "))))
}

/// Has the data of an empty volume on the drives that this run of the test program is over, if it is over some.
pub fn place_data(store: &VolumeStore, volume: &Arc<Volume>) {
    let Some(run) = run() else { return };
    let (count, copies, width) = match run {
        KINDS.. => (2, 1 + run % 2, 2 - run % 2),
        _ => (1, 0, 1),
    };
    let drives = Drives::of_seed(run, count);
    drives.add_to(store, &CrashDisk::new());
    if count > 1 {
        place(volume, copies as u32, width as u32);
    }
    KEPT.with_borrow_mut(|kept| kept.push(drives));
}

/// Runs the tests of a module of this program again, with the data on drives of every kind and in every organisation, without those that have none.
pub fn run_over_each(module: &str, without: &[&str]) {
    if run().is_some() {
        return;
    }
    for run in 0..RUNS {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.arg(format!("{module}::"));
        without.iter().for_each(|name| _ = again.args(["--skip", name]));
        let again = again.env(RUN, run.to_string()).output().unwrap();
        let told = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && !told.contains("running 0 tests"), "{RUN}={run}: {told}");
    }
}

/// Lets some time pass on the network that futures of this thread may wait for. False if there is none.
pub fn let_time_pass() -> bool {
    let network = NETWORK.with_borrow(Clone::clone);
    network.inspect(|world| world.run_for(Duration::from_micros(500))).is_some()
}
