//! A full medium: rows are removed on it for as long as there are any, whatever filled it.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use afs_env::Parts;
use afs_kv::{Abandon, Config, Kv, KvError, Outcome};
use afs_sim::crash::{CrashDisk, Rng};

const TABLE: &str = "rows";

fn open(disk: &CrashDisk) -> Kv {
    let config = Config { cache_bytes: 4 << 20, ..Config::default() };
    Kv::open(Arc::new(disk.clone()), &[TABLE], Parts::inline(), config).unwrap()
}

/// Adds a row, as a change that needs room does it.
fn add(kv: &Kv, n: u64) -> Result<(), KvError> {
    let (asked, outcome) = (kv.clone(), Arc::new(Mutex::new(None)));
    let kept = outcome.clone();
    kv.submit(
        Box::new(move |txn| {
            if asked.is_short() {
                return Err(Abandon);
            }
            txn.put(TABLE, &key(n), vec![n as u8; 1000]);
            Ok(())
        }),
        Box::new(move |outcome| *kept.lock().unwrap() = Some(outcome)),
    );
    let outcome = outcome.lock().unwrap().take().unwrap();
    match outcome {
        Outcome::Committed(_) => Ok(()),
        Outcome::Abandoned => Err(KvError::NoSpace),
        Outcome::Failed(error) => Err(error),
    }
}

fn remove(kv: &Kv, n: u64) {
    kv.submit(
        Box::new(move |txn| {
            txn.delete(TABLE, &key(n));
            Ok(())
        }),
        Box::new(move |outcome| assert!(matches!(outcome, Outcome::Committed(_)), "row {n}: {outcome:?}")),
    );
}

/// Scattered over all pages, as names are.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn count(kv: &Kv) -> u64 {
    kv.snapshot().range(TABLE, .., false).map(Result::unwrap).count() as u64
}

/// Fills a disk that has room for some more bytes; returns how many rows there are.
fn fill(kv: &Kv, disk: &CrashDisk, room: u64) -> u64 {
    disk.set_capacity(Some(disk.used() + room));
    let refused = (0..200_000).map(|n| (n, add(kv, n))).find(|(_, added)| added.is_err());
    let (rows, refusal) = refused.expect("a full medium takes rows without end");
    assert!(matches!(refusal, Err(KvError::NoSpace)), "{refusal:?}");
    rows
}

#[test]
fn rows_are_removed_from_a_full_medium_until_none_is_left() {
    // The disk is full while turns are short, and when the log has its whole length.
    for room in [0, 300_000, 12 << 20, 80 << 20] {
        let disk = CrashDisk::new();
        let kv = open(&disk);
        let rows = fill(&kv, &disk, room);
        // Others take the rest.
        disk.set_capacity(Some(disk.used()));
        for n in 0..rows {
            remove(&kv, n);
            // Those who want to add go on asking.
            let _ = add(&kv, rows + n);
        }
        (0..rows).for_each(|n| remove(&kv, rows + n));
        assert_eq!(count(&kv), 0, "{room}");

        // With room again rows are taken at once.
        disk.set_capacity(None);
        add(&kv, 7).unwrap_or_else(|error| panic!("{room}: {error}"));
        drop(kv);
        assert_eq!(count(&open(&disk.image(&mut Rng(1)))), 1);
    }
}

#[test]
fn what_is_removed_is_room_for_other_rows_although_the_medium_stays_full() {
    let disk = CrashDisk::new();
    let kv = open(&disk);
    let rows = fill(&kv, &disk, 12 << 20);
    disk.set_capacity(Some(disk.used()));
    (0..rows * 3 / 4).for_each(|n| remove(&kv, n));
    kv.checkpoint().unwrap();
    assert!((0..100).all(|n| add(&kv, n).is_ok()), "{rows} rows were there");
}
