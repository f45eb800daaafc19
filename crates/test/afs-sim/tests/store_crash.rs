//! The key-value store and the drive on disks that crash: acknowledged data survives, complete.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_drive::{ChunkRef, Drive, SegmentDrive};
use afs_kv::{Config, Kv};
use afs_rpc::{EnvExt, EnvRef};
use afs_sim::disk::SimDisk;
use afs_sim::{NodeId, Sim, SimRng};
use bytes::Bytes;

const LIFE: Duration = Duration::from_secs(60);
const KEYS: u64 = 12;

fn host(seed: u64) -> (Sim, NodeId, SimDisk) {
    let sim = Sim::new(seed);
    let node = sim.node("store", IpAddr::V4(Ipv4Addr::LOCALHOST));
    let disk = sim.disk(node);
    (sim, node, disk)
}

/// The acknowledgements of the writers of one incarnation.
#[derive(Clone, Copy, Default, Debug)]
struct Acknowledgements {
    tried: u64,
    acknowledged: u64,
}

type Ledger = Arc<Mutex<BTreeMap<u64, Acknowledgements>>>;

fn open(disk: &SimDisk, env: EnvRef) -> Kv {
    // A small log, so that checkpoints and recoveries overlap with the work.
    let config = Config { log_bytes: 16 << 10, cache_bytes: 1 << 20, ..Config::default() };
    Kv::open(Arc::new(disk.medium("kv")), &["left", "right"], env, config).unwrap()
}

/// Increments one key, twice in one operation, until it fails or its node crashes.
async fn count_up(kv: Kv, key: u64, ledger: Ledger, filler: Bytes) {
    loop {
        let next = {
            let mut ledger = ledger.lock().unwrap();
            let told = ledger.entry(key).or_default();
            told.tried += 1;
            told.tried
        };
        let value = [&next.to_be_bytes()[..], &filler].concat();
        let written = kv
            .update(move |txn| {
                txn.put("left", &key.to_be_bytes(), value.clone());
                txn.put("right", &key.to_be_bytes(), value);
                Ok::<_, ()>(())
            })
            .await;
        if written.is_err() {
            return;
        }
        ledger.lock().unwrap().get_mut(&key).unwrap().acknowledged = next;
    }
}

fn check(kv: &Kv, ledger: &Ledger, seed: u64) {
    let snapshot = kv.snapshot();
    for (key, told) in ledger.lock().unwrap().iter_mut() {
        let read = |table| {
            let value = snapshot.get(table, &key.to_be_bytes()).unwrap();
            value.map_or(0, |value| u64::from_be_bytes(value[..8].try_into().unwrap()))
        };
        let (left, right) = (read("left"), read("right"));
        assert_eq!(left, right, "seed {seed}: half of an operation is there");
        assert!(left >= told.acknowledged, "seed {seed}: key {key} is {left} after {told:?}");
        assert!(left <= told.tried, "seed {seed}: key {key} is {left}, which nobody wrote: {told:?}");
        *told = Acknowledgements { tried: left, acknowledged: left };
    }
}

#[test]
fn the_engine_keeps_what_it_acknowledged_through_crashes_at_any_write() {
    for seed in afs_sim::crash::seeds(40) {
        let (sim, node, disk) = host(seed);
        let mut rng = SimRng::new(seed);
        let ledger = Ledger::default();
        for _ in 0..4 {
            let kv = open(&disk, sim.env(node));
            check(&kv, &ledger, seed);
            for key in 0..KEYS {
                let filler = Bytes::from(vec![7; rng.index(600)]);
                sim.env(node).spawn(Box::pin(count_up(kv.clone(), key, ledger.clone(), filler)));
            }
            disk.crash_after(rng.below(400));
            sim.run_until(LIFE, || !sim.is_up(node)).unwrap();
            sim.restart(node);
        }
        check(&open(&disk, sim.env(node)), &ledger, seed);
    }
}

/// A crash during the recovery from a crash loses nothing either.
#[test]
fn the_engine_survives_crashes_during_recovery() {
    for seed in afs_sim::crash::seeds(40) {
        let (sim, node, disk) = host(seed ^ 0xdead_0000);
        let mut rng = SimRng::new(seed);
        let ledger = Ledger::default();
        for _ in 0..6 {
            disk.crash_after(rng.below(60));
            let config = Config { log_bytes: 8 << 10, cache_bytes: 1 << 20, ..Config::default() };
            let opened = Kv::open(Arc::new(disk.medium("kv")), &["left", "right"], sim.env(node), config);
            if let Ok(kv) = opened {
                check(&kv, &ledger, seed);
                for key in 0..KEYS {
                    sim.env(node).spawn(Box::pin(count_up(kv.clone(), key, ledger.clone(), Bytes::new())));
                }
                sim.run_until(LIFE, || !sim.is_up(node)).unwrap();
            }
            sim.restart(node);
        }
        check(&open(&disk, sim.env(node)), &ledger, seed);
    }
}

/// The synced chunks with their contents.
type Chunks = Arc<Mutex<Vec<(ChunkRef, Bytes)>>>;

fn drive(disk: &SimDisk, env: EnvRef) -> Arc<dyn Drive> {
    Arc::new(SegmentDrive::open(disk.segments("drive"), env, 256 << 10).unwrap())
}

async fn write_chunks(drive: Arc<dyn Drive>, synced: Chunks, mut rng: SimRng) {
    loop {
        let mut written = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let mut data = vec![0; rng.index(40_000) + 1];
            rng.fill(&mut data);
            let data = Bytes::from(data);
            let Ok(chunk) = drive.write(data.clone()).await else { return };
            written.push((chunk, data));
        }
        let chunks: Vec<_> = written.iter().map(|(chunk, _)| *chunk).collect();
        if drive.sync(&chunks).await.is_err() {
            return;
        }
        synced.lock().unwrap().append(&mut written);
        let doomed = {
            let mut synced = synced.lock().unwrap();
            (synced.len() > 8).then(|| {
                let index = rng.index(synced.len());
                synced.swap_remove(index).0
            })
        };
        if let Some(chunk) = doomed
            && drive.discard(vec![chunk]).await.is_err()
        {
            return;
        }
    }
}

#[test]
fn the_drive_keeps_what_it_synced_through_crashes_at_any_write() {
    for seed in afs_sim::crash::seeds(40) {
        let (sim, node, disk) = host(seed ^ 0xbeef_0000);
        let mut rng = SimRng::new(seed);
        let synced = Chunks::default();
        for _ in 0..4 {
            let open = drive(&disk, sim.env(node));
            let known = synced.clone();
            let reader = open.clone();
            let checked = sim.block_on(node, LIFE, async move {
                let known = known.lock().unwrap().clone();
                for (chunk, data) in known {
                    let read = reader.read(chunk, 0..chunk.len).await;
                    assert_eq!(read.unwrap(), data, "seed {seed}: {:?}", chunk.id);
                }
            });
            checked.unwrap();
            for _ in 0..3 {
                let work = write_chunks(open.clone(), synced.clone(), rng.fork());
                sim.env(node).spawn(Box::pin(work));
            }
            disk.crash_after(rng.below(200));
            sim.run_until(LIFE, || !sim.is_up(node)).unwrap();
            sim.restart(node);
        }
    }
}

/// With real threads the order of work varies; here it follows from the seed, and time is simulated.
#[test]
fn a_store_in_the_simulator_runs_the_same_twice() {
    let run = |seed| {
        let (sim, node, disk) = host(seed);
        let kv = open(&disk, sim.env(node));
        let ledger = Ledger::default();
        for key in 0..KEYS {
            sim.env(node).spawn(Box::pin(count_up(kv.clone(), key, ledger.clone(), Bytes::new())));
        }
        let env = sim.env(node);
        let _ = sim.block_on(node, LIFE, async move { env.sleep(Duration::from_millis(50)).await });
        let stats = disk.stats();
        let counts: Vec<u64> = ledger.lock().unwrap().values().map(|told| told.acknowledged).collect();
        (stats, counts)
    };
    assert_eq!(run(5), run(5));
}
