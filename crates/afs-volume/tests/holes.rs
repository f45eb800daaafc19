//! Holes: what was never written, or written as zeros, takes neither room nor quota.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use afs_drive::{MemorySegments, SegmentDrive};
use afs_kv::{Inline, Kv, MemoryMedium};
use afs_volume::dump::{DumpOptions, VolumeDump};
use afs_volume::restore::{RestoreAs, RestoreStream};
use afs_volume::{Config, SLOT_LEN, TABLES, Volume, VolumeSpec, VolumeStore};
use afs_wire::error::AbortCode;
use afs_wire::ids::{Fid, UnixSeconds, VolumeId, VolumeName};
use support::*;

const PIB: u64 = 1 << 50;

struct Parts {
    segments: MemorySegments,
    store: VolumeStore,
    volume: Arc<Volume>,
}

fn parts(quota: u32) -> Parts {
    let segments = MemorySegments::new(64 << 20);
    let kv = Kv::open(Arc::new(MemoryMedium::new()), TABLES, Arc::new(Inline), afs_kv::Config::default());
    let drive = SegmentDrive::open(segments.clone(), Arc::new(afs_drive::Inline), 4 << 20).unwrap();
    let config = Config::new(|| UnixSeconds(1));
    let store = now(VolumeStore::open(kv.unwrap(), Arc::new(drive), config)).unwrap();
    let volume = now(store.create_volume(spec(quota))).unwrap();
    Parts { segments, store, volume }
}

/// KiB that the volume is charged for beyond its root directory.
fn charged(volume: &Arc<Volume>) -> u64 {
    volume.header().blocks_used - 2
}

fn length(volume: &Arc<Volume>, file: Fid) -> u64 {
    volume.fetch(file).unwrap().length
}

#[test]
fn a_file_of_a_pebibyte_with_three_bytes_is_charged_with_three_blocks() {
    let parts = parts(100);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    for position in [0, 3 << 40, PIB] {
        store_bytes(volume, file, position, b"x", u64::MAX).unwrap();
    }
    assert_eq!((length(volume, file), charged(volume), parts.segments.used()), (PIB + 1, 3, 0));
    for position in [0, 3 << 40, PIB] {
        assert_eq!(read_bytes(volume, file, position, 1).unwrap(), b"x");
    }
    assert_eq!(read_bytes(volume, file, (3 << 40) - 70_000, 200_000).unwrap()[69_999..70_002], *b"\0x\0");
    assert_eq!(read_bytes(volume, file, PIB - 1, 10).unwrap(), b"\0x");
    // Cut, grown again, and gone.
    store_bytes(volume, file, 1 << 40, b"", 2 << 30).unwrap();
    assert_eq!((length(volume, file), charged(volume)), (1 << 40, 1));
    assert_eq!(read_bytes(volume, file, 0, 3).unwrap(), b"x\0\0");
    update(volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
    run_background(&parts.store);
    assert_eq!((charged(volume), parts.segments.used()), (0, 0));
}

#[test]
fn a_file_grown_by_its_length_is_charged_when_it_is_written() {
    let parts = parts(3000);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    store_bytes(volume, file, 5 << 30, b"", u64::MAX).unwrap();
    assert_eq!((length(volume, file), charged(volume), parts.segments.used()), (5 << 30, 1, 0));
    let block = vec![7; SLOT_LEN as usize];
    for number in 0..3 {
        store_bytes(volume, file, number << 30, &block, u64::MAX).unwrap();
        assert_eq!(charged(volume), (number + 1) << 10);
    }
    // The quota is full, holes or not; what is there may be written again.
    let refused = store_bytes(volume, file, 4 << 30, &block, u64::MAX).unwrap_err();
    let refused_again = store_bytes(volume, file, 1 << 29, &block, u64::MAX).unwrap_err();
    assert_eq!([refused.code(), refused_again.code()], [AbortCode::VOVERQUOTA; 2]);
    store_bytes(volume, file, 1 << 30, &vec![8; 3 * SLOT_LEN as usize / 4], u64::MAX).unwrap();
    assert_eq!(charged(volume), 3 << 10);
    assert_eq!(length(volume, file), 5 << 30);
}

#[test]
fn zeros_that_are_stored_become_a_hole() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    store_bytes(volume, file, 0, &vec![0; 10 << 20], u64::MAX).unwrap();
    assert_eq!((length(volume, file), charged(volume), parts.segments.used()), (10 << 20, 1, 0));
    let mut expected = vec![9; 10 << 20];
    store_bytes(volume, file, 0, &expected, u64::MAX).unwrap();
    assert_eq!(charged(volume), 10 << 10);
    // From the middle of one slot to the middle of another, and within one.
    for (at, len) in [(1_500_000, 5_000_000), (100_000, 300_000), (9 << 20, 1 << 20)] {
        store_bytes(volume, file, at as u64, &vec![0; len], u64::MAX).unwrap();
        expected[at..at + len].fill(0);
        assert!(read_bytes(volume, file, 0, u64::MAX).unwrap() == expected);
    }
    let kept = expected.iter().filter(|byte| **byte != 0).count() as u64;
    assert!((kept / 1024..kept / 1024 + 5).contains(&charged(volume)), "{} {kept}", charged(volume));
    run_background(&parts.store);
    assert!(parts.segments.used() < kept + (4 << 20));
    // A short hole is filled when its slot is written anew, and was charged before.
    store_bytes(volume, file, 500_000, &[0; 1000], u64::MAX).unwrap();
    expected[500_000..501_000].fill(0);
    let before = charged(volume);
    for number in 0..40usize {
        store_bytes(volume, file, 410_000 + 5000 * number as u64, b"x", u64::MAX).unwrap();
        expected[410_000 + 5000 * number] = b'x';
    }
    run_background(&parts.store);
    assert!(read_bytes(volume, file, 0, u64::MAX).unwrap() == expected);
    assert_eq!(charged(volume), before);
    update(volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
    run_background(&parts.store);
    assert_eq!((charged(volume), parts.segments.used()), (0, 0));
}

#[test]
fn a_slot_with_holes_is_written_anew_with_its_holes() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    let mut expected = vec![0; SLOT_LEN as usize];
    for number in 0..60usize {
        // Six clusters with 130 KiB and more between them.
        let at = number % 6 * 170_000 + number / 6 * 3000;
        store_bytes(volume, file, at as u64, &[1; 2000], u64::MAX).unwrap();
        expected[at..at + 2000].fill(1);
    }
    store_bytes(volume, file, SLOT_LEN, b"", u64::MAX).unwrap();
    let before = charged(volume);
    assert!(before < 200, "{before}");
    run_background(&parts.store);
    assert_eq!(charged(volume), before);
    assert!(parts.segments.used() < 300_000, "{}", parts.segments.used());
    assert!(read_bytes(volume, file, 0, u64::MAX).unwrap() == expected);
}

#[test]
fn a_volume_that_is_dumped_and_restored_has_its_holes_again() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    store_bytes(volume, file, 20 << 20, b"end", u64::MAX).unwrap();
    store_bytes(volume, file, 5 << 20, &vec![3; 100_000], u64::MAX).unwrap();
    let (charge, used) = (charged(volume), parts.segments.used());
    let id = VolumeId(VOLUME.0 + 1);
    let spec = VolumeSpec { id, name: VolumeName::new("copy").unwrap(), root: None, ..spec(0) };
    let copy = now(parts.store.create_volume(spec)).unwrap();
    let header = copy.header();
    let into = RestoreAs {
        name: header.name.clone(),
        kind: header.kind,
        parent: header.parent,
        clone: header.read_only,
        keep_usage: true,
        keep_service: false,
    };
    let mut restore = RestoreStream::new(copy.clone(), into);
    let all = DumpOptions { since: UnixSeconds(0), all_directories: false };
    let mut dump = VolumeDump::new(volume.clone(), all);
    let mut len = 0;
    while let Some(part) = now(dump.next()).unwrap() {
        len += part.len();
        now(restore.push(part)).unwrap();
    }
    now(restore.finish()).unwrap();
    assert!(len > 20 << 20, "the format of dumps has no holes");
    // Each run of data may have grown to whole blocks of 64 KiB.
    assert!((charge..=charge + 128).contains(&charged(&copy)), "{} {charge}", charged(&copy));
    assert!(parts.segments.used() <= 2 * used + (128 << 10));
    let whole = read_bytes(volume, file, 0, u64::MAX).unwrap();
    let there = Fid::new(id, file.vnode, file.unique);
    assert!(read_bytes(&copy, there, 0, u64::MAX).unwrap() == whole);
}
