//! Holes: data never written, or written as zeros, uses neither space nor quota.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_drive::{MemorySegments, SegmentDrive};
use afs_kv::{Kv, MemoryMedium};
use afs_volume::dump::{DumpOptions, VolumeDump, ZEROS_MAX};
use afs_volume::restore::{RestoreAs, RestoreStream};
use afs_volume::{CloneSpec, Config, SLOT_LEN, TABLES, Volume, VolumeError, VolumeSpec, VolumeStore};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{Fid, UnixSeconds, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;
use support::*;

const PIB: u64 = 1 << 50;

struct Parts {
    segments: MemorySegments,
    store: VolumeStore,
    volume: Arc<Volume>,
}

fn parts(quota: u32) -> Parts {
    let segments = MemorySegments::new(64 << 20);
    let kv =
        Kv::open(Arc::new(MemoryMedium::new()), TABLES, afs_env::Parts::inline(), afs_kv::Config::default());
    let drive = SegmentDrive::open(segments.clone(), afs_env::Parts::inline(), 4 << 20).unwrap();
    let store =
        now(VolumeStore::open(kv.unwrap(), Arc::new(drive), afs_env::Parts::inline(), Config::default()))
            .unwrap();
    let volume = now(store.create_volume(spec(quota))).unwrap();
    Parts { segments, store, volume }
}

/// The volume's charge in KiB, without its root directory.
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
    // Cut, extended again, and deleted.
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
    // The quota is full, holes or not; existing data may be overwritten.
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
    // A short hole is filled when its slot is compacted, and was charged before.
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

/// An empty volume beside the one of the test.
fn beside(parts: &Parts, number: u32) -> Arc<Volume> {
    let name = VolumeName::new(&format!("copy{number}")).unwrap();
    let spec = VolumeSpec { id: VolumeId(VOLUME.0 + number), name, root: None, ..spec(0) };
    now(parts.store.create_volume(spec)).unwrap()
}

fn restore(into: &Arc<Volume>) -> RestoreStream {
    let header = into.header();
    let restore_as = RestoreAs {
        name: header.name.clone(),
        kind: header.kind,
        parent: header.parent,
        clone: header.read_only,
        keep_usage: true,
        keep_service: false,
    };
    RestoreStream::new(into.clone(), restore_as)
}

fn dump(volume: &Arc<Volume>) -> VolumeDump {
    VolumeDump::new(volume.clone(), DumpOptions { since: UnixSeconds(0), all_directories: false })
}

fn all(mut dump: VolumeDump) -> Result<Vec<u8>, VolumeError> {
    let mut bytes = Vec::new();
    while let Some(part) = now(dump.next())? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

fn there(copy: &Arc<Volume>, file: Fid) -> Fid {
    Fid::new(copy.id(), file.vnode, file.unique)
}

#[test]
fn a_volume_that_is_dumped_and_restored_has_its_holes_again() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    store_bytes(volume, file, 20 << 20, b"end", u64::MAX).unwrap();
    store_bytes(volume, file, 5 << 20, &vec![3; 100_000], u64::MAX).unwrap();
    let (charge, used) = (charged(volume), parts.segments.used());
    let copy = beside(&parts, 1);
    let plain = all(dump(volume)).unwrap();
    let mut stream = restore(&copy);
    now(stream.push(plain.clone().into())).unwrap();
    now(stream.finish()).unwrap();
    assert!(plain.len() > 20 << 20, "the dumps of AFS have no holes");
    // Each run of data may have grown to whole blocks of 64 KiB.
    assert!((charge..=charge + 128).contains(&charged(&copy)), "{} {charge}", charged(&copy));
    assert!(parts.segments.used() <= 2 * used + (128 << 10));
    let whole = read_bytes(volume, file, 0, u64::MAX).unwrap();
    assert!(read_bytes(&copy, there(&copy, file), 0, u64::MAX).unwrap() == whole);
}

#[test]
fn a_dump_that_keeps_holes_is_as_long_as_the_data() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    let spots = [(0, 3), ((3 << 40) - 70_000, 200_000), (5 << 40, 5 << 20), (PIB - 5, 5)];
    for (at, len) in spots {
        store_bytes(volume, file, at, &vec![7; len], u64::MAX).unwrap();
    }
    // A hole at the end, one within a slot, a file that is only a hole, and a file without any.
    store_bytes(volume, file, PIB + (3 << 30), b"", u64::MAX).unwrap();
    store_bytes(volume, file, (5 << 40) + 100_000, &[0; 300_000], u64::MAX).unwrap();
    let hollow = create(volume, ROOT, b"hollow").unwrap();
    store_bytes(volume, hollow, 1 << 40, b"", u64::MAX).unwrap();
    let full = create(volume, ROOT, b"full").unwrap();
    store_bytes(volume, full, 0, &[9; 300_000], u64::MAX).unwrap();
    let kept = all(dump(volume).keeping_holes()).unwrap();
    assert!(kept.len() < 6 << 20, "{}", kept.len());
    let copy = beside(&parts, 1);
    let mut stream = restore(&copy);
    for piece in kept.chunks(61_003) {
        now(stream.push(Bytes::copy_from_slice(piece))).unwrap();
    }
    now(stream.finish()).unwrap();
    for fid in [file, hollow, full] {
        assert_eq!(length(&copy, there(&copy, fid)), length(volume, fid));
    }
    for (at, len) in spots {
        let from = at.saturating_sub(1000);
        let read = |volume: &Arc<Volume>, fid| read_bytes(volume, fid, from, len as u64 + 70_000).unwrap();
        assert!(read(&copy, there(&copy, file)) == read(volume, file), "{at}");
    }
    assert!(read_bytes(&copy, there(&copy, full), 0, u64::MAX).unwrap() == [9; 300_000]);
    assert!(charged(&copy) <= charged(volume) + 4 * 128, "{} {}", charged(&copy), charged(volume));
    // The same again, and a copy within the store.
    assert!(all(dump(&copy).keeping_holes()).unwrap().len() < 6 << 20);
    let (id, name) = (VolumeId(VOLUME.0 + 5), VolumeName::new("clone").unwrap());
    let clone = CloneSpec { id, name, kind: VolumeKind::ReadWrite, snapshot: false };
    let clone = now(parts.store.clone_volume(VOLUME, clone)).unwrap();
    assert_eq!(length(&clone, there(&clone, file)), length(volume, file));
    assert_eq!(read_bytes(&clone, there(&clone, file), PIB - 6, 7).unwrap(), b"\0\x07\x07\x07\x07\x07\0");
}

#[test]
fn a_dump_with_holes_that_is_cut_changes_nothing() {
    let parts = parts(0);
    let volume = &parts.volume;
    let file = create(volume, ROOT, b"f").unwrap();
    for at in [0, 5 << 30, PIB] {
        store_bytes(volume, file, at, b"some bytes", u64::MAX).unwrap();
    }
    let whole = all(dump(volume).keeping_holes()).unwrap();
    let copy = beside(&parts, 1);
    for len in 0..whole.len() {
        let mut stream = restore(&copy);
        now(stream.push(Bytes::copy_from_slice(&whole[..len]))).unwrap();
        now(stream.finish()).unwrap_err();
        assert_eq!(copy.header().file_count, 0);
    }
    let mut stream = restore(&copy);
    now(stream.push(whole.into())).unwrap();
    now(stream.finish()).unwrap();
    assert_eq!(length(&copy, there(&copy, file)), PIB + 10);
}

#[test]
fn a_dump_without_holes_is_refused_at_its_beginning_where_it_would_be_endless() {
    let parts = parts(0);
    let volume = &parts.volume;
    let many: Vec<_> = [b"a", b"b", b"c"].map(|name| create(volume, ROOT, name).unwrap()).into();
    for file in &many {
        store_bytes(volume, *file, ZEROS_MAX * 2 / 5, b"x", u64::MAX).unwrap();
    }
    let refused = now(dump(volume).next()).unwrap_err();
    let VolumeError::Sparse { vnode, length, holes } = refused else { panic!("{refused:?}") };
    assert_eq!((vnode, length), (many[2].vnode, ZEROS_MAX * 2 / 5 + 1), "together they are too many");
    assert!(holes > ZEROS_MAX);
    let text = refused.to_string();
    assert!(text.contains(&vnode.to_string()) && text.contains(&length.to_string()), "{text}");
    assert_eq!(refused.code(), Errno::EFBIG.to_uae());
    update(volume, |tx| tx.remove_file(ROOT, b"c", ALICE)).unwrap();
    assert!(now(dump(volume).next()).unwrap().is_some());
    // Files that are not dumped do not count.
    let later = DumpOptions { since: UnixSeconds(2_000_000_000), all_directories: false };
    store_bytes(volume, many[0], PIB, b"x", u64::MAX).unwrap();
    assert!(now(VolumeDump::new(volume.clone(), later).next()).unwrap().is_some());
}
