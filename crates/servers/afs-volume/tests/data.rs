//! Readers beside writers, compaction, freed space, full disks.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_drive::{Drive, MemorySegments, SegmentDrive};
use afs_kv::{Kv, MemoryMedium};
use afs_volume::{Config, SLOT_LEN, TABLES, Volume, VolumeError, VolumeStore, WINDOW_SLOTS};
use afs_wire::error::AbortCode;
use bytes::Bytes;
use support::*;

struct Parts {
    medium: MemoryMedium,
    segments: MemorySegments,
    store: VolumeStore,
    volume: Arc<Volume>,
}

fn parts(capacity: u64) -> Parts {
    let (medium, segments) = (MemoryMedium::new(), MemorySegments::new(capacity));
    let limits = afs_kv::Config { log_bytes: 256 << 10, ..afs_kv::Config::default() };
    let kv = Kv::open(Arc::new(medium.clone()), TABLES, afs_env::Parts::inline(), limits).unwrap();
    let drive = SegmentDrive::open(segments.clone(), afs_env::Parts::inline(), 4 << 20).unwrap();
    let store =
        now(VolumeStore::open(kv, Arc::new(drive), afs_env::Parts::inline(), Config::default())).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    Parts { medium, segments, store, volume }
}

#[test]
fn a_reader_keeps_its_version() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"f").unwrap();
    let old = vec![1; 3 * SLOT_LEN as usize + 100];
    store_bytes(&parts.volume, file, 0, &old, u64::MAX).unwrap();
    let mut reader = parts.volume.read_data(file, 0, u64::MAX).unwrap();
    let mut read = now(reader.next()).unwrap().unwrap().to_vec();
    store_bytes(&parts.volume, file, 0, &vec![2; old.len()], 0).unwrap();
    run_background(&parts.store);
    let used = parts.segments.used();
    while let Some(part) = now(reader.next()).unwrap() {
        read.extend_from_slice(&part);
    }
    assert!(read == old);
    assert_eq!(reader.record().data_version.0, 1);
    drop(reader);
    run_background(&parts.store);
    assert!(parts.segments.used() + 2 * SLOT_LEN < used, "the old version goes with its last reader");
    assert_eq!(read_bytes(&parts.volume, file, 0, u64::MAX).unwrap(), vec![2; old.len()]);
}

#[test]
fn a_read_over_many_slots_notices_a_change() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"f").unwrap();
    // Slots without data are read together with those before them: more slots with data are needed than one
    // window has.
    for slot in 0..WINDOW_SLOTS + 2 {
        store_bytes(&parts.volume, file, slot * SLOT_LEN, b"x", u64::MAX).unwrap();
    }
    let mut reader = parts.volume.read_data(file, 0, u64::MAX).unwrap();
    now(reader.next()).unwrap();
    store_bytes(&parts.volume, file, WINDOW_SLOTS * SLOT_LEN, b"y", u64::MAX).unwrap();
    let error = loop {
        match now(reader.next()) {
            Ok(part) => assert!(part.is_some(), "the read must not end as if nothing had happened"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), AbortCode::VBUSY);
}

#[test]
fn many_small_stores_are_gathered_into_a_chunk() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"log").unwrap();
    let mut expected = Vec::new();
    for number in 0..3000u32 {
        let line = format!("line {number} of a log that is flushed after each line\n");
        store_bytes(&parts.volume, file, expected.len() as u64, line.as_bytes(), u64::MAX).unwrap();
        expected.extend_from_slice(line.as_bytes());
        if number % 100 == 0 {
            run_background(&parts.store);
        }
    }
    run_background(&parts.store);
    assert!(read_bytes(&parts.volume, file, 0, u64::MAX).unwrap() == expected);
    // Scattered overwrites of a large file.
    store_bytes(&parts.volume, file, 0, &vec![0; 900_000], u64::MAX).unwrap();
    let mut expected = vec![0; 900_000];
    for number in 0..200usize {
        let at = number * 7919 % 890_000;
        let bytes = vec![number as u8; 30 + number % 50];
        store_bytes(&parts.volume, file, at as u64, &bytes, u64::MAX).unwrap();
        expected[at..at + bytes.len()].copy_from_slice(&bytes);
        if number % 30 == 0 {
            run_background(&parts.store);
        }
    }
    run_background(&parts.store);
    assert!(read_bytes(&parts.volume, file, 0, u64::MAX).unwrap() == expected);
    assert!(parts.segments.used() < 4 << 20, "{} bytes", parts.segments.used());
}

#[test]
fn a_store_that_nobody_commits_gives_its_room_back() {
    let parts = parts(1 << 30);
    let before = parts.segments.used();
    let mut writer = parts.volume.write_data(0).unwrap();
    now(writer.push(Bytes::from(vec![1; 5 << 20]))).unwrap();
    let data = now(writer.finish()).unwrap();
    assert!(parts.segments.used() > before + (4 << 20));
    drop(data);
    assert_eq!(parts.segments.used(), before);
    // The same for one that the transaction refuses.
    let mut writer = parts.volume.write_data(0).unwrap();
    now(writer.push(Bytes::from(vec![1; 100_000]))).unwrap();
    let data = now(writer.finish()).unwrap();
    let answer = update(&parts.volume, move |tx| {
        let status = Default::default();
        let store = afs_volume::StoreData { fid: ROOT, file_length: 0, status, expected: None };
        tx.store_data(store, data, ALICE)
    });
    assert!(answer.is_err());
    assert_eq!(parts.segments.used(), before);
}

#[test]
fn a_full_drive_says_so_and_loses_nothing() {
    let parts = parts(3 << 20);
    let kept = create(&parts.volume, ROOT, b"kept").unwrap();
    store_bytes(&parts.volume, kept, 0, &vec![9; 500_000], u64::MAX).unwrap();
    let file = create(&parts.volume, ROOT, b"large").unwrap();
    let error = store_bytes(&parts.volume, file, 0, &vec![1; 4 << 20], u64::MAX).unwrap_err();
    assert_eq!(error.code(), AbortCode::VDISKFULL);
    assert_eq!(volume_length(&parts, file), 0);
    assert_eq!(read_bytes(&parts.volume, kept, 0, u64::MAX).unwrap(), vec![9; 500_000]);
    store_bytes(&parts.volume, file, 0, &vec![1; 1 << 20], u64::MAX).unwrap();
    update(&parts.volume, |tx| tx.remove_file(ROOT, b"large", ALICE)).unwrap();
    run_background(&parts.store);
    let file = create(&parts.volume, ROOT, b"large again").unwrap();
    store_bytes(&parts.volume, file, 0, &vec![1; 2 << 20], u64::MAX).unwrap();
}

#[test]
fn a_full_index_says_so_and_loses_nothing() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"f").unwrap();
    store_bytes(&parts.volume, file, 0, b"kept", u64::MAX).unwrap();
    parts.medium.set_capacity(3 << 20);
    let mut made = 0;
    let error = loop {
        match create(&parts.volume, ROOT, format!("f{made}").as_bytes()) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, VolumeError::DiskFull), "{error:?}");
    assert_eq!(read_bytes(&parts.volume, file, 0, u64::MAX).unwrap(), b"kept");
    assert_eq!(parts.volume.header().file_count, made + 2);
    parts.medium.set_capacity(1 << 30);
    create(&parts.volume, ROOT, b"after").unwrap();
    assert_eq!(parts.volume.header().file_count, made + 3);
}

#[test]
fn damage_on_the_drive_is_an_error_that_names_the_chunk() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"f").unwrap();
    store_bytes(&parts.volume, file, 0, &vec![3; 100_000], u64::MAX).unwrap();
    use afs_drive::SegmentStore;
    parts.segments.write_at(1, 5000, b"damage").unwrap();
    let error = read_bytes(&parts.volume, file, 0, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

fn volume_length(parts: &Parts, fid: afs_wire::ids::Fid) -> u64 {
    parts.volume.fetch(fid).unwrap().length
}

#[test]
fn a_store_of_another_version_is_refused() {
    let parts = parts(1 << 20);
    let kv =
        Kv::open(Arc::new(MemoryMedium::new()), TABLES, afs_env::Parts::inline(), afs_kv::Config::default())
            .unwrap();
    now(kv.update(|txn| {
        txn.put("volume.meta", b"format", 99u32.to_be_bytes().to_vec());
        Ok::<_, afs_kv::KvError>(())
    }))
    .unwrap();
    let drive: Arc<dyn Drive> =
        Arc::new(SegmentDrive::open(parts.segments, afs_env::Parts::inline(), 4 << 20).unwrap());
    let error = now(VolumeStore::open(kv, drive, afs_env::Parts::inline(), Config::default())).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the volume store has format 99; this program reads formats 1 to 6. Nothing was changed: use the version that wrote it"
    );
}

#[test]
fn stores_whose_senders_fall_silent_keep_little_in_memory() {
    let parts = parts(1 << 30);
    let file = create(&parts.volume, ROOT, b"f").unwrap();
    let mut writers = Vec::new();
    for _ in 0..300 {
        let mut writer = parts.volume.write_data(0).unwrap();
        // As they arrive from a network, and one byte less than what is written unprompted.
        for piece in vec![7; SLOT_LEN as usize - 1].chunks(60_000) {
            now(writer.push(Bytes::copy_from_slice(piece))).unwrap();
        }
        writers.push(writer);
    }
    let most = (64 << 20) + 300 * (64 << 10);
    assert!(parts.store.gathered_bytes() <= most, "{}", parts.store.gathered_bytes());
    // The data sent is stored all the same, and nothing remains counted.
    let data = now(writers.pop().unwrap().finish()).unwrap();
    let status = Default::default();
    let store = afs_volume::StoreData { fid: file, file_length: 0, status, expected: None };
    update(&parts.volume, move |tx| tx.store_data(store, data, ALICE)).unwrap();
    assert!(read_bytes(&parts.volume, file, 0, u64::MAX).unwrap() == vec![7; SLOT_LEN as usize - 1]);
    drop(writers);
    assert_eq!(parts.store.gathered_bytes(), 0);
}
