//! Lent vnode numbers: one object each, no other one, and nothing lost by a crash.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::collections::BTreeSet;
use std::sync::Arc;

use afs_sim::crash::{CrashDisk, Rng, seeds};
use afs_volume::{LENT_MAX, RestoredHeader, Volume, VolumeError, VolumeStore};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use support::*;

fn lend(volume: &Arc<Volume>, files: usize, directories: usize) -> Result<Vec<Fid>, VolumeError> {
    update(volume, move |tx| tx.lend(files, directories))
}

fn take_back(volume: &Arc<Volume>, fids: &[Fid]) -> Result<usize, VolumeError> {
    let fids = fids.to_vec();
    update(volume, move |tx| tx.take_back(&fids))
}

/// Creates a file that is to become `fid`.
fn create_as(volume: &Arc<Volume>, fid: Fid, name: &str) -> Result<Fid, VolumeError> {
    let name = name.as_bytes().to_vec();
    let create = move |tx: &mut afs_volume::VolumeTx<'_, '_>| {
        tx.number_next(fid);
        Ok(tx.create_file(ROOT, &name, &SetStatus::default(), ALICE)?.object)
    };
    update(volume, create).map(|object| object.fid(VOLUME))
}

fn is_not_lent<T: std::fmt::Debug>(outcome: Result<T, VolumeError>) {
    assert!(matches!(outcome, Err(VolumeError::NotLent)), "{outcome:?}");
}

/// Creates so many files, and checks that each has a number of its own, below that of as many files and no lost ones.
fn no_number_is_lost_or_given_twice(volume: &Arc<Volume>, mut used: BTreeSet<u32>, more: usize) {
    for n in 0..more {
        let fid = create(volume, ROOT, format!("more{n}").as_bytes()).unwrap();
        assert!(used.insert(fid.vnode.0), "{fid} is given twice");
    }
    let highest = used.last().copied().unwrap_or(0);
    assert_eq!(highest as usize, 2 * used.len(), "every number of files up to the highest is used");
}

#[test]
fn a_lent_number_becomes_the_object_that_was_said_and_nothing_else() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 2, 1).unwrap();
    let classes: Vec<_> = lent.iter().map(|fid| fid.vnode.is_directory()).collect();
    assert_eq!(classes, [false, false, true]);
    let other = create(&volume, ROOT, b"other").unwrap();
    assert!(!lent.contains(&other) && lent.iter().all(|fid| fid.vnode != other.vnode));
    assert_eq!(create_as(&volume, lent[1], "second").unwrap(), lent[1]);
    assert_eq!(volume.fetch(lent[1]).unwrap().unique, lent[1].unique);
    let directory = lent[2];
    let made = update(&volume, move |tx| {
        tx.number_next(directory);
        tx.make_dir(ROOT, b"d", &SetStatus::default(), ALICE)
    });
    assert_eq!(made.unwrap().object.fid(VOLUME), directory);
    assert_eq!(create_as(&volume, lent[0], "first").unwrap(), lent[0]);
}

#[test]
fn a_number_is_refused_that_was_used_or_never_lent_or_has_another_uniquifier_class_or_volume() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 2, 1).unwrap();
    create_as(&volume, lent[0], "a").unwrap();
    is_not_lent(create_as(&volume, lent[0], "b"));
    update(&volume, |tx| tx.remove_file(ROOT, b"a", ALICE)).unwrap();
    is_not_lent(create_as(&volume, lent[0], "b"));
    let freed = Fid { unique: Uniquifier(99), ..lent[0] };
    is_not_lent(create_as(&volume, freed, "b"));
    is_not_lent(create_as(&volume, Fid { vnode: VnodeId(4000), ..lent[1] }, "b"));
    is_not_lent(create_as(&volume, Fid { unique: Uniquifier(lent[1].unique.0 + 1), ..lent[1] }, "b"));
    is_not_lent(create_as(&volume, Fid { volume: VolumeId(7), ..lent[1] }, "b"));
    for wrong_class in [ROOT, lent[2]] {
        assert!(matches!(create_as(&volume, wrong_class, "b"), Err(VolumeError::Invalid)));
    }
    // Whatever was refused left the number as it was.
    assert_eq!(create_as(&volume, lent[1], "b").unwrap(), lent[1]);
}

#[test]
fn a_creation_that_fails_leaves_the_number_lent() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 1, 0).unwrap();
    create(&volume, ROOT, b"there").unwrap();
    assert!(matches!(create_as(&volume, lent[0], "there"), Err(VolumeError::Exists)));
    assert_eq!(create_as(&volume, lent[0], "free").unwrap(), lent[0]);
}

#[test]
fn the_number_of_numbers_is_bounded() {
    let (_store, volume) = memory_store();
    for (files, directories) in [(0, 0), (LENT_MAX, 1), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        assert!(matches!(lend(&volume, files, directories), Err(VolumeError::Invalid)));
    }
    assert_eq!(lend(&volume, LENT_MAX - 9, 9).unwrap().len(), LENT_MAX);
}

#[test]
fn only_what_is_still_lent_is_taken_back_and_only_once() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 4, 2).unwrap();
    create_as(&volume, lent[0], "kept").unwrap();
    create_as(&volume, lent[1], "gone").unwrap();
    update(&volume, |tx| tx.remove_file(ROOT, b"gone", ALICE)).unwrap();
    // The number of the removed file is lent again, to another.
    let others = lend(&volume, 1, 0).unwrap();
    assert_eq!(others[0].vnode, lent[1].vnode);
    assert_eq!(take_back(&volume, &lent).unwrap(), 4);
    assert_eq!(take_back(&volume, &lent).unwrap(), 0);
    is_not_lent(create_as(&volume, lent[2], "late"));
    assert_eq!(create_as(&volume, others[0], "other").unwrap(), others[0]);
    let used = [lent[0], others[0]].map(|fid| fid.vnode.0);
    no_number_is_lost_or_given_twice(&volume, used.into(), 10);
}

#[test]
fn a_number_that_was_taken_back_gets_another_uniquifier() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 1, 0).unwrap();
    take_back(&volume, &lent).unwrap();
    let fid = create(&volume, ROOT, b"f").unwrap();
    assert_eq!(fid.vnode, lent[0].vnode);
    assert_ne!(fid.unique, lent[0].unique);
}

#[test]
fn opening_the_store_takes_back_what_is_lent() {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let store = open(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let lent = lend(&volume, 100, 20).unwrap();
    create_as(&volume, lent[7], "seven").unwrap();
    drop((volume, store));
    let (store, rows) = open_both(&index, &data).unwrap();
    let volume = store.volume(VOLUME).unwrap();
    assert_eq!(rows.snapshot().range("volume.lent", .., false).count(), 0);
    is_not_lent(create_as(&volume, lent[8], "eight"));
    no_number_is_lost_or_given_twice(&volume, [lent[7].vnode.0].into(), 110);
}

#[test]
fn a_restore_ends_all_loans() {
    let (_store, volume) = memory_store();
    let lent = lend(&volume, 2, 0).unwrap();
    let mut restore = now(volume.begin_restore(false)).unwrap();
    assert!(matches!(create_as(&volume, lent[0], "meanwhile"), Err(VolumeError::Busy)));
    now(restore.keep(VnodeId(1))).unwrap();
    now(restore.commit(RestoredHeader::default())).unwrap();
    is_not_lent(create_as(&volume, lent[0], "late"));
    assert_eq!(take_back(&volume, &lent).unwrap(), 0);
    create(&volume, ROOT, b"new").unwrap();
}

#[test]
fn the_loans_of_a_deleted_volume_are_forgotten() {
    let (index, data) = (CrashDisk::new(), CrashDisk::new());
    let (store, rows) = open_both(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    lend(&volume, 3, 3).unwrap();
    assert_eq!(rows.snapshot().range("volume.lent", .., false).count(), 6);
    drop(volume);
    now(store.delete_volume(VOLUME)).unwrap();
    run_background(&store);
    assert_eq!(rows.snapshot().range("volume.lent", .., false).count(), 0);
}

/// Lends, uses, removes and takes back, until the power fails.
fn work(volume: &Arc<Volume>, store: &VolumeStore, disk: &CrashDisk, rng: &mut Rng) {
    let mut lent = Vec::new();
    for n in 0..60 {
        if disk.is_dead() {
            return;
        }
        let name = format!("f{}", rng.below(8));
        match rng.below(6) {
            0 | 1 => lent.extend(lend(volume, 1 + rng.below(5) as usize, 0).unwrap_or_default()),
            2 => drop(lent.pop().map(|fid| create_as(volume, fid, &name))),
            3 => drop(update(volume, move |tx| tx.remove_file(ROOT, name.as_bytes(), ALICE))),
            4 => drop(take_back(volume, &lent.split_off(lent.len() / 2))),
            _ => drop(create(volume, ROOT, format!("g{n}").as_bytes())),
        }
        let _ = now(store.background_step());
    }
}

fn numbers_in_use(volume: &Arc<Volume>) -> BTreeSet<u32> {
    let files = (1..1000).map(|n| VnodeId(2 * n));
    files.filter(|vnode| volume.vnode(*vnode).unwrap().is_some()).map(|vnode| vnode.0).collect()
}

#[test]
fn a_power_cut_at_any_moment_loses_no_number_and_gives_none_twice() {
    for seed in seeds(40) {
        let mut rng = Rng(seed);
        let disk = CrashDisk::new();
        let store = open(&disk, &disk).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        disk.crash_after(1 + rng.below(60));
        work(&volume, &store, &disk, &mut rng);
        drop((volume, store));
        let image = disk.image(&mut rng);
        // The power fails once more, while the numbers are taken back.
        image.crash_after(rng.below(6));
        drop(open(&image, &image));
        let image = image.image(&mut rng);
        let store = open(&image, &image).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        let used = numbers_in_use(&volume);
        // More than were ever lent at a time.
        let more = 300 - used.len();
        no_number_is_lost_or_given_twice(&volume, used, more);
    }
}
