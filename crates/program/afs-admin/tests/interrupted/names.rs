//! Two volumes that exchange their names: each name leads to one of them at any time, and never both to the same.

use afs_wire::ids::VolumeId;
use afs_wire::vl::EntryFlags;

use crate::interrupted::instants::{self, SECONDS, StartedOperation, every_instant};
use crate::interrupted::world::{Implementation, World};

fn exchanging(seed: u64) -> StartedOperation {
    let world = World::new(seed, 1, Implementation::Andrew);
    let both = ["v", "w"].map(|name| instants::create(&world, name));
    world.write(both[0]);
    world.sim.run_for(SECONDS(2));
    let check = move |world: &World, what: &str| check(world, both, what);
    StartedOperation::new(world, |admin| async move { admin.swap("v", "w").await }, check)
}

fn check(world: &World, both: [VolumeId; 2], what: &str) {
    let acknowledged = instants::written(world, what);
    let disk = world.disk(0);
    instants::assert_nothing_lost(&disk[&both[0]], &acknowledged, what);
    let mut names = Vec::new();
    for volume in both {
        let entry = world.entry(volume);
        assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: an entry is locked");
        let name = entry.name.to_string();
        assert_eq!(disk[&volume].name, name, "{what}: the volume has another name than its entry");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["v", "w"], "{what}");
}

#[test]
fn a_server_of_an_exchange_dies_at_every_instant() {
    every_instant(exchanging, 0);
}

#[test]
fn the_tool_of_an_exchange_dies_at_every_instant() {
    every_instant(exchanging, 1);
}

#[test]
fn the_databases_die_at_every_instant_of_an_exchange() {
    every_instant(exchanging, 2);
}
