//! Operations on volumes under a writing client, with a machine that crashes at every event of them.
//!
//! Whichever crashes and whenever: afterwards every volume is on line at its site in the location database,
//! and nowhere else; the entry is not locked; nothing acknowledged is lost; nothing that was created for the
//! operation is left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

mod backups;
mod instants;
mod made;
mod names;
mod releases;
mod world;

use afs_admin::MoveOptions;
use afs_wire::ids::VolumeId;
use afs_wire::vl::EntryFlags;
use afs_wire::vol::DataRoute;
use instants::{SECONDS, StartedOperation, die_at, every_instant, place};
use world::{Implementation, World, address, home};

/// A volume on the first server that a client writes to, and a tool that moves it to the second.
fn moving(seed: u64) -> StartedOperation {
    let world = World::new(seed, 2, Implementation::OpenAfs);
    let volume = instants::create(&world, "v");
    world.write(volume);
    world.sim.run_for(SECONDS(3));
    let options =
        MoveOptions { volume: "v".into(), from: None, to: place(1), live: false, drop_snapshots: false };
    let moved = |admin: afs_admin::Admin| async move { admin.move_volume(options).await.map(drop) };
    StartedOperation::new(world, moved, move |world, what| check(world, volume, what))
}

fn check(world: &World, volume: VolumeId, what: &str) {
    let acknowledged = instants::written(world, what);
    let entry = world.entry(volume);
    assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    let mut holders = 0;
    for index in 0..world.servers.len() {
        for (id, held) in world.disk(index) {
            assert_eq!(id, volume, "{what}: {} is left on server {index}", held.name);
            holders += 1;
            let here = Some(address(2 + index as u8));
            assert_eq!(home(&entry), here, "{what}: the entry does not name the server that has it");
            assert!(held.in_service && !held.destroy_me, "{what}: it is off line");
            instants::assert_nothing_lost(&held, &acknowledged, what);
        }
    }
    assert_eq!(holders, 1, "{what}: it has to be on one server");
}

#[test]
fn the_source_dies_at_every_instant() {
    every_instant(moving, 0);
}

#[test]
fn the_target_dies_at_every_instant() {
    every_instant(moving, 1);
}

#[test]
fn the_tool_dies_at_every_instant() {
    every_instant(moving, 2);
}

#[test]
fn the_databases_die_at_every_instant() {
    every_instant(moving, 3);
}

#[test]
fn a_volume_moves_to_a_server_that_does_not_know_its_setting() {
    for implementation in [Implementation::Andrew, Implementation::OpenAfs] {
        let world = World::new(1, 2, implementation);
        let volume = instants::create(&world, "v");
        world.servers[0].1.lock().unwrap().get_mut(&volume).unwrap().route = Some(DataRoute::Calls);
        let options =
            MoveOptions { volume: "v".into(), from: None, to: place(1), live: false, drop_snapshots: false };
        world.run(|admin| async move { admin.move_volume(options).await });
        assert_eq!(home(&world.entry(volume)), Some(address(3)), "{implementation:?}");
        assert_eq!(world.disk(1)[&volume].route, None, "{implementation:?}");
    }
}

/// The lock is durable, its reply is not sent. The restarted databases get the datagram again, and take it
/// for a new call: the entry is locked already, by the caller.
#[test]
fn the_databases_die_while_the_entry_is_locked() {
    (60..90).for_each(|event| die_at(moving, 1, event, 3));
}
