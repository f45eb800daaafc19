//! Tests of the check of a drive that is not served.

use super::tests::daemon;
use super::{OfflineDrive, OfflineDriveReport};
use afs_drive::{BAD_MAX, BadPart, Drive, FileDrive, ScanReport};
use afs_env::Parts;
use afs_net::System;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const AT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const LENS: [usize; 3] = [100_000, 30, 50_000];

/// The directory of a drive that was served and has chunks, and the paths of its two segments.
fn drive(system: &Arc<System>, directory: &Path) -> Vec<PathBuf> {
    daemon(system, directory, SocketAddr::from(AT)).stop();
    let stores = ["store-0", "store-3"].map(|name| directory.join(name));
    for store in &stores {
        let drive = FileDrive::open_directory(store, Parts::inline()).unwrap();
        for len in LENS {
            let chunk = system.block_on(drive.write(vec![7; len].into())).unwrap();
            system.block_on(drive.sync(&[chunk])).unwrap();
        }
    }
    stores.iter().map(|store| store.join("0000000000000001.seg")).collect()
}

fn check(system: &Arc<System>, directory: &Path) -> OfflineDriveReport {
    let before = all(directory);
    let found = OfflineDrive::find(directory).unwrap();
    let report = system.block_on(found.check(&Parts::inline())).unwrap();
    assert!(all(directory) == before, "the check changed something");
    report
}

/// Every file with its bytes and the time of its last change.
fn all(directory: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, data) = (entry.path(), entry.metadata().unwrap());
        let bytes = if data.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
        found.extend(data.is_dir().then(|| all(&path)).into_iter().flatten());
        found.push((path, bytes, data.modified().unwrap()));
    }
    found.sort();
    found
}

#[test]
fn a_drive_that_is_not_served_is_read_whole_and_what_is_damaged_is_named() {
    let (system, place) = (System::with_workers(1).unwrap(), tempfile::tempdir().unwrap());
    let segments = drive(&system, place.path());
    let good = check(&system, place.path());
    let bytes = 2 * LENS.iter().sum::<usize>() as u64;
    assert_eq!((good.whole, good.segments, good.chunks, good.bytes), (true, 2, 6, bytes), "{good:?}");
    assert!(check(&system, &place.path().join("store-3")).whole);

    let whole = fs::read(&segments[1]).unwrap();
    let mut flipped = whole.clone();
    flipped[60_000] ^= 1;
    for bad in [&flipped[..], &whole[..whole.len() - 20]] {
        fs::write(&segments[1], bad).unwrap();
        let report = check(&system, place.path());
        assert!(!report.whole && report.chunks == 5, "{report:?}");
        let named: Vec<_> = report.damage.iter().map(|damage| damage.file.as_str()).collect();
        assert_eq!(named, [segments[1].to_str().unwrap()]);
    }
}

#[test]
fn the_damaged_parts_of_all_stores_are_listed_up_to_one_bound() {
    let mut report = OfflineDriveReport::default();
    let part = |n: u64| BadPart { place: "x.seg".into(), range: n..n + 1, what: "is damaged".into() };
    for _ in 0..2 {
        let bad = (0..BAD_MAX as u64 - 10).map(part).collect();
        report.add(ScanReport { bad, unlisted: 3, ..ScanReport::default() });
    }
    assert_eq!((report.damage.len(), report.unlisted), (BAD_MAX, BAD_MAX as u64 - 20 + 6));
}

#[test]
fn the_state_of_a_drive_is_looked_at_as_its_start_does() {
    let (system, place) = (System::with_workers(1).unwrap(), tempfile::tempdir().unwrap());
    let segments = drive(&system, place.path());
    let state = place.path().join("drive.toml");
    let later = segments[0].with_file_name("0000000900000000.seg");
    fs::rename(&segments[0], later).unwrap();
    let older = check(&system, place.path());
    assert!(older.damage[0].what.contains("an older copy"), "{older:?}");
    fs::write(&state, "no state").unwrap();
    assert!(!check(&system, place.path()).whole);
    fs::remove_file(&state).unwrap();
    let missing = check(&system, place.path());
    assert!(
        missing.damage[0].file == state.to_str().unwrap() && missing.damage[0].what.contains("missing"),
        "{missing:?}"
    );
}

#[test]
fn a_drive_that_is_served_is_refused_and_other_directories_are_none() {
    let (system, place) = (System::with_workers(1).unwrap(), tempfile::tempdir().unwrap());
    let nothing = place.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    assert_eq!(OfflineDrive::find(&nothing), None);
    let _served = daemon(&system, place.path(), SocketAddr::from(AT));
    let found = OfflineDrive::find(place.path()).unwrap();
    let refused = system.block_on(found.check(&Parts::inline())).unwrap_err().to_string();
    assert!(refused.contains("is served by another process"), "{refused}");
}
