//! Series of lists: each list is made once, and the row that says so is durable with it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

use crate::support;

use std::sync::Arc;

use afs_sim::crash::{CrashDisk, Rng};
use afs_volume::{ALIKE_MAX, Depth, LastList, ListOutcome, NumberedList, Volume, VolumeError, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{SeriesId, SetStatus};
use afs_wire::ids::Fid;
use support::series::listed;
use support::*;

fn create(tx: &mut VolumeTx<'_, '_>, name: String) -> Result<Fid, VolumeError> {
    let made = tx.create_file(ROOT, name.as_bytes(), &SetStatus::default(), ALICE)?;
    Ok(made.object.fid(VOLUME))
}

/// Sends a list of files to be made.
fn send(volume: &Arc<Volume>, list: NumberedList, names: &[&str]) -> Result<ListOutcome<Fid>, VolumeError> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    now(volume.update_list(list, names, create, |fid| Some(*fid)))
}

fn last(volume: &Arc<Volume>, series: u64) -> Option<LastList> {
    volume.reads(Depth::Disk).last_list(SeriesId(series)).unwrap()
}

#[test]
fn a_list_is_made_once_also_after_a_restart() {
    let disk = CrashDisk::new();
    let store = open(&disk, &disk).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let made = send(&volume, listed(7, 1), &["a", "b"]).unwrap().done;
    drop((volume, store));
    let store = open(&disk, &disk).unwrap();
    let volume = store.volume(VOLUME).unwrap();

    let found = last(&volume, 7).unwrap();
    assert_eq!([0, 1, 2].map(|at| found.object(at, VOLUME)), [Some(made[0]), Some(made[1]), None]);
    assert!(found.is_of(&listed(7, 1)) && found.code == AbortCode::OK);
    assert!(matches!(send(&volume, listed(7, 1), &["a", "b"]), Err(VolumeError::MadeBefore)));
    send(&volume, listed(7, 2), &["c"]).unwrap();
    assert_eq!(volume.header().file_count, 4);
}

#[test]
fn other_lists_than_the_next_are_refused_and_change_nothing() {
    let (_store, volume) = memory_store();
    send(&volume, listed(7, 1), &["a"]).unwrap();
    let other_content = NumberedList { sum: 5, ..listed(7, 1) };
    let mut other_sender = listed(7, 2);
    other_sender.sender.holder = b"another".to_vec().into();
    for wrong in [other_content, other_sender, listed(7, 3), listed(7, 0)] {
        let refused = send(&volume, wrong.clone(), &["b"]);
        assert!(matches!(refused, Err(VolumeError::Invalid)), "{wrong:?}: {refused:?}");
    }
    assert!(matches!(send(&volume, listed(8, 2), &["b"]), Err(VolumeError::UnknownSeries)));
    assert_eq!((volume.header().file_count, last(&volume, 7).unwrap().number.0), (2, 1));
    assert_eq!(last(&volume, 8), None);
}

#[test]
fn a_list_of_which_nothing_is_made_uses_no_number() {
    let (_store, volume) = memory_store();
    send(&volume, listed(7, 1), &["a"]).unwrap();
    let outcome = send(&volume, listed(7, 2), &["a", "b"]).unwrap();
    assert!(outcome.done.is_empty() && matches!(outcome.failed, Some(VolumeError::Exists)));
    assert_eq!(last(&volume, 7).unwrap().number.0, 1);
    let outcome = send(&volume, listed(7, 2), &["b", "a", "c"]).unwrap();
    assert!(outcome.done.len() == 1 && matches!(outcome.failed, Some(VolumeError::Exists)));
    let found = last(&volume, 7).unwrap();
    assert_eq!((found.number.0, found.made.len(), found.code), (2, 1, Errno::EEXIST.to_uae()));
}

#[test]
fn series_that_begin_and_end_are_known_from_the_one_to_the_other() {
    let (_store, volume) = memory_store();
    update(&volume, |tx| tx.begin_series(SeriesId(7), listed(7, 0).sender)).unwrap();
    assert_eq!(last(&volume, 7).unwrap().number.0, 0);
    send(&volume, listed(7, 1), &["a"]).unwrap();
    update(&volume, |tx| {
        tx.end_series(SeriesId(7));
        Ok(())
    })
    .unwrap();
    assert_eq!(last(&volume, 7), None);
    assert!(matches!(send(&volume, listed(7, 2), &["b"]), Err(VolumeError::UnknownSeries)));
}

/// The power fails at every write of a list.
#[test]
fn a_power_cut_leaves_a_list_with_its_row_or_neither() {
    let mut seen = [false; 2];
    for fuse in 0..40 {
        let disk = CrashDisk::new();
        let store = open(&disk, &disk).unwrap();
        let volume = now(store.create_volume(spec(0))).unwrap();
        send(&volume, listed(7, 1), &["a"]).unwrap();
        disk.crash_after(fuse);
        drop(send(&volume, listed(7, 2), &["b", "c"]));
        drop((volume, store));
        let image = disk.image(&mut Rng(fuse + 1));
        let store = open(&image, &image).unwrap();
        let volume = store.volume(VOLUME).unwrap();
        let is_made = volume.header().file_count == 4;
        assert_eq!(last(&volume, 7).unwrap().number.0, if is_made { 2 } else { 1 }, "after {fuse} writes");
        let again = send(&volume, listed(7, 2), &["b", "c"]);
        assert_eq!(matches!(again, Err(VolumeError::MadeBefore)), is_made, "after {fuse} writes");
        assert_eq!(volume.header().file_count, 4);
        seen[usize::from(is_made)] = true;
    }
    assert_eq!(seen, [true; 2], "crashes before and after the commit");
}

#[test]
fn series_are_bounded_and_end_with_their_volume() {
    let (store, volume) = memory_store();
    let alike = |n: u64| 9 << 56 | n;
    for n in 0..ALIKE_MAX as u64 + 3 {
        send(&volume, listed(alike(n), 1), &[&format!("f{n}")]).unwrap();
    }
    send(&volume, listed(5, 1), &["other"]).unwrap();
    let known = (0..ALIKE_MAX as u64 + 3).filter(|n| last(&volume, alike(*n)).is_some()).count();
    assert_eq!((known, last(&volume, 5).is_some()), (ALIKE_MAX, true));
    drop(volume);
    now(store.delete_volume(VOLUME)).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    assert!((0..ALIKE_MAX as u64 + 3).all(|n| last(&volume, alike(n)).is_none()));
}
