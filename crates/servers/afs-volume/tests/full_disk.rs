//! The index on a full disk: files are removed there, and created again when there is room.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_drive::SegmentDrive;
use afs_env::Parts;
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, CrashSegments};
use afs_volume::{Config, TABLES, Volume, VolumeError, VolumeStore};
use support::*;

fn open(index: &CrashDisk) -> VolumeStore {
    let kv = Kv::open(Arc::new(index.clone()), TABLES, Parts::inline(), afs_kv::Config::default()).unwrap();
    let drive = SegmentDrive::open(CrashSegments(CrashDisk::new()), Parts::inline(), 8 << 20).unwrap();
    now(VolumeStore::open(kv, Arc::new(drive), ticking(), Config::default())).unwrap()
}

/// A small file, whose bytes are in the index.
fn make(volume: &Arc<Volume>, number: u64) -> Result<(), VolumeError> {
    let file = create(volume, ROOT, name(number).as_bytes())?;
    store_bytes(volume, file, 0, &[number as u8; 3000], 3000).map(drop)
}

fn remove(volume: &Arc<Volume>, number: u64) -> Result<(), VolumeError> {
    update(volume, move |tx| tx.remove_file(ROOT, name(number).as_bytes(), ALICE).map(drop))
}

fn name(number: u64) -> String {
    format!("file{number}")
}

#[test]
fn files_are_removed_from_a_full_disk_until_there_is_room_again() {
    for room in [0, 1 << 20, 10 << 20] {
        let disk = CrashDisk::new();
        let store = open(&disk);
        now(store.create_volume(spec(0))).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        disk.set_capacity(Some(disk.used() + room));
        let refused =
            (0..20_000).map(|number| (number, make(&volume, number))).find(|(_, made)| made.is_err());
        let (files, refusal) = refused.expect("a full disk takes files without end");
        assert!(matches!(refusal, Err(VolumeError::DiskFull)), "{room}: {refusal:?}");
        disk.set_capacity(Some(disk.used()));

        for number in 0..files {
            remove(&volume, number).unwrap_or_else(|error| panic!("{room}: {error}"));
            // What is free is kept for those who remove.
            if make(&volume, files + number).is_ok() {
                remove(&volume, files + number).unwrap();
            }
        }
        disk.set_capacity(None);
        make(&volume, 1).unwrap_or_else(|error| panic!("{room}: {error}"));
    }
}
