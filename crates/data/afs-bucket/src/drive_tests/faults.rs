//! Tests of single faults of a store, in simulated time.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use afs_env::future::join_all;
use afs_sim::Sim;
use afs_sim::crash::seeds;

use super::faulty_bucket::{FaultyBucket, Rates};
use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// Runs `work` with a drive on a store that may be made faulty.
pub(super) fn with_drive<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    work: impl FnOnce(BucketDrive, FaultyBucket, MemoryBucket, EnvRef) -> F + Send + 'static,
) {
    let sim = Sim::new(seed);
    let node = sim.node("server", IpAddr::V4(Ipv4Addr::LOCALHOST));
    let (env, objects) = (sim.env(node), MemoryBucket::default());
    let bucket = FaultyBucket::new(&objects, env.clone(), sim.fork_rng(), None);
    let run = async move {
        let drive = BucketDrive::create(Arc::new(bucket.clone()), OWNER, env.clone(), small()).await.unwrap();
        work(drive, bucket, objects, env).await;
    };
    sim.block_on(node, HOUR, run).unwrap_or_else(|hang| panic!("{hang}"));
}

pub(super) const ALWAYS: u32 = 1_000_000;

#[test]
fn an_outage_fails_the_sync_and_loses_nothing() {
    with_drive(11, |drive, bucket, objects, env| async move {
        let first = drive.write(data(1, 300_000)).await.unwrap();
        bucket.set(Rates { busy: ALWAYS, ..Rates::default() });
        let began = env.now();
        let error = drive.sync(&[]).await.unwrap_err().to_string();
        assert!(error.contains("packs/0000000100000000") && error.contains("503 Slow Down"), "{error}");
        let took = env.now().saturating_since(began);
        assert!(took < Duration::from_secs(80), "attempts end: {took:?}");
        assert_eq!(drive.read(first, 0..300_000).await.unwrap(), data(1, 300_000));
        bucket.set(Rates::default());
        let second = drive.write(data(2, 300_000)).await.unwrap();
        drive.sync(&[]).await.unwrap();
        assert_eq!(packs_in(&objects).len(), 2);
        for (chunk, seed) in [(first, 1), (second, 2)] {
            assert_eq!(drive.read(chunk, 0..300_000).await.unwrap(), data(seed, 300_000));
        }
    });
}

#[test]
fn writes_wait_for_the_store_in_bounded_memory_and_time() {
    for seed in seeds(6) {
        with_drive(seed, |drive, bucket, _, _| async move {
            drive.write(data(0, 1000)).await.unwrap();
            bucket.set(Rates { silent: ALWAYS, ..Rates::default() });
            let mut written = 0;
            let error = loop {
                match drive.write(data(1, 1_000_000)).await {
                    Ok(_) => written += 1,
                    Err(error) => break error.to_string(),
                }
            };
            assert!((4..=6).contains(&written), "{written} packs in memory");
            assert!(error.contains("no reply in time"), "{error}");
            bucket.set(Rates::default());
            while drive.write(data(1, 1_000_000)).await.is_err() {}
            // Puts that began before may still fail.
            while drive.sync(&[]).await.is_err() {}
        });
    }
}

#[test]
fn packs_to_be_deleted_are_listed_once_however_often_that_fails_while_the_store_is_away() {
    with_drive(11, |drive, bucket, objects, _| async move {
        let mut chunks = Vec::new();
        for n in 0..20 {
            chunks.push(drive.write(data(n, 1000)).await.unwrap());
            drive.sync(&[]).await.unwrap();
        }
        let doomed = |drive: &BucketDrive| drive.0.packs.lock().doomed(usize::MAX).len();
        for rates in
            [Rates { busy: ALWAYS, ..Rates::default() }, Rates { broken: ALWAYS, ..Rates::default() }]
        {
            bucket.set(rates);
            for _ in 0..10 {
                drive.discard(chunks.clone()).await.unwrap_err();
                assert_eq!(doomed(&drive), 20);
            }
        }
        bucket.set(Rates::default());
        drive.discard(Vec::new()).await.unwrap();
        assert_eq!((doomed(&drive), packs_in(&objects).len()), (0, 0));
    });
}

#[test]
fn a_put_whose_reply_is_lost_is_recognised() {
    for seed in seeds(8) {
        with_drive(seed, move |drive, bucket, objects, _| async move {
            drive.write(data(0, 10)).await.unwrap();
            bucket.set(Rates { broken: 400_000, ..Rates::default() });
            for n in 0..8u8 {
                let chunk = drive.write(data(n.wrapping_add(seed as u8), 700_000)).await.unwrap();
                drive.sync(&[]).await.unwrap();
                assert_eq!(
                    drive.read(chunk, whole(chunk)).await.unwrap(),
                    data(n.wrapping_add(seed as u8), 700_000)
                );
            }
            assert_eq!(packs_in(&objects).len(), 8);
        });
    }
}

#[test]
fn concurrent_syncs_share_packs() {
    with_drive(11, |drive, _, objects, _| async move {
        let stores = (0..20).map(|n| {
            let drive = drive.clone();
            async move {
                let chunk = drive.write(data(n, 20_000)).await.unwrap();
                drive.sync(&[]).await.unwrap();
                chunk
            }
        });
        let chunks = join_all(stores).await;
        assert_eq!(chunks.len(), 20);
        assert!(packs_in(&objects).len() <= 3, "{:?}", objects.objects());
    });
}

#[test]
fn a_late_listing_is_not_taken_for_a_loss() {
    with_drive(11, |drive, bucket, _, env| async move {
        let kept = drive.write(data(1, 500)).await.unwrap();
        drive.sync(&[]).await.unwrap();
        bucket.set(Rates { late: ALWAYS, ..Rates::default() });
        let next = BucketDrive::open(Arc::new(bucket.clone()), OWNER, env, small()).await.unwrap();
        next.continue_after(kept.id);
        let report = next.sweep(Arc::new(Live(vec![kept]))).await.unwrap();
        assert_eq!((report.segments, report.live, report.missing.len()), (1, 1, 0));
        let gone = ChunkRef { id: ChunkId::from_parts(1 << 32 | 7, 24), ..kept };
        let report = next.sweep(Arc::new(Live(vec![kept, gone]))).await.unwrap();
        assert_eq!(report.missing, [gone.id]);
        assert_eq!(next.read(kept, 0..500).await.unwrap(), data(1, 500));
    });
}
