//! Power failures at any time: acknowledged changes are there, complete; others are complete or absent.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::Volume;
use afs_wire::ids::Fid;
use support::kinds::Drives;
use support::*;

/// The possible contents of a file: its last acknowledged one, or that of a store in progress.
type Acknowledged = BTreeMap<Fid, Vec<u8>>;

struct Life {
    rng: Rng,
    /// The longest piece that is stored, and where it may begin behind the end.
    longest: usize,
    acknowledged: Acknowledged,
    /// The store that the power failure may have interrupted.
    under_way: Option<(Fid, Vec<u8>)>,
}

impl Life {
    /// Works until the power fails.
    fn work(&mut self, volume: &Arc<Volume>, store: &afs_volume::VolumeStore, disk: &CrashDisk) {
        for number in 0..400 {
            if disk.is_dead() {
                return;
            }
            match self.rng.below(10) {
                0..=2 => {
                    let name = format!("f{number}-{}", self.rng.next());
                    if let Ok(fid) = create(volume, ROOT, name.as_bytes()) {
                        self.acknowledged.insert(fid, Vec::new());
                    }
                }
                3 => drop(now(store.background_step())),
                _ => self.store(volume),
            }
        }
    }

    fn store(&mut self, volume: &Arc<Volume>) {
        let known: Vec<Fid> = self.acknowledged.keys().copied().collect();
        if known.is_empty() {
            return;
        }
        let fid = known[self.rng.below(known.len() as u64) as usize];
        let mut after = self.acknowledged[&fid].clone();
        let position = self.rng.below(after.len() as u64 + 5000) as usize;
        let len = [0, 10, 3000, 20_000, self.longest][self.rng.below(5) as usize];
        let (first, step) = (self.rng.next(), self.rng.next() | 1);
        let bytes: Vec<u8> =
            (0..len as u64).map(|at| (first.wrapping_add(at.wrapping_mul(step)) >> 32) as u8 | 1).collect();
        let file_length = if self.rng.chance(30) { position + len } else { usize::MAX };
        after.truncate(file_length);
        after.resize(after.len().max(position + len), 0);
        after[position..position + len].copy_from_slice(&bytes);
        self.under_way = Some((fid, after.clone()));
        if store_bytes(volume, fid, position as u64, &bytes, file_length as u64).is_ok() {
            self.acknowledged.insert(fid, after);
            self.under_way = None;
        }
    }

    /// Checks that everything acknowledged is there, and continues from the state found.
    fn check(&mut self, volume: &Arc<Volume>) {
        for (fid, expected) in &mut self.acknowledged {
            let found = read_bytes(volume, *fid, 0, u64::MAX)
                .unwrap_or_else(|error| panic!("{fid:?} cannot be read: {error}"));
            if found != *expected {
                let allowed =
                    self.under_way.as_ref().is_some_and(|(other, after)| other == fid && *after == found);
                assert!(allowed, "{fid:?} is neither what was acknowledged nor what was being stored");
                *expected = found;
            }
        }
        self.under_way = None;
        let root = read_bytes(volume, ROOT, 0, u64::MAX).unwrap();
        let mut blob = afs_wire::dir::Blob::from_bytes(root).unwrap();
        let summary = afs_wire::dir::check(&mut blob).unwrap();
        assert_eq!(u64::from(summary.entries) + 1, volume.header().file_count);
    }
}

/// Opens a store on one disk: one machine has one power supply.
type Open = fn(&CrashDisk) -> Result<afs_volume::VolumeStore, afs_volume::OpenError>;

/// With these drives for the data, whose power is the same.
fn live_through_crashes(seed: u64, longest: usize, open: Open, mut drives: Drives) {
    let open = |disk: &CrashDisk, drives: &Drives| open(disk).inspect(|store| drives.add_to(store, disk));
    let mut life = Life { rng: Rng(seed), longest, acknowledged: BTreeMap::new(), under_way: None };
    let mut disk = CrashDisk::new();
    now(open(&disk, &drives).unwrap().create_volume(spec(0))).unwrap();
    for _ in 0..5 {
        let fuse = 1 + life.rng.below(250);
        disk.crash_after(fuse);
        if let Ok(store) = open(&disk, &drives) {
            let volume = store.volume(VOLUME).unwrap();
            if life.rng.chance(50) {
                drop(now(store.sweep()));
            }
            if !disk.is_dead() && life.rng.chance(50) {
                drives.sweep(&store);
            }
            life.work(&volume, &store, &disk);
        }
        disk = disk.image(&mut life.rng);
        let image = disk.image(&mut life.rng);
        drives.crash(&mut life.rng);
        let store = open(&image, &drives).unwrap();
        life.check(&store.volume(VOLUME).unwrap());
        assert_eq!(now(store.sweep()).unwrap().missing, []);
        run_background(&store);
        // Now, since a chunk may have been discarded just before the power failed, and its row not.
        drives.sweep(&store);
        life.check(&store.volume(VOLUME).unwrap());
        disk = image;
    }
}

#[test]
fn a_power_cut_at_any_moment_loses_and_tears_nothing_acknowledged() {
    for seed in seeds(50) {
        let open: Open = |disk| open(disk, disk);
        // Every second one has data on one or two drives of other kinds.
        let count = (seed % 2 * (1 + seed / 2 % 2)) as usize;
        let drives = || if count > 0 { Drives::of_seed(seed / 2, count) } else { Drives::none() };
        let result = std::panic::catch_unwind(|| live_through_crashes(seed, 90_000, open, drives()));
        assert!(result.is_ok(), "seed {seed}, {count} drives");
    }
}

/// Files of many chunks in many files of segments, and a power failure that loses directory entries which
/// were not synced and restores removed ones.
#[test]
fn large_files_lose_nothing_acknowledged_with_directory_entries() {
    for seed in seeds(8) {
        let open: Open = |disk| support::crash_folder::open(disk);
        let result = std::panic::catch_unwind(|| live_through_crashes(seed, 3 << 20, open, Drives::none()));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// The disk of the index fails at the write or the sync of the change that refers to new data, and that of the data does not: the
/// change may be there when the store is opened again.
#[test]
fn data_of_a_change_that_may_be_durable_stays() {
    let mut found = [0, 0];
    for seed in seeds(20) {
        let (mut index, data) = (CrashDisk::new(), CrashDisk::new());
        let store = open(&index, &data).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        let file = create(&volume, ROOT, b"f").unwrap();
        store_bytes(&volume, file, 0, &[1; 100_000], u64::MAX).unwrap();
        index.crash_after(1 + seed % 2);
        store_bytes(&volume, file, 0, &[2; 100_000], u64::MAX).unwrap_err();
        drop((volume, store));
        index = index.image(&mut Rng(seed));
        let store = open(&index, &data).unwrap();
        assert_eq!(now(store.sweep()).unwrap().missing, [], "seed {seed}");
        let read = read_bytes(&store.volume(VOLUME).unwrap(), file, 0, u64::MAX).unwrap();
        assert!(read.len() == 100_000 && read.iter().all(|byte| *byte == read[0]), "seed {seed}");
        found[usize::from(read[0]) - 1] += 1;
    }
    assert!(found.iter().all(|count| *count > 0) || seeds(20).count() < 20, "both happen: {found:?}");
}

#[test]
fn the_number_of_a_removed_segment_is_not_given_out_while_the_index_knows_it() {
    for seed in seeds(10) {
        let (index, data) = (CrashDisk::new(), CrashDisk::new());
        let store = open(&index, &data).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        let file = create(&volume, ROOT, b"f").unwrap();
        store_bytes(&volume, file, 0, &[1; 100_000], u64::MAX).unwrap();
        drop((volume, store));
        // A run that writes no chunk discards the last one of the highest segment and crashes before the
        // index says so.
        let store = open(&index, &data).unwrap();
        now(store.sweep()).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        update(&volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
        index.crash_after(1);
        now(store.background_step()).unwrap_err();
        drop((volume, store));
        let index = index.image(&mut Rng(seed));
        // The next run stores a chunk before the background task runs.
        let store = open(&index, &data).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        let file = create(&volume, ROOT, b"g").unwrap();
        store_bytes(&volume, file, 0, &[2; 200_000], u64::MAX).unwrap();
        run_background(&store);
        drop((volume, store));
        let store = open(&index, &data).unwrap();
        now(store.sweep()).unwrap();
        let read = read_bytes(&store.volume(VOLUME).unwrap(), file, 0, u64::MAX);
        assert!(read.unwrap() == [2; 200_000], "seed {seed}");
    }
}
