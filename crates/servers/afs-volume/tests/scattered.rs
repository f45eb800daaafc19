//! Slots scattered by many small stores: they are compacted, and no store is refused for ever; ranges.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_sim::crash::CrashDisk;
use afs_volume::{NewData, RANGES_MAX, StoreData, VnodeRecord, Volume, VolumeError};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;
use support::*;

/// Stores single bytes far apart, without compaction, until a store is refused.
fn scatter(volume: &Arc<Volume>, file: Fid, expected: &mut [u8]) -> VolumeError {
    for number in 0..expected.len() / 500 {
        let at = number * 500;
        if let Err(error) = store_bytes(volume, file, at as u64, b"x", u64::MAX) {
            return error;
        }
        expected[at] = b'x';
    }
    panic!("a slot takes any number of small stores");
}

fn new_file(volume: &Arc<Volume>) -> (Fid, Vec<u8>) {
    let file = create(volume, ROOT, b"f").unwrap();
    let bytes = vec![7; 1 << 20];
    store_bytes(volume, file, 0, &bytes, u64::MAX).unwrap();
    (file, bytes)
}

#[test]
fn a_scattered_slot_is_put_in_order_after_a_restart_too() {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let (file, mut expected) = new_file(&volume);
    scatter(&volume, file, &mut expected);
    drop((volume, store));
    // The queue was in memory.
    let store = open(&index, &data).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    let error = store_bytes(&volume, file, 100, b"y", u64::MAX).unwrap_err();
    assert!(!matches!(error, VolumeError::Busy), "the volume is not busy");
    run_background(&store);
    store_bytes(&volume, file, 100, b"y", u64::MAX).unwrap();
    expected[100] = b'y';
    assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == expected);
}

#[test]
fn a_store_that_puts_crowded_slots_in_order_first_is_never_refused() {
    let (_store, volume) = memory_store();
    let (file, mut expected) = new_file(&volume);
    for number in 0..2000usize {
        let at = number * 523;
        let mut writer = volume.write_data(at as u64).unwrap();
        now(writer.push(Bytes::from_static(b"x"))).unwrap();
        commit(&volume, file, now(writer.finish()).unwrap(), None).unwrap();
        expected[at] = b'x';
    }
    assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == expected);
}

/// Commits as a server does.
fn commit(
    volume: &Arc<Volume>,
    fid: Fid,
    data: NewData,
    expected: Option<DataVersion>,
) -> Result<VnodeRecord, VolumeError> {
    now(volume.compact_for(fid, &data))?;
    let store = StoreData { fid, file_length: u64::MAX, status: SetStatus::default(), expected };
    update(volume, move |tx| tx.store_data(store, data, ALICE))
}

fn ranges(volume: &Arc<Volume>, ranges: &[(usize, Vec<u8>)]) -> NewData {
    let mut writer = volume.write_data(ranges[0].0 as u64).unwrap();
    for (position, bytes) in ranges {
        now(writer.skip_to(*position as u64)).unwrap();
        now(writer.push(Bytes::from(bytes.clone()))).unwrap();
    }
    now(writer.finish()).unwrap()
}

#[test]
fn several_ranges_of_a_file_are_stored_in_one_version() {
    let (_store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let mut expected = vec![1; 3 << 20];
    store_bytes(&volume, file, 0, &expected, u64::MAX).unwrap();
    let version = volume.fetch(file).unwrap().data_version;
    for sizes in [[1, 20, 300], [10_000, 10_000, 10_000], [100_000, 3, 1 << 20], [1 << 20, 1, 1]] {
        let before = volume.fetch(file).unwrap().data_version;
        let places = [100, 1_100_000, (2 << 20) + 100].into_iter().zip(sizes);
        let parts: Vec<_> = places.map(|(at, len)| (at, vec![len as u8 | 1; len])).collect();
        for (at, bytes) in &parts {
            expected.resize(expected.len().max(at + bytes.len()), 0);
            expected[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        let data = ranges(&volume, &parts);
        assert_eq!(data.len(), sizes.iter().sum::<usize>() as u64);
        let record = commit(&volume, file, data, Some(before)).unwrap();
        assert_eq!((record.data_version.0, record.length), (before.0 + 1, expected.len() as u64));
        assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == expected);
    }
    // A store with an outdated version changes nothing, and its space is freed.
    let data = ranges(&volume, &[(0, vec![2; 100]), (5 << 20, vec![2; 100_000])]);
    let error = commit(&volume, file, data, Some(version)).unwrap_err();
    assert!(matches!(error, VolumeError::Changed), "{error}");
    assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == expected);
}

#[test]
fn as_many_ranges_as_one_store_may_have_go_into_one_slot() {
    let (_store, volume) = memory_store();
    let (file, mut expected) = new_file(&volume);
    for _ in 0..3 {
        let parts: Vec<_> = (0..RANGES_MAX).map(|number| (number * 1000, vec![b'x'; 60])).collect();
        for (at, bytes) in &parts {
            expected[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        commit(&volume, file, ranges(&volume, &parts), None).unwrap();
        assert!(read_bytes(&volume, file, 0, u64::MAX).unwrap() == expected);
    }
    let mut writer = volume.write_data(0).unwrap();
    for number in 1..=RANGES_MAX as u64 {
        now(writer.skip_to(number * 10)).unwrap();
        now(writer.push(Bytes::from_static(b"x"))).unwrap();
    }
    let one_more = now(writer.skip_to(1 << 20)).unwrap_err();
    assert!(matches!(one_more, VolumeError::Invalid), "{one_more}");
    let back = now(writer.skip_to(5)).unwrap_err();
    assert!(matches!(back, VolumeError::Invalid), "{back}");
}
