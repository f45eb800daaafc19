//! Damaged stores: they do not open, the check names the file and writes nothing, and the salvage keeps everything but what the check says is lost.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_env::Parts;
use afs_kv::{Config, FileMedium, Kv, Later, LostRows, Medium, Report, salvage};
use afs_sim::crash::{CrashDisk, Rng};

const FILES: [&str; 4] = ["index", "log.a", "log.b", "log.turn"];
const ROWS: &str = "rows";
const LAST: &str = "last";
const TABLES: [&str; 2] = [ROWS, LAST];

fn open(disk: &CrashDisk) -> Result<Kv, afs_kv::OpenError> {
    // Small, so that rotations of the log are frequent.
    let config = Config { log_bytes: 4 << 10, cache_bytes: 1 << 20, ..Config::default() };
    Kv::open(Arc::new(disk.clone()), &TABLES, Parts::inline(), config)
}

fn check(medium: &dyn Medium) -> Result<Report, afs_kv::OpenError> {
    afs_kv::check(medium, &mut ())
}

/// Batch `n + 1` adds row `n`, and names it as the last.
fn put(kv: &Kv, numbers: std::ops::Range<u64>) {
    for n in numbers {
        kv.submit(
            Box::new(move |txn| {
                txn.put(ROWS, &n.to_be_bytes(), vec![n as u8; 300]);
                txn.put(LAST, b"n", n.to_be_bytes().to_vec());
                Ok(())
            }),
            Box::new(|outcome| assert!(matches!(outcome, afs_kv::Outcome::Committed(_)))),
        );
    }
}

/// The numbers of the rows, of which each is right, and the last one by its name.
fn rows(disk: &CrashDisk) -> (Vec<u64>, Option<u64>) {
    let kv = open(disk).unwrap();
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
    let snapshot = kv.snapshot();
    let read = snapshot.range(ROWS, .., false).map(|row| {
        let (key, value) = row.unwrap();
        assert_eq!(value, vec![number(&key) as u8; 300]);
        number(&key)
    });
    let last = snapshot.get(LAST, b"n").unwrap().map(|last| number(&last));
    (read.collect(), last)
}

fn contents(disk: &CrashDisk) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let mut bytes = vec![0; disk.len(&name).unwrap() as usize];
        disk.read_at(&name, 0, &mut bytes).unwrap();
        (name, bytes)
    };
    disk.names().into_iter().map(read).collect()
}

fn write(disk: &CrashDisk, name: &str, bytes: &[u8]) {
    disk.set_len(name, 0).unwrap();
    disk.write_at(name, 0, bytes).unwrap();
    disk.sync(name).unwrap();
}

fn flip(disk: &CrashDisk, name: &str, at: usize, byte: u8) {
    disk.write_at(name, at as u64, &[byte ^ 0x10]).unwrap();
    disk.sync(name).unwrap();
}

/// A store whose index has some of the rows, in several pages, and its files as they were when it was younger.
fn store(batches: u64, stopped: bool) -> (CrashDisk, BTreeMap<String, Vec<u8>>) {
    let disk = CrashDisk::new();
    let kv = open(&disk).unwrap();
    put(&kv, 0..batches / 10);
    let older = contents(&disk);
    put(&kv, batches / 10..batches);
    if stopped {
        kv.checkpoint().unwrap();
    }
    (disk, older)
}

/// Whether the row of a number is in a part of the index that cannot be read.
fn may_be_lost(lost: &[LostRows], table: &str, key: &[u8]) -> bool {
    let at = (TABLES.iter().position(|known| *known == table), key);
    let place = |(table, key): &(String, bytes::Bytes)| {
        (TABLES.iter().position(|known| known == table), key.to_vec())
    };
    lost.iter().any(|lost| {
        let after = lost.after.as_ref().map(place);
        let through = lost.through.as_ref().map(place);
        after.is_none_or(|after| (after.0, &after.1[..]) < at)
            && through.is_none_or(|through| at <= (through.0, &through.1[..]))
    })
}

/// Checks and salvages a damaged store of `batches`; what the check says.
fn examine(damaged: &CrashDisk, batches: u64, at: &str) -> Report {
    let before = contents(damaged);
    let report = check(damaged).unwrap();
    assert!(contents(damaged) == before, "{at}: a check writes nothing");
    match open(&damaged.image(&mut Rng(1))) {
        Ok(_) if report.is_whole() => {
            assert_eq!(rows(&damaged.image(&mut Rng(1))).0, (0..batches).collect::<Vec<_>>(), "{at}");
        }
        Ok(_) => {}
        Err(error) => {
            let names = |damage: &afs_kv::Damage| error.to_string().contains(&damage.file);
            assert!(report.damage.iter().any(names), "{at}: {error}: {report:?}");
        }
    }
    if !report.is_whole() {
        for later in [Later::LeaveOut, Later::Apply] {
            keeps(damaged, &report, batches, later, &format!("{at} {later:?}: {report:?}"));
        }
        assert!(contents(damaged) == before, "{at}: a salvage leaves the damaged store alone");
    }
    report
}

/// The salvaged store has all rows but those that the report says are lost.
fn keeps(damaged: &CrashDisk, report: &Report, batches: u64, later: Later, at: &str) -> usize {
    let new = CrashDisk::new();
    salvage(damaged, Arc::new(new.clone()), &TABLES, later, Parts::inline()).expect(at);
    assert!(check(&new).unwrap().is_whole(), "{at}");
    let (kept, last) = rows(&new);
    let lost = |n: u64| {
        let batch = n + 1;
        let is_lost =
            |lost: &afs_kv::LostBatches| lost.first <= batch && lost.last.is_none_or(|last| batch <= last);
        match later {
            Later::LeaveOut => batch > report.through,
            Later::Apply => report.lost.iter().any(is_lost),
        }
    };
    for n in 0..batches {
        let may_be_lost = lost(n) || may_be_lost(&report.lost_rows, ROWS, &n.to_be_bytes());
        assert!(kept.contains(&n) || may_be_lost, "{at}: row {n} is gone");
        if later == Later::LeaveOut && n + 1 > report.through {
            assert!(!kept.contains(&n), "{at}: row {n} came after what is lost");
        }
    }
    if later == Later::LeaveOut && report.through > 0 && !may_be_lost(&report.lost_rows, LAST, b"n") {
        assert_eq!(last, Some(report.through - 1), "{at}");
    }
    // It goes on, with numbers that were not given before.
    let kv = open(&new).unwrap();
    assert!(kv.snapshot().sequence() >= report.last, "{at}");
    put(&kv, batches..batches + 1);
    drop(kv);
    assert!(rows(&new).0.contains(&batches), "{at}");
    kept.len()
}

#[test]
fn a_store_with_a_file_that_is_missing_empty_zeroed_cut_or_older_is_named_and_salvaged() {
    let mut seen = Report::default();
    for (batches, stopped) in [(5, false), (5, true), (60, false), (67, false), (90, false), (93, true)] {
        let (disk, older) = store(batches, stopped);
        assert!(check(&disk).unwrap().is_whole());
        for name in FILES {
            let len = disk.len(name).unwrap() as usize;
            let bytes = contents(&disk).remove(name).unwrap();
            for (way, bytes) in [
                ("missing", None),
                ("empty", Some(Vec::new())),
                ("zeroed", Some(vec![0; len])),
                ("cut", Some(bytes[..len.min(6000)].to_vec())),
                ("older", older.get(name).cloned()),
            ] {
                let image = disk.image(&mut Rng(1));
                match &bytes {
                    None => image.remove(name).unwrap(),
                    Some(bytes) => write(&image, name, bytes),
                }
                let at = format!("{batches} {stopped} {name} {way}");
                let report = examine(&image, batches, &at);
                if way == "missing" {
                    assert_eq!(report.damage[0].file, name, "{at}: {report:?}");
                }
                seen.later += report.later;
                seen.lost.extend(report.lost);
                seen.lost_rows.extend(report.lost_rows);
            }
        }
    }
    assert!(seen.later > 0 && seen.lost.len() > 10 && !seen.lost_rows.is_empty());
}

#[test]
fn flipped_bits_in_the_log_are_named_and_the_batches_before_them_salvaged() {
    let (mut damaged, mut later) = (0, 0);
    for batches in [8, 66, 75] {
        let (disk, _) = store(batches, false);
        for name in ["log.a", "log.b", "log.turn"] {
            let bytes = contents(&disk).remove(name).unwrap();
            for at in (0..bytes.len()).filter(|at| bytes[*at] != 0).step_by(47) {
                let image = disk.image(&mut Rng(1));
                flip(&image, name, at, bytes[at]);
                let report = examine_but_the_end(&image, batches, &format!("{batches} {name} {at}"));
                damaged += usize::from(!report.is_whole());
                later += report.later;
            }
        }
    }
    assert!(damaged > 50 && later > 50, "{damaged} {later}");
}

/// As [`examine`]; a flipped bit in the last batch cannot be told from a batch that was being written.
fn examine_but_the_end(image: &CrashDisk, batches: u64, at: &str) -> Report {
    let report = check(image).unwrap();
    let has = if report.is_whole() && report.through == batches - 1 { batches - 1 } else { batches };
    examine(image, has, at)
}

#[test]
fn flipped_bits_in_the_index_are_found_at_the_opening_and_cost_no_more_than_the_rows_of_one_page() {
    let (mut damaged, mut of_rows, mut lost) = (0, 0, 0);
    let (disk, _) = store(120, true);
    let bytes = contents(&disk).remove("index").unwrap();
    for page in (0..bytes.len()).step_by(4096) {
        for at in [0, 2, 9, 21, 70, 120, 200, 1000, 2600].map(|at| page + at) {
            if bytes[at] == 0 {
                continue;
            }
            let image = disk.image(&mut Rng(1));
            flip(&image, "index", at, bytes[at]);
            let report = check(&image).unwrap();
            if report.is_whole() {
                assert_eq!(rows(&image.image(&mut Rng(1))).0.len(), 120, "{at}");
                continue;
            }
            assert!(report.damage.iter().all(|damage| damage.file == "index"), "{at}: {report:?}");
            damaged += 1;
            of_rows += usize::from(report.damage.iter().any(|damage| damage.what.ends_with("of its rows")));
            let opened = open(&image.image(&mut Rng(1))).map(drop);
            let said = opened.expect_err("a damaged page is served").to_string();
            assert!(said.contains("index "), "{at}: {said}: {report:?}");
            lost += usize::from(!report.lost_rows.is_empty());
            for later in [Later::LeaveOut, Later::Apply] {
                let kept = keeps(&image, &report, 120, later, &format!("index {at}: {report:?}"));
                assert!(kept >= 100, "{at}: {kept} rows of 120: {report:?}");
                assert!(!report.keeps_nothing(false), "{at}");
            }
        }
    }
    assert!(damaged > 20 && lost > 10 && of_rows > 10, "{damaged} {lost} {of_rows}");
}

#[test]
fn a_store_that_is_new_or_was_only_begun_is_whole() {
    assert!(check(&CrashDisk::new()).unwrap().is_whole());
    let disk = CrashDisk::new();
    drop(open(&disk).unwrap());
    assert!(check(&disk).unwrap().is_whole());
    let into = Arc::new(disk.clone());
    assert!(salvage(&disk, into, &TABLES, Later::LeaveOut, Parts::inline()).is_err(), "it is not empty");
}

#[test]
fn a_store_that_is_open_is_not_checked_and_a_check_makes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("store");
    let medium = FileMedium::open(&place).unwrap();
    let busy = FileMedium::read_only(&place).map(|_| ()).unwrap_err();
    assert_eq!(busy.kind(), std::io::ErrorKind::ResourceBusy);
    let kv = Kv::open(Arc::new(medium), &TABLES, Parts::inline(), Config::default()).unwrap();
    assert!(FileMedium::read_only(&place).is_err(), "the medium is gone, and the store is open");
    drop(kv);
    assert!(check(&FileMedium::read_only(&place).unwrap()).unwrap().is_whole());
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    let read = FileMedium::read_only(&place).unwrap();
    assert!(check(&read).unwrap().is_whole());
    assert!(read.remove("index").is_err() && read.open("index").is_err());
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}
