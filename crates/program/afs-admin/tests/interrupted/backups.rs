//! A backup volume that is made, or brought up to date.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;

use crate::interrupted::instants::{self, SECONDS, StartedOperation, every_instant};
use crate::interrupted::world::{Implementation, World};

fn backing_up(seed: u64, again: bool) -> StartedOperation {
    let world = World::new(seed, 1, Implementation::OpenAfs);
    let volume = instants::create(&world, "v");
    world.write(volume);
    if again {
        world.run(|admin| async move { admin.backup("v").await });
    }
    world.sim.run_for(SECONDS(2));
    let check = move |world: &World, what: &str| check(world, volume, again, what);
    StartedOperation::new(world, |admin| async move { admin.backup("v").await.map(drop) }, check)
}

fn first(seed: u64) -> StartedOperation {
    backing_up(seed, false)
}

fn again(seed: u64) -> StartedOperation {
    backing_up(seed, true)
}

fn check(world: &World, volume: VolumeId, again: bool, what: &str) {
    let acknowledged = instants::written(world, what);
    let entry = world.entry(volume);
    assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    let disk = world.disk(0);
    instants::assert_nothing_lost(&disk[&volume], &acknowledged, what);
    disk.values().for_each(|held| instants::assert_whole(held, what));
    let exists = entry.flags.contains(EntryFlags::BACK_EXISTS);
    assert!(exists || !again, "{what}: the backup volume of before is not in the entry");
    assert_eq!(disk.len(), 1 + usize::from(exists), "{what}: {disk:?}");
    assert_eq!(disk.contains_key(&entry.id(VolumeKind::Backup)), exists, "{what}");
}

#[test]
fn the_server_of_a_backup_dies_at_every_instant() {
    every_instant(first, 0);
    every_instant(again, 0);
}

#[test]
fn the_tool_of_a_backup_dies_at_every_instant() {
    every_instant(first, 1);
    every_instant(again, 1);
}

#[test]
fn the_databases_die_at_every_instant_of_a_backup() {
    every_instant(first, 2);
    every_instant(again, 2);
}
