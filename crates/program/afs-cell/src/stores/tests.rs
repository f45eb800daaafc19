//! Stores in directories: found, refused while they are open, checked, repaired, and set aside.

use super::{StoresError, find};
use afs_env::Parts;
use afs_kv::{Config, FileMedium, Kv, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const HEADERS: &str = "volume.headers";

fn open(path: &Path) -> Result<Kv, afs_kv::OpenError> {
    let medium = FileMedium::open(path).unwrap();
    Kv::open(Arc::new(medium), afs_volume::TABLES, Parts::inline(), Config::default())
}

fn put(kv: &Kv, numbers: std::ops::Range<u8>) {
    for n in numbers {
        kv.submit(
            Box::new(move |txn| {
                txn.put(HEADERS, &[n], vec![n + 1; 100]);
                Ok(())
            }),
            Box::new(|outcome| assert!(matches!(outcome, Outcome::Committed(_)))),
        );
    }
}

/// A store of a partition with nine rows, of which the first three are in its index.
fn store(state: &Path) -> std::path::PathBuf {
    let path = state.join("vicepa/index");
    fs::create_dir_all(state.join("vicepa")).unwrap();
    let kv = open(&path).unwrap();
    put(&kv, 0..3);
    kv.checkpoint().unwrap();
    put(&kv, 3..9);
    path
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let file =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    fs::read_dir(directory).unwrap().map(|entry| file(entry.unwrap())).collect()
}

/// Harms the record of a row in the log.
fn harm(path: &Path, n: u8) {
    for name in ["log.a", "log.b"] {
        let mut bytes = fs::read(path.join(name)).unwrap();
        if let Some(at) = bytes.windows(100).position(|part| part == [n + 1; 100]) {
            bytes[at] ^= 1;
            fs::write(path.join(name), bytes).unwrap();
            return;
        }
    }
    panic!("the row is in no log");
}

#[test]
fn a_damaged_store_is_repaired_beside_what_is_set_aside() {
    let state = tempfile::tempdir().unwrap();
    let path = store(state.path());
    assert!(matches!(find(&state.path().join("none")), Err(StoresError::NoStore(_))));
    let found = find(state.path()).unwrap();
    assert_eq!(found, find(&state.path().join("vicepa")).unwrap());
    assert_eq!(found, find(&path).unwrap());
    let store = &found[0];
    assert!(store.check().unwrap().whole);
    assert!(matches!(store.repair("s", false), Err(StoresError::Whole(_))));

    harm(&path, 6);
    let damaged = contents(&path);
    let error = open(&path).err().unwrap();
    // A start that is refused has noted in the header of the index that it began.
    let refused = contents(&path);
    let differing = damaged.iter().filter(|(name, bytes)| refused[*name] != **bytes);
    assert!(differing.map(|(name, _)| name).all(|name| name == "index"));
    let report = store.check().unwrap();
    assert!(error.to_string().contains(&report.damage[0].what), "{error} {report:?}");
    assert_eq!((report.through, report.later, report.lost_batches[0].first), (6, 2, 7));
    assert_eq!(contents(&path), refused, "a check writes nothing");

    let repaired = store.repair("2026-11-28", false).unwrap();
    assert_eq!(repaired.aside, path.with_file_name("index.damaged-2026-11-28"));
    assert_eq!(contents(&repaired.aside), refused);
    assert!(store.check().unwrap().whole);
    let rows = |path: &Path| open(path).unwrap().snapshot().range(HEADERS, .., false).count();
    assert_eq!(rows(&path), 6);
    // All of it, from what was set aside.
    let aside = &find(&repaired.aside).unwrap()[0];
    let again = aside.repair("again", true).unwrap();
    assert_eq!(rows(&repaired.aside), 8);
    assert_eq!(contents(&again.aside)["log.a"], damaged["log.a"]);
}

#[test]
fn a_store_that_is_open_or_of_which_nothing_is_left_is_not_touched() {
    let state = tempfile::tempdir().unwrap();
    let path = store(state.path());
    let store = &find(state.path()).unwrap()[0];
    let kv = open(&path).unwrap();
    assert!(matches!(store.check(), Err(StoresError::InUse(_))));
    assert!(matches!(store.repair("s", false), Err(StoresError::InUse(_))));
    drop(kv);
    fs::write(path.join("index"), [0; 9000]).unwrap();
    harm(&path, 0);
    let before = contents(&path);
    let error = store.repair("s", false).unwrap_err();
    assert!(matches!(error, StoresError::NothingLeft { .. }), "{error}");
    let error = store.repair("s", true).unwrap_err();
    let is_refused = matches!(error, StoresError::Counters { .. } | StoresError::NothingLeft { .. });
    assert!(is_refused, "the numbers of groups would be given twice: {error}");
    assert_eq!(contents(&path), before);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_store_whose_index_is_gone_has_what_its_logs_have() {
    let state = tempfile::tempdir().unwrap();
    let path = store(state.path());
    fs::write(path.join("index"), [0; 9000]).unwrap();
    let report = find(state.path()).unwrap()[0].repair("s", false).unwrap().report;
    assert_eq!((report.through, report.later, report.lost_batches.len()), (9, 0, 0));
    assert_eq!(open(&path).unwrap().snapshot().range(HEADERS, .., false).count(), 9);
}
