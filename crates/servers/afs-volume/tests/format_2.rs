//! Store of the second format, whose references to chunks do not name a drive: rows written by the previous
//! version are upgraded, read, changed and deleted.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_drive::{Drive, SegmentDrive};
use afs_env::Parts;
use afs_kv::{Kv, KvError};
use afs_sim::crash::{CrashDisk, CrashSegments, Rng, seeds};
use afs_volume::{Config, OpenError, Scrub, TABLES, Volume, VolumeStore};
use afs_wire::dir::Blob;
use afs_wire::ids::{Fid, VolumeId};
use bytes::Bytes;
use support::members::check_nothing_leaks;
use support::*;

/// Table, key and value of each row, in hexadecimal. The store had a file of 100 bytes (`small`), one of two
/// chunks (`parts`), one that a backup volume has in another state (`cloned`), and two removed ones whose
/// chunks were not discarded yet.
const ROWS: &str = include_str!("data/format-2.rows");
const BACKUP: VolumeId = VolumeId(7);
/// The chunks of its drive, in the order in which they were written.
const CHUNKS: [(u8, usize); 6] =
    [(2, 20_000), (3, 40_000), (4, 17_000), (5, 30_000), (6, 25_000), (7, 18_000)];

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed | 1).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// The disk of a machine with a store of the previous version.
fn old_disk() -> CrashDisk {
    let disk = CrashDisk::new();
    let drive = drive(&disk);
    let write = |(seed, len)| now(drive.write(Bytes::from(pattern(seed, len)))).unwrap();
    let written: Vec<_> = CHUNKS.into_iter().map(write).collect();
    now(drive.sync(&written)).unwrap();
    // A transaction for each, so that the numbers of the batches that freed chunks have passed.
    let kv = index(&disk).unwrap();
    for line in ROWS.lines() {
        let mut words = line.split(' ');
        let table = words.next().unwrap();
        let [key, value] = [(); 2].map(|()| bytes(words.next().unwrap()));
        now(kv.update(move |txn| {
            txn.put(table, &key, value);
            Ok::<_, KvError>(())
        }))
        .unwrap();
    }
    disk
}

fn drive(disk: &CrashDisk) -> Arc<dyn Drive> {
    Arc::new(SegmentDrive::open(CrashSegments(disk.clone()), Parts::inline(), 8 << 20).unwrap())
}

fn index(disk: &CrashDisk) -> Result<Kv, afs_kv::OpenError> {
    let limits = afs_kv::Config { log_bytes: 64 << 10, cache_bytes: 4 << 20, ..afs_kv::Config::default() };
    Kv::open(Arc::new(disk.clone()), TABLES, Parts::inline(), limits)
}

fn find(volume: &Arc<Volume>, name: &[u8]) -> Fid {
    let root = read_bytes(volume, Fid { volume: volume.id(), ..ROOT }, 0, u64::MAX).unwrap();
    let blob = Blob::from_bytes(root).unwrap();
    let entry = blob.entries(0).find(|entry| entry.name == name).unwrap();
    Fid::new(volume.id(), entry.vnode, entry.unique)
}

fn content(volume: &Arc<Volume>, name: &[u8]) -> Vec<u8> {
    read_bytes(volume, find(volume, name), 0, u64::MAX).unwrap()
}

/// The file of two chunks.
fn parts() -> Vec<u8> {
    let mut content = pattern(3, 40_000);
    content[10_000..27_000].copy_from_slice(&pattern(4, 17_000));
    content
}

fn check(store: &VolumeStore) {
    let [volume, backup] = [VOLUME, BACKUP].map(|id| store.volume(id).unwrap());
    for volume in [&volume, &backup] {
        assert!(content(volume, b"small") == pattern(1, 100));
        assert!(content(volume, b"parts") == parts());
    }
    assert!(content(&volume, b"cloned") == pattern(6, 25_000));
    assert!(content(&backup, b"cloned") == pattern(5, 30_000));
}

/// The damage found by a complete scrub.
fn damages(store: &VolumeStore) -> Vec<String> {
    let (mut scrub, mut damages) = (Scrub::default(), Vec::new());
    loop {
        let report = now(store.scrub_step(&mut scrub, u64::MAX)).unwrap();
        damages.extend(report.bad.iter().map(|bad| bad.part.to_string()));
        if report.complete {
            return damages;
        }
    }
}

fn rows(kv: &Kv, table: &str) -> usize {
    kv.snapshot().range(table, .., false).count()
}

fn format(kv: &Kv) -> Vec<u8> {
    kv.snapshot().get("volume.meta", b"format").unwrap().unwrap().to_vec()
}

#[test]
fn a_store_of_the_second_format_is_taken_over_by_one_row() {
    let disk = old_disk();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    assert_eq!(format(&kv), [0, 0, 0, 6]);
    assert_eq!((rows(&kv, "volume.chunks"), rows(&kv, "volume.drive-chunks")), (6, 0));
    check(&store);
    let report = now(store.sweep()).unwrap();
    assert_eq!((report.live, report.missing), (6, vec![]));
    run_background(&store);
    assert_eq!((rows(&kv, "volume.dead"), rows(&kv, "volume.chunks")), (0, 4), "what was freed is discarded");
    check(&store);
    assert_eq!(damages(&store), [""; 0]);
}

/// Rows of both formats, in one file, in one clone's list, in one segment.
#[test]
fn rows_of_both_formats_live_side_by_side() {
    let disk = old_disk();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let mut expected = parts();
    expected[500..18_500].copy_from_slice(&pattern(8, 18_000));
    store_bytes(&volume, find(&volume, b"parts"), 500, &pattern(8, 18_000), u64::MAX).unwrap();
    assert!(content(&volume, b"parts") == expected);
    assert_eq!(rows(&kv, "volume.drive-chunks"), 1);
    // The backup keeps the file's old data: entries of both formats are on its list now.
    store_bytes(&volume, find(&volume, b"parts"), 0, &pattern(9, 50_000), 0).unwrap();
    drop((volume, store, kv));
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let [volume, backup] = [VOLUME, BACKUP].map(|id| store.volume(id).unwrap());
    assert_eq!(now(store.sweep()).unwrap().missing, []);
    run_background(&store);
    assert!(content(&backup, b"parts") == parts() && content(&volume, b"parts") == pattern(9, 50_000));
    assert!(content(&backup, b"cloned") == pattern(5, 30_000));
    now(store.delete_volume(BACKUP)).unwrap();
    run_background(&store);
    assert!(content(&volume, b"parts") == pattern(9, 50_000));
    check_nothing_leaks(&store, &kv);
}

/// A chunk does not get an id that only a row of the second format uses.
#[test]
fn new_chunks_are_named_behind_those_of_the_second_format() {
    let disk = old_disk();
    // The segment is lost with the disk, the rows are not.
    let other = CrashDisk::new();
    let (store, kv) = open_both(&disk, &other).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let file = create(&volume, ROOT, b"new").unwrap();
    store_bytes(&volume, file, 0, &pattern(8, 18_000), u64::MAX).unwrap();
    let (key, _) = kv.snapshot().range("volume.drive-chunks", .., false).next().unwrap().unwrap();
    assert_eq!(key[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], "drive 0, segment 2");
}

/// Data of a file is never decoded as a reference.
#[test]
fn bytes_of_a_file_are_never_read_as_a_reference() {
    let disk = old_disk();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let file = create(&volume, ROOT, b"planted").unwrap();
    // The row of another file's slot.
    let planted = kv.snapshot().range("volume.slots", .., false).nth(1).unwrap().unwrap().1;
    store_bytes(&volume, file, 0, &planted, u64::MAX).unwrap();
    drop((volume, store, kv));
    let (store, kv) = open_both(&disk, &disk).unwrap();
    assert!(content(&store.volume(VOLUME).unwrap(), b"planted") == planted);
    check(&store);
    check_nothing_leaks(&store, &kv);
}

#[test]
fn a_power_cut_while_a_store_is_taken_over_loses_nothing() {
    let disk = old_disk();
    let whole = disk.image(&mut Rng(0));
    let before = whole.changes();
    take_over_and_store(&whole);
    let changes = whole.changes() - before;
    for seed in seeds(changes + 1) {
        let mut rng = Rng(seed);
        let crashed = disk.image(&mut rng);
        crashed.crash_after(seed % (changes + 1));
        take_over_and_store(&crashed);
        let image = crashed.image(&mut rng);
        let (store, kv) = open_both(&image, &image).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        check(&store);
        assert_eq!(now(store.sweep()).unwrap().missing, [], "seed {seed}");
        run_background(&store);
        check(&store);
        check_nothing_leaks(&store, &kv);
    }
}

/// The result is checked after the next start.
fn take_over_and_store(disk: &CrashDisk) {
    if let Ok(store) = open(disk, disk) {
        let volume = store.volume(VOLUME).unwrap();
        let _ = create(&volume, ROOT, b"new")
            .and_then(|file| store_bytes(&volume, file, 0, &pattern(8, 18_000), u64::MAX));
    }
}

#[test]
fn a_newer_format_is_refused_and_nothing_is_changed() {
    let disk = old_disk();
    let kv = index(&disk).unwrap();
    now(kv.update(|txn| {
        txn.put("volume.meta", b"format", 7u32.to_be_bytes().to_vec());
        Ok::<_, KvError>(())
    }))
    .unwrap();
    let opened = now(VolumeStore::open(kv.clone(), drive(&disk), ticking(), Config::default()));
    assert!(matches!(opened.err(), Some(OpenError::Format { found: 7, newest: 6 })));
    assert_eq!(format(&kv), [0, 0, 0, 7]);
    assert_eq!(rows(&kv, "volume.drive-chunks"), 0);
}

/// A reference to a drive that the store does not have is an error of its file alone, and names the drive.
#[test]
fn a_chunk_on_an_unknown_drive_is_told_as_such() {
    let disk = old_disk();
    let (store, kv) = open_both(&disk, &disk).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let file = create(&volume, ROOT, b"far").unwrap();
    store_bytes(&volume, file, 0, &pattern(8, 18_000), u64::MAX).unwrap();
    drop((volume, store));
    now(kv.update(|txn| {
        let (key, row) = txn.range("volume.slots", .., false).last().unwrap()?;
        let mut row = row.to_vec();
        let drive = row.len() - 28;
        row[drive..drive + 4].copy_from_slice(&9u32.to_be_bytes());
        txn.put("volume.slots", &key, row);
        Ok::<_, KvError>(())
    }))
    .unwrap();
    let store = now(VolumeStore::open(kv, drive(&disk), ticking(), Config::default())).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let error = read_bytes(&volume, file, 0, u64::MAX).unwrap_err();
    assert_eq!(error.to_string(), "the data are on drive 9, which this store does not have");
    check(&store);
    let damages = damages(&store);
    assert!(damages.len() == 1 && damages[0].contains("drive 9"), "{damages:?}");
}
