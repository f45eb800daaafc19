//! Tests of crashes between any two requests, and of long runs with faults: nothing acknowledged is lost, no wrong byte is
//! shown, nothing is leaked for longer than a sweep.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use afs_sim::crash::seeds;
use afs_sim::{NodeId, Sim, SimRng};

use super::faulty_bucket::{FaultyBucket, Rates};
use super::*;
use crate::names::PackId;

/// What the index of a volume store would have: it survives crashes.
#[derive(Default)]
struct Index {
    /// Chunks with rows. A chunk has one until its discard is known.
    rows: BTreeMap<ChunkId, ChunkRef>,
    /// Chunks that a file has, with their bytes.
    files: BTreeMap<ChunkRef, Bytes>,
}

#[derive(Clone, Default)]
struct SharedIndex(Arc<Mutex<Index>>);

impl LiveChunks for SharedIndex {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        Ok(self.0.lock().rows.range(first..=last).map(|(_, chunk)| *chunk).collect())
    }
}

impl SharedIndex {
    fn last(&self) -> Option<ChunkId> {
        self.0.lock().rows.last_key_value().map(|(id, _)| *id)
    }

    fn commit(&self, chunks: &[(ChunkRef, Bytes)]) {
        let mut index = self.0.lock();
        for (chunk, data) in chunks {
            index.rows.insert(chunk.id, *chunk);
            index.files.insert(*chunk, data.clone());
        }
    }

    /// Takes some chunks from their files; their rows stay.
    fn remove_some(&self, rng: &mut SimRng, all: bool) -> Vec<ChunkRef> {
        let mut index = self.0.lock();
        let removed: Vec<_> = index.files.keys().copied().filter(|_| all || rng.chance(400_000)).collect();
        removed.iter().for_each(|chunk| _ = index.files.remove(chunk));
        removed
    }

    fn forget(&self, chunks: &[ChunkRef]) {
        let mut index = self.0.lock();
        chunks.iter().for_each(|chunk| _ = index.rows.remove(&chunk.id));
    }

    fn files(&self) -> Vec<(ChunkRef, Bytes)> {
        self.0.lock().files.iter().map(|(chunk, data)| (*chunk, data.clone())).collect()
    }
}

/// A life of a server.
#[derive(Clone)]
struct Life {
    bucket: FaultyBucket,
    index: SharedIndex,
    env: EnvRef,
    rng: SimRng,
}

const TINY: Config = Config { pack_bytes: 100_000, packs_pending: 2, cache_bytes: 100_000 };

impl Life {
    async fn open(&self) -> BucketDrive {
        let bucket = Arc::new(self.bucket.clone());
        let drive = loop {
            // A faulty store may show a wrong owner.
            if let Ok(drive) = BucketDrive::create(bucket.clone(), OWNER, self.env.clone(), TINY).await {
                break drive;
            }
        };
        if let Some(last) = self.index.last() {
            drive.continue_after(last);
        }
        drive
    }

    /// Opens, reads all, sweeps, and then writes and discards for some rounds.
    async fn live(mut self, rounds: u32, patient: bool) {
        let drive = self.open().await;
        self.check_all(&drive).await;
        let report = drive.sweep(Arc::new(self.index.clone())).await;
        assert!(patient || report.is_ok(), "{report:?}");
        report.into_iter().for_each(|report| self.check_missing(&report));
        for round in 0..rounds {
            self.store(&drive, round).await;
            let removed = self.index.remove_some(&mut self.rng, false);
            if drive.discard(removed.clone()).await.is_ok() {
                self.index.forget(&removed);
            }
            self.check_all(&drive).await;
        }
    }

    /// Writes some chunks, and commits them if they are durable.
    async fn store(&mut self, drive: &BucketDrive, round: u32) {
        let mut written = Vec::new();
        for n in 0..self.rng.between(1, 4) {
            let len = self.rng.between(1, 60_000) as usize;
            let bytes = data((u64::from(round) * 7 + n) as u8, len);
            if let Ok(chunk) = drive.write(bytes.clone()).await {
                written.push((chunk, bytes));
            }
        }
        if self.rng.chance(100_000) {
            drop(drive.write(data(0, 1000)));
        }
        match drive.sync(&[]).await {
            Ok(()) => self.index.commit(&written),
            Err(_) => _ = drive.discard(written.into_iter().map(|(chunk, _)| chunk).collect()).await,
        }
    }

    async fn check_all(&mut self, drive: &BucketDrive) {
        for (chunk, expected) in self.index.files() {
            let start = self.rng.index(chunk.len as usize) as u32;
            for range in [0..chunk.len, start..chunk.len] {
                let expected = expected.slice(range.start as usize..range.end as usize);
                let mut read = drive.read(chunk, range.clone()).await;
                for _ in 0..5 {
                    if read.is_err() {
                        read = drive.read(chunk, range.clone()).await;
                    }
                }
                assert_eq!(read.unwrap(), expected, "{chunk:?}");
            }
        }
    }

    /// Only chunks whose discard was interrupted may be missing.
    fn check_missing(&self, report: &SweepReport) {
        let index = self.index.0.lock();
        let lost: Vec<_> = index.files.keys().filter(|chunk| report.missing.contains(&chunk.id)).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }

    /// Sweeps, and discards everything.
    async fn end(mut self, objects: MemoryBucket) {
        let drive = self.open().await;
        self.check_all(&drive).await;
        let report = drive.sweep(Arc::new(self.index.clone())).await.unwrap();
        self.check_missing(&report);
        for key in packs_in(&objects) {
            let (first, last) = PackId::of_key(&key).unwrap().chunks();
            assert!(!self.index.live_between(first, last).unwrap().is_empty(), "{key} is garbage");
        }
        let rest = self.index.remove_some(&mut self.rng, true);
        drive.discard(rest.clone()).await.unwrap();
        self.index.forget(&rest);
        // Rows of chunks whose discard was interrupted.
        let left: Vec<_> = self.index.0.lock().rows.values().copied().collect();
        drive.discard(left).await.unwrap();
        assert!(packs_in(&objects).is_empty(), "{:?}", objects.objects());
        assert_eq!(objects.objects().len(), 2, "the owner and the run");
    }
}

/// A server whose store is elsewhere.
struct Machine {
    sim: Sim,
    node: NodeId,
    objects: MemoryBucket,
    index: SharedIndex,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let node = sim.node("server", IpAddr::V4(Ipv4Addr::LOCALHOST));
        Self { sim, node, objects: MemoryBucket::default(), index: SharedIndex::default() }
    }

    fn life(&self, crash_at: Option<u64>) -> Life {
        let env = self.sim.env(self.node);
        let bucket = FaultyBucket::new(&self.objects, env.clone(), self.sim.fork_rng(), crash_at);
        Life { bucket, index: self.index.clone(), env, rng: self.sim.fork_rng() }
    }

    /// Runs a life until it ends or crashes; whether it crashed.
    fn run(&self, life: Life, rounds: u32, patient: bool) -> bool {
        let bucket = life.bucket.clone();
        let done = Arc::new(Mutex::new(false));
        let tell = done.clone();
        let work = async move {
            life.live(rounds, patient).await;
            *tell.lock() = true;
        };
        self.sim.env(self.node).spawn(Box::pin(work));
        let ended = self.sim.run_until(HOUR, || *done.lock() || bucket.has_crashed());
        ended.unwrap_or_else(|hang| panic!("{hang}"));
        // What was sent before the crash may still be served.
        self.sim.run_for(Duration::from_millis(200));
        self.sim.restart(self.node);
        bucket.has_crashed()
    }

    fn end(&self) {
        let (life, objects) = (self.life(None), self.objects.clone());
        let ended = self.sim.block_on(self.node, HOUR, life.end(objects));
        ended.unwrap_or_else(|hang| panic!("{hang}"));
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_crash_between_any_two_requests_loses_and_leaks_nothing() {
    let mut crashes = 0;
    for crash_at in 1.. {
        let machine = Machine::new(crash_at);
        machine.run(machine.life(None), 2, false);
        let crashed = machine.run(machine.life(Some(crash_at)), 5, false);
        machine.end();
        if !crashed {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn faults_of_the_store_lose_and_leak_nothing() {
    for seed in seeds(30) {
        let machine = Machine::new(seed);
        for _ in 0..3 {
            let life = machine.life(Some(60 + seed * 3));
            life.bucket.set(RATES);
            machine.run(life, 6, true);
        }
        machine.end();
    }
}

const RATES: Rates =
    Rates { busy: 80_000, broken: 50_000, silent: 10_000, cut: 60_000, wrong: 30_000, late: 300_000 };
