//! Upgrade of a store of format 1, whose log has records without a salt, when it is opened.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use afs_env::Parts;
use afs_kv::{Config, FileMedium, Kv, OpenError, Outcome};
use afs_sim::crash::{CrashDisk, Rng};
use redb::{Database, ReadableDatabase, TableDefinition};

const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

fn open(disk: &CrashDisk) -> Result<Kv, OpenError> {
    Kv::open(Arc::new(disk.clone()), &["a"], Parts::inline(), Config::default())
}

fn put(kv: &Kv, key: &'static [u8]) {
    kv.submit(
        Box::new(move |txn| {
            txn.put("a", key, key);
            Ok(())
        }),
        Box::new(|outcome| assert!(matches!(outcome, Outcome::Committed(_)))),
    );
}

fn keys(kv: &Kv) -> Vec<Vec<u8>> {
    kv.snapshot().range("a", .., false).map(|row| row.unwrap().0.to_vec()).collect()
}

/// One row in the base, of batch 1, and records of batches 2 and 3 in the log.
fn store_of_format_1(planted: &[u8]) -> CrashDisk {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let medium = FileMedium::open(&path).unwrap();
    let kv = Kv::open(Arc::new(medium), &["a"], Parts::inline(), Config::default()).unwrap();
    put(&kv, b"in the base");
    kv.checkpoint().unwrap();
    drop(kv);
    let base = Database::open(path.join("index")).unwrap();
    assert_eq!(meta(&base, "applied"), 1);
    assert_eq!(meta(&base, "format"), 2);
    let txn = base.begin_write().unwrap();
    txn.open_table(META).unwrap().insert("format", 1).unwrap();
    txn.commit().unwrap();
    drop(base);
    let mut log = [record(2, b"second", planted), record(3, b"third", b"")].concat();
    log.extend_from_slice(&record(4, b"torn", b"")[..36]);
    let disk = CrashDisk::new();
    disk.write_at("index", 0, &std::fs::read(path.join("index")).unwrap()).unwrap();
    disk.write_at("log.0", 0, &log).unwrap();
    disk.write_at("log.1", 0, planted).unwrap();
    disk.names().iter().for_each(|name| disk.sync(name).unwrap());
    disk
}

fn record(sequence: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    row.extend_from_slice(&(1 + key.len() as u32).to_le_bytes());
    row.extend_from_slice(&(value.len() as u32).to_le_bytes());
    row.push(1);
    row.extend_from_slice(key);
    row.extend_from_slice(value);
    let mut out = vec![0; 24];
    out[..4].copy_from_slice(b"AKL1");
    out[8..16].copy_from_slice(&sequence.to_le_bytes());
    out[16..20].copy_from_slice(&(row.len() as u32).to_le_bytes());
    out[20..24].copy_from_slice(&1u32.to_le_bytes());
    out.extend_from_slice(&row);
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn meta(base: &Database, key: &str) -> u64 {
    base.begin_read().unwrap().open_table(META).unwrap().get(key).unwrap().unwrap().value()
}

fn format_of(disk: &CrashDisk, scratch: &Path) -> u64 {
    let mut bytes = vec![0; disk.len("index").unwrap() as usize];
    disk.read_at("index", 0, &mut bytes).unwrap();
    std::fs::write(scratch, bytes).unwrap();
    meta(&Database::open(scratch).unwrap(), "format")
}

const ALL: [&[u8]; 3] = [b"in the base", b"second", b"third"];

#[test]
fn a_log_of_format_1_is_taken_over_and_older_programs_are_told() {
    let disk = store_of_format_1(b"");
    let kv = open(&disk).unwrap();
    assert_eq!(keys(&kv), ALL);
    assert_eq!(kv.snapshot().sequence(), 3);
    drop(kv);
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(format_of(&disk, &directory.path().join("copy")), 2);
    let kv = open(&disk).unwrap();
    put(&kv, b"zz");
    drop(kv);
    assert_eq!(disk.names(), ["index", "log.a", "log.b", "log.turn", "spare"]);
    assert_eq!(keys(&open(&disk).unwrap()).len(), 4);
}

#[test]
fn a_power_cut_at_any_moment_of_the_takeover_loses_nothing() {
    let whole = store_of_format_1(b"");
    for crash_after in 1.. {
        let disk = whole.image(&mut Rng(0));
        disk.crash_after(crash_after);
        if let Ok(kv) = open(&disk) {
            put_if_alive(&kv);
        }
        let died = disk.is_dead();
        let kv = open(&disk.image(&mut Rng(crash_after))).unwrap();
        assert_eq!(keys(&kv)[..3], ALL, "crash after {crash_after}");
        if !died {
            break;
        }
    }
}

fn put_if_alive(kv: &Kv) {
    kv.submit(
        Box::new(|txn| {
            txn.put("a", b"zz", &b"new"[..]);
            Ok(())
        }),
        Box::new(drop),
    );
}

#[test]
fn data_in_a_log_of_format_1_is_never_read_as_a_log_of_format_2() {
    // The header of a turn of format 2 and a record of it, at the offsets of format 2.
    let salt = [9; 16];
    let mut turn = vec![0; 4096];
    turn[..4].copy_from_slice(b"AKT2");
    turn[8..24].copy_from_slice(&salt);
    turn[24..32].copy_from_slice(&4u64.to_le_bytes());
    let sum = crc32c::crc32c(&turn[8..32]);
    turn[4..8].copy_from_slice(&sum.to_le_bytes());
    let mut planted = turn.repeat(2);
    let row = [&4u32.to_le_bytes()[..], &0u32.to_le_bytes(), b"\x01bad"].concat();
    let mut forged = vec![0; 40];
    forged[..4].copy_from_slice(b"AKL2");
    forged[8..24].copy_from_slice(&salt);
    forged[24..32].copy_from_slice(&4u64.to_le_bytes());
    forged[32..36].copy_from_slice(&(row.len() as u32).to_le_bytes());
    forged[36..40].copy_from_slice(&1u32.to_le_bytes());
    forged.extend_from_slice(&row);
    let sum = crc32c::crc32c(&forged[8..]);
    forged[4..8].copy_from_slice(&sum.to_le_bytes());
    planted.extend_from_slice(&forged);
    let disk = store_of_format_1(&planted);
    for _ in 0..3 {
        assert_eq!(keys(&open(&disk).unwrap()), ALL);
    }
    // In a log of format 2 it would be accepted: the forgery is complete.
    let disk = store_of_format_1(b"");
    drop(open(&disk).unwrap());
    disk.write_at("log.b", 0, &planted).unwrap();
    assert_eq!(keys(&open(&disk).unwrap()).len(), 4);
}
