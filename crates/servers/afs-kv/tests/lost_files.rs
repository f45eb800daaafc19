//! Files of a store that are missing, empty, zeroed, or older copies: everything that was acknowledged is there, or the store does not open.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_env::Parts;
use afs_kv::{Config, Kv, KvError, OpenError};
use afs_sim::crash::{CrashDisk, Rng};

const FILES: [&str; 4] = ["index", "log.a", "log.b", "log.turn"];
const TABLE: &str = "rows";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    Missing,
    Empty,
    Zeroed,
    /// As it was when the store was younger.
    Older,
}

fn open(disk: &CrashDisk) -> Result<Kv, OpenError> {
    // Small, so that rotations of the log are frequent.
    let config = Config { log_bytes: 4 << 10, cache_bytes: 1 << 20, ..Config::default() };
    Kv::open(Arc::new(disk.clone()), &[TABLE], Parts::inline(), config)
}

/// Commits batches, of which each is acknowledged.
fn put(kv: &Kv, numbers: std::ops::Range<u64>) {
    for n in numbers {
        kv.submit(
            Box::new(move |txn| {
                txn.put(TABLE, &n.to_be_bytes(), vec![n as u8; 300]);
                Ok(())
            }),
            Box::new(|outcome| assert!(matches!(outcome, afs_kv::Outcome::Committed(_)))),
        );
    }
}

fn count(kv: &Kv) -> u64 {
    let rows: Result<Vec<_>, _> = kv.snapshot().range(TABLE, .., false).collect();
    rows.unwrap().len() as u64
}

fn contents(disk: &CrashDisk) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let mut bytes = vec![0; disk.len(&name).unwrap() as usize];
        disk.read_at(&name, 0, &mut bytes).unwrap();
        (name, bytes)
    };
    disk.names().into_iter().map(read).collect()
}

fn harm(disk: &CrashDisk, name: &str, damage: Damage, older: &BTreeMap<String, Vec<u8>>) {
    let len = disk.len(name).unwrap() as usize;
    let bytes = match damage {
        Damage::Missing => return disk.remove(name).unwrap(),
        Damage::Empty => Vec::new(),
        Damage::Zeroed => vec![0; len],
        Damage::Older => older.get(name).cloned().unwrap_or_default(),
    };
    disk.set_len(name, 0).unwrap();
    disk.write_at(name, 0, &bytes).unwrap();
    disk.sync(name).unwrap();
}

/// What became of a store of `batches` batches with each file harmed in each way; true where it did not open.
fn refusals(disk: &CrashDisk, batches: u64, older: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, bool> {
    let mut refused = BTreeMap::new();
    for name in FILES {
        for damage in [Damage::Missing, Damage::Empty, Damage::Zeroed, Damage::Older] {
            let image = disk.image(&mut Rng(1));
            harm(&image, name, damage, older);
            let at = format!("{name} {damage:?}");
            let before = contents(&image);
            let is_refused = match open(&image) {
                Ok(kv) => {
                    assert_eq!(count(&kv), batches, "{at}: acknowledged batches are lost");
                    false
                }
                Err(OpenError::Kv(KvError::Corrupt(_)) | OpenError::NotAStore) => {
                    let after = contents(&image);
                    let of_log = |name: &String| name.starts_with("log.");
                    let log = |files: &BTreeMap<String, Vec<u8>>| -> Vec<_> {
                        files
                            .iter()
                            .filter(|(name, _)| of_log(name))
                            .map(|(n, b)| (n.clone(), b.clone()))
                            .collect()
                    };
                    assert!(
                        log(&before) == log(&after),
                        "{at}: the log of a store that does not open is left alone"
                    );
                    true
                }
                Err(error) => panic!("{at}: {error}"),
            };
            refused.insert(at, is_refused);
        }
    }
    refused
}

#[test]
fn a_young_store_whose_only_log_is_gone_does_not_open_as_an_empty_one() {
    let disk = CrashDisk::new();
    let kv = open(&disk).unwrap();
    let older = contents(&disk.image(&mut Rng(1)));
    put(&kv, 0..5);
    let refused = refusals(&disk, 5, &older);
    for damage in ["Missing", "Empty", "Zeroed", "Older"] {
        assert!(refused[&format!("log.a {damage}")], "{refused:?}");
    }
    // All files of the log are removed.
    let image = disk.image(&mut Rng(1));
    FILES[1..].iter().for_each(|name| image.remove(name).unwrap());
    assert!(open(&image).is_err());
    let image = disk.image(&mut Rng(1));
    FILES[1..].iter().for_each(|name| harm(&image, name, Damage::Empty, &older));
    assert!(open(&image).is_err());
}

#[test]
fn a_store_of_many_turns_loses_nothing_or_does_not_open_whichever_file_is_harmed() {
    for batches in (60..100).step_by(3) {
        let disk = CrashDisk::new();
        let kv = open(&disk).unwrap();
        put(&kv, 0..20);
        let older = contents(&disk.image(&mut Rng(1)));
        put(&kv, 20..batches);
        let refused = refusals(&disk, batches, &older);
        assert!(FILES.iter().all(|name| refused[&format!("{name} Missing")]), "{refused:?}");
        let of_log = |name: &str| refused[&format!("{name} Zeroed")];
        assert!(of_log("log.a") || of_log("log.b"), "the current turn is in one of them: {refused:?}");
    }
}

#[test]
fn a_store_that_was_stopped_has_everything_in_its_index() {
    let disk = CrashDisk::new();
    let kv = open(&disk).unwrap();
    let older = contents(&disk.image(&mut Rng(1)));
    put(&kv, 0..5);
    kv.checkpoint().unwrap();
    drop(kv);
    let refused = refusals(&disk, 5, &older);
    for damage in ["Empty", "Zeroed", "Older"] {
        assert!(!refused[&format!("log.a {damage}")], "nothing is lost with it: {refused:?}");
    }
    assert!(refused["index Older"], "{refused:?}");
    // It goes on, and is as careful as before.
    let kv = open(&disk).unwrap();
    put(&kv, 5..8);
    let refused = refusals(&disk, 8, &older);
    assert!(refused["log.a Zeroed"] || refused["log.b Zeroed"], "{refused:?}");
}
