//! Scheduled snapshots: made of changed volumes, kept according to the schedule, and not in the way of a
//! user's operations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_admin::scheduled::{SnapshotRun, Snapshotter, USUAL};
use afs_admin::{CreateOptions, Progress, RemoveOptions};
use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::operations::SnapshotSchedule;

use super::cell::{Cell, address, place};
use super::content::write;

/// 2026-11-23, a Monday.
const MONDAY: u32 = 1_795_392_000;

fn create(cell: &Cell) -> VolumeId {
    let options = CreateOptions { name: "v".into(), place: place(0, 0), quota: 0, id: None };
    cell.run(|admin| async move { admin.create(options).await }).unwrap()
}

/// The server's run at noon of a day, counted from the Monday; times of files are the simulated clock's.
fn look(cell: &Cell, day: u32) -> SnapshotRun {
    // Longer than a second, within which dates cannot tell before from after.
    cell.sim.run_for(Duration::from_secs(20));
    let now = UnixSeconds(MONDAY + day * 86_400 + 43_200);
    cell.run(move |admin| async move { Snapshotter::new(admin, address(2)).run_once(now).await }).unwrap()
}

fn names(cell: &Cell) -> Vec<String> {
    let all = cell.run(|admin| async move { admin.snapshots("v").await }).unwrap();
    let mut names: Vec<String> = all.into_iter().map(|snapshot| snapshot.name).collect();
    names.sort();
    names
}

#[test]
fn a_day_on_which_something_changed_has_a_snapshot_and_no_other_day() {
    let cell = Cell::new(51, 2);
    let volume = create(&cell);
    write(&cell, place(0, 0), volume, "file", b"one");
    assert_eq!(look(&cell, 0).made, ["v.2026-11-23"]);
    assert_eq!(look(&cell, 0), SnapshotRun::default(), "once a day");
    assert_eq!(look(&cell, 1), SnapshotRun::default(), "nothing has changed");
    cell.sim.run_for(Duration::from_secs(20));
    write(&cell, place(0, 0), volume, "file", b"two");
    assert_eq!(look(&cell, 3).made, ["v.2026-11-26"]);
    assert_eq!(names(&cell), ["2026-11-23", "2026-11-26"]);
}

#[test]
fn old_snapshots_are_removed_and_snapshots_of_other_names_are_not() {
    let cell = Cell::new(52, 2);
    let volume = create(&cell);
    cell.run(|admin| async move { admin.create_snapshot("v", "by-hand").await }).unwrap();
    let schedule = SnapshotSchedule { daily: 2, weekly: 2 };
    cell.run(move |admin| async move { admin.set_snapshot_schedule(schedule).await }).unwrap();
    for day in 0..9 {
        cell.sim.run_for(Duration::from_secs(20));
        write(&cell, place(0, 0), volume, "file", format!("{day}").as_bytes());
        assert_eq!(look(&cell, day).made.len(), 1, "day {day}");
    }
    // Two days, and the Sunday of the week before.
    assert_eq!(names(&cell), ["2026-11-29", "2026-11-30", "2026-12-01", "by-hand"]);
}

#[test]
fn the_cell_keeps_the_schedule_and_none_is_none() {
    let cell = Cell::new(53, 2);
    let volume = create(&cell);
    let schedule = |cell: &Cell| cell.run(|admin| async move { admin.snapshot_schedule().await }).unwrap();
    assert_eq!(schedule(&cell), Some(USUAL));
    let none = SnapshotSchedule::default();
    cell.run(move |admin| async move { admin.set_snapshot_schedule(none.clone()).await }).unwrap();
    assert_eq!(schedule(&cell), Some(SnapshotSchedule::default()));
    write(&cell, place(0, 0), volume, "file", b"one");
    assert_eq!(look(&cell, 0), SnapshotRun::default());
    let wrong = SnapshotSchedule { daily: 1000, weekly: 0 };
    cell.run(move |admin| async move { admin.set_snapshot_schedule(wrong).await }).unwrap_err();
}

/// Records warnings for the user.
#[derive(Default)]
struct RecordedWarnings(Mutex<Vec<String>>);

impl Progress for RecordedWarnings {
    fn step(&self, _: &str) {}

    fn bytes(&self, _: u64, _: Option<u64>) {}

    fn warn(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }
}

#[test]
fn a_volume_is_removed_with_the_snapshots_that_its_server_made() {
    let cell = Cell::new(54, 2);
    create(&cell);
    look(&cell, 0);
    let remove = || RemoveOptions { volume: "v".into(), place: None, snapshots: false };
    cell.run(|admin| async move { admin.create_snapshot("v", "by-hand").await }).unwrap();
    let refused = cell.run(|admin| async move { admin.remove(remove()).await }).unwrap_err();
    assert!(refused.to_string().contains("it has snapshots: by-hand, and 1 dated one;"), "{refused}");
    cell.run(|admin| async move { admin.remove_snapshot("v", "by-hand").await }).unwrap();
    let told = Arc::new(RecordedWarnings::default());
    let telling = told.clone();
    cell.run(|admin| async move { admin.with_progress(telling).remove(remove()).await }).unwrap();
    assert_eq!(*told.0.lock().unwrap(), ["the snapshots of v are removed with it: 1 dated one"]);
    assert_eq!(cell.volumes(place(0, 0)), []);
}
