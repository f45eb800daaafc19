//! Power failures at every point: acknowledged batches survive, and every batch is complete or absent.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use afs_env::{Job, Parts};
use afs_kv::{Config, Kv, KvError, OpenError, Outcome};
use afs_sim::crash::{CrashDisk, Rng, seeds};

const TABLES: &[&str] = &["left", "right"];

fn config() -> Config {
    // Small, so that rotations of the log and checkpoints are frequent.
    Config { log_bytes: 4 << 10, cache_bytes: 1 << 20, batch_operations: 8, batch_bytes: 1 << 20 }
}

fn open(disk: &CrashDisk) -> Result<Kv, OpenError> {
    Kv::open(Arc::new(disk.clone()), TABLES, Parts::inline(), config())
}

/// Operation `n` sets a row in each table, removes another, and increments a count, so that any mixture of two
/// operations is detected.
fn submit(kv: &Kv, n: u64, acknowledged: &Arc<Mutex<u64>>) {
    let acknowledged = acknowledged.clone();
    kv.submit(
        Box::new(move |txn| {
            let value = vec![n as u8; (n * 37 % 600) as usize];
            txn.put("left", &(n % 23).to_be_bytes(), value.clone());
            txn.put("right", &(n % 23).to_be_bytes(), value);
            txn.delete("right", &((n + 7) % 23).to_be_bytes());
            txn.put("left", b"count", n.to_be_bytes().to_vec());
            Ok(())
        }),
        Box::new(move |outcome| {
            if matches!(outcome, Outcome::Committed(_)) {
                *acknowledged.lock().unwrap() = n;
            }
        }),
    );
}

type Rows = std::collections::BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn model(count: u64) -> Rows {
    let mut rows = Rows::new();
    for n in 1..=count {
        let value = vec![n as u8; (n * 37 % 600) as usize];
        rows.insert(("left".into(), (n % 23).to_be_bytes().to_vec()), value.clone());
        rows.insert(("right".into(), (n % 23).to_be_bytes().to_vec()), value);
        rows.remove(&("right".into(), ((n + 7) % 23).to_be_bytes().to_vec()));
        rows.insert(("left".into(), b"count".to_vec()), n.to_be_bytes().to_vec());
    }
    rows
}

/// Checks that the store's contents are those after a number of complete operations, and returns that number.
fn check(kv: &Kv) -> u64 {
    let snapshot = kv.snapshot();
    let count = snapshot.get("left", b"count").unwrap();
    let count = count.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()));
    let mut rows = Rows::new();
    for table in TABLES {
        for row in snapshot.range(table, .., false) {
            let (key, value) = row.unwrap();
            rows.insert(((*table).to_owned(), key.to_vec()), value.to_vec());
        }
    }
    assert!(rows == model(count), "the store is not what {count} operations leave");
    count
}

fn crash_and_recover(seed: u64) {
    let mut rng = Rng(seed);
    let mut disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    for _ in 0..4 {
        disk.crash_after(1 + rng.below(120));
        if let Ok(kv) = open(&disk) {
            let reached = check(&kv);
            assert!(reached >= *acknowledged.lock().unwrap(), "acknowledged operations are lost");
            let mut next = reached;
            while !disk.is_dead() && next < reached + 500 {
                next += 1;
                submit(&kv, next, &acknowledged);
            }
        }
        disk = disk.image(&mut rng);
    }
    let kv = open(&disk).unwrap();
    assert!(check(&kv) >= *acknowledged.lock().unwrap(), "acknowledged operations are lost");
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_acknowledged() {
    for seed in seeds(150) {
        let result = std::panic::catch_unwind(|| crash_and_recover(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

#[test]
fn a_batch_is_kept_whole_or_not_at_all() {
    // Operations queue while blocking work is delayed, so that one batch has many.
    for seed in seeds(50) {
        let mut rng = Rng(seed ^ 0xba7c);
        let disk = CrashDisk::new();
        let held: Arc<Mutex<Vec<Job>>> = Arc::default();
        let keep = held.clone();
        let env = Parts::default().with_blocking(move |job| keep.lock().unwrap().push(job)).shared();
        let kv = Kv::open(Arc::new(disk.clone()), TABLES, env, config()).unwrap();
        let acknowledged = Arc::new(Mutex::new(0));
        disk.crash_after(1 + rng.below(60));
        let mut next = 0;
        while !disk.is_dead() {
            for _ in 0..rng.below(20) {
                next += 1;
                submit(&kv, next, &acknowledged);
            }
            let jobs: Vec<Job> = std::mem::take(&mut *held.lock().unwrap());
            jobs.into_iter().for_each(|job| job());
        }
        let recovered = open(&disk.image(&mut rng)).unwrap();
        assert!(check(&recovered) >= *acknowledged.lock().unwrap(), "seed {seed}");
    }
}

#[test]
fn damage_to_what_was_acknowledged_is_an_error_and_not_a_loss() {
    let disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    let kv = open(&disk).unwrap();
    (1..3).for_each(|n| submit(&kv, n, &acknowledged));
    let image = disk.image(&mut Rng(1));
    let before_last = record_end(&image);
    submit(&kv, 3, &acknowledged);
    drop(kv);
    // Any bit of the records before the last: their fixed parts, their lengths, their rows.
    for at in RECORDS_START..before_last {
        let image = disk.image(&mut Rng(1));
        image.damage("log.a", at);
        match open(&image) {
            Err(OpenError::Kv(KvError::Corrupt(_))) => {}
            Err(error) => panic!("{error}"),
            // The padding.
            Ok(kv) => assert_eq!(check(&kv), 3, "damage at {at}"),
        }
    }
    // A damaged last record cannot be distinguished from one that was being written.
    let image = disk.image(&mut Rng(1));
    image.damage("log.a", before_last + 50);
    assert_eq!(check(&open(&image).unwrap()), 2);
}

/// Offset of the first record in a file of the log.
const RECORDS_START: usize = 8192;

/// Offset after the last byte of the log that is not zero, rounded up to the end of a record.
fn record_end(disk: &CrashDisk) -> usize {
    let mut bytes = vec![0; disk.len("log.a").unwrap() as usize];
    disk.read_at("log.a", 0, &mut bytes).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    (last + 1).next_multiple_of(8)
}

#[test]
fn a_damaged_beginning_of_the_log_loses_nothing() {
    let disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    let kv = open(&disk).unwrap();
    (1..4).for_each(|n| submit(&kv, n, &acknowledged));
    drop(kv);
    for at in (0..32).chain(4096..4096 + 32) {
        let image = disk.image(&mut Rng(1));
        image.damage("log.a", at);
        assert_eq!(check(&open(&image).unwrap()), 3, "damage at {at}");
    }
}

#[test]
fn a_turn_that_begins_behind_what_the_other_file_holds_is_damage() {
    let disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    // The checkpoint is delayed, so that both files of the log are needed.
    let held: Arc<Mutex<Vec<Job>>> = Arc::default();
    let keep = held.clone();
    let env = Parts::default().with_blocking(move |job| keep.lock().unwrap().push(job)).shared();
    let kv = Kv::open(Arc::new(disk.clone()), TABLES, env, config()).unwrap();
    let mut n = 0;
    while disk.len("log.b").unwrap() == 0 {
        n += 1;
        submit(&kv, n, &acknowledged);
        let draining = held.lock().unwrap().pop().unwrap();
        draining();
    }
    assert_eq!(*acknowledged.lock().unwrap(), n);
    let image = disk.image(&mut Rng(1));
    image.damage("log.b", RECORDS_START + 50);
    // The last record of the first file is lost too.
    let end = record_end(&image);
    image.damage("log.a", end - 16);
    let error = open(&image).err().unwrap();
    assert!(matches!(error, OpenError::Kv(KvError::Corrupt(_))), "{error}");
}

fn forget_and_recover(seed: u64) {
    let mut rng = Rng(seed ^ 0xf5c);
    let mut disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    for _ in 0..3 {
        disk.set_forgetful(10, Rng(rng.next()));
        disk.crash_after(20 + rng.below(200));
        // Each failure of the log ends a process; the page cache survives it.
        while !disk.is_dead() {
            let Ok(kv) = open(&disk) else { continue };
            let reached = check(&kv);
            assert!(reached >= *acknowledged.lock().unwrap(), "acknowledged operations are lost");
            for next in reached + 1..=reached + rng.below(40) {
                submit(&kv, next, &acknowledged);
                if *acknowledged.lock().unwrap() < next {
                    break;
                }
            }
        }
        disk = disk.image(&mut rng);
    }
    let kv = open(&disk).unwrap();
    assert!(check(&kv) >= *acknowledged.lock().unwrap(), "acknowledged operations are lost");
}

#[test]
fn a_sync_that_fails_and_forgets_what_it_had_to_write_loses_nothing_acknowledged() {
    for seed in seeds(150) {
        let result = std::panic::catch_unwind(|| forget_and_recover(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// A part of a write behind the old end of the index had reached the disk, and the new length had not.
#[test]
fn an_index_that_ends_within_a_page_is_opened() {
    forget_and_recover(269);
}

#[test]
fn a_failed_sync_stops_commits_until_the_store_is_opened_again() {
    let disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    let kv = open(&disk).unwrap();
    submit(&kv, 1, &acknowledged);
    disk.set_failing_syncs(true);
    submit(&kv, 2, &acknowledged);
    disk.set_failing_syncs(false);
    submit(&kv, 3, &acknowledged);
    assert_eq!(*acknowledged.lock().unwrap(), 1);
    assert_eq!(check(&kv), 1);
    drop(kv);
    let kv = open(&disk).unwrap();
    let reached = check(&kv);
    assert!((1..=2).contains(&reached));
    submit(&kv, reached + 1, &acknowledged);
    assert_eq!(check(&kv), reached + 1);
}

/// What becomes of the two kinds of hooks of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hooks {
    visible: bool,
    unless_lost: bool,
}

/// Commits an operation with both kinds of hooks, which hold the store as those of a user of it do; nothing may be left of it.
fn hooked(disk: &CrashDisk, prepare: impl FnOnce()) -> Hooks {
    let kv = open(disk).unwrap();
    let ran = Arc::new(Mutex::new(Hooks { visible: false, unless_lost: false }));
    let engine = Arc::new(kv.clone());
    let (one, other) = ((engine.clone(), ran.clone()), (engine.clone(), ran.clone()));
    prepare();
    kv.submit(
        Box::new(move |txn| {
            txn.put("left", b"hooked", &b"x"[..]);
            txn.before_visible(move |_| {
                let (_kv, ran) = one;
                ran.lock().unwrap().visible = true;
            });
            txn.unless_lost(move || {
                let (_kv, ran) = other;
                ran.lock().unwrap().unless_lost = true;
            });
            Ok(())
        }),
        Box::new(drop),
    );
    drop(kv);
    assert_eq!(Arc::strong_count(&engine), 1, "the hooks are kept, and with them the store");
    *ran.lock().unwrap()
}

#[test]
fn hooks_run_as_far_as_their_operation_may_be_durable_and_none_is_kept() {
    let all = Hooks { visible: true, unless_lost: true };
    let (may_be, lost) = (Hooks { visible: false, ..all }, Hooks { visible: false, unless_lost: false });
    let disk = CrashDisk::new();
    assert_eq!(hooked(&disk, || {}), all);
    // The log's file cannot be extended; the record's write fails; its sync does.
    for (changes, ran) in [(1, lost), (2, may_be), (3, may_be)] {
        let disk = CrashDisk::new();
        assert_eq!(hooked(&disk, || disk.crash_after(changes)), ran, "{changes}");
    }
}

#[test]
fn a_full_medium_refuses_commits_and_loses_nothing() {
    for spare in [0, 1, 300, 5000, 100_000, 400_000, 1 << 20, 3 << 20] {
        let disk = CrashDisk::new();
        let acknowledged = Arc::new(Mutex::new(0));
        let kv = Kv::open(
            Arc::new(disk.clone()),
            &["left", "right", "bulk"],
            Parts::inline(),
            Config { log_bytes: 256 << 10, ..config() },
        )
        .unwrap();
        (1..50).for_each(|n| submit(&kv, n, &acknowledged));
        let used: u64 = disk.names().iter().map(|name| disk.len(name).unwrap()).sum();
        disk.set_capacity(Some(used + spare));
        let refused = Arc::new(Mutex::new(0u64));
        let stored = Arc::new(Mutex::new(0u64));
        for n in 0..400u64 {
            let (refused, stored) = (refused.clone(), stored.clone());
            kv.submit(
                Box::new(move |txn| {
                    txn.put("bulk", &n.to_be_bytes(), vec![n as u8; 50_000]);
                    Ok(())
                }),
                Box::new(move |outcome| match outcome {
                    Outcome::Committed(_) => *stored.lock().unwrap() += 1,
                    Outcome::Failed(KvError::NoSpace) => *refused.lock().unwrap() += 1,
                    other => panic!("{other:?}"),
                }),
            );
        }
        assert!(*refused.lock().unwrap() > 0, "with {spare} bytes to spare");
        let bulk = |kv: &Kv| kv.snapshot().range("bulk", .., false).map(Result::unwrap).count() as u64;
        assert_eq!(bulk(&kv), *stored.lock().unwrap());
        // With space again commits continue, and all data survives a restart.
        disk.set_capacity(None);
        submit(&kv, 50, &acknowledged);
        assert_eq!(*acknowledged.lock().unwrap(), 50, "with {spare} bytes to spare");
        drop(kv);
        let kv = Kv::open(
            Arc::new(disk.image(&mut Rng(spare))),
            &["left", "right", "bulk"],
            Parts::inline(),
            config(),
        )
        .unwrap();
        assert_eq!((check(&kv), bulk(&kv)), (50, *stored.lock().unwrap()));
    }
}

#[test]
fn a_store_on_a_full_medium_can_be_opened_and_read() {
    let disk = CrashDisk::new();
    let acknowledged = Arc::new(Mutex::new(0));
    let kv =
        Kv::open(Arc::new(disk.clone()), TABLES, Parts::inline(), Config { log_bytes: 16 << 20, ..config() })
            .unwrap();
    (1..200).for_each(|n| submit(&kv, n, &acknowledged));
    drop(kv);
    disk.set_capacity(Some(0));
    let kv = open(&disk).unwrap();
    assert_eq!(check(&kv), 199);
}
