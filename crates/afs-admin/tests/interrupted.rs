//! A move under a writing client, with a machine that dies at every instant of it.
//!
//! Whatever dies and whenever: afterwards the volume is on line on exactly one server, the one that the location database
//! names; the entry is not locked; nothing that was acknowledged is lost; no clone is left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

mod world;

use std::time::Duration;

use afs_admin::{CreateOptions, MoveOptions, Place};
use afs_sim::NodeId;
use afs_wire::ids::{PartitionId, VolumeId};
use afs_wire::vl::EntryFlags;
use world::{World, address, home};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// A cell with a volume on its first server that a client writes to, and a tool that is about to move it to the second.
fn begin(seed: u64) -> (World, VolumeId) {
    let world = World::new(seed, 2);
    let admin = world.admin();
    let options =
        CreateOptions { name: "v".into(), place: Place::new(address(2), PartitionId(0)), quota: 0, id: None };
    let made = world.sim.block_on(world.tool, SECONDS(60), async move { admin.create(options).await });
    let volume = made.unwrap().unwrap();
    world.write(volume);
    world.sim.run_for(SECONDS(3));
    let admin = world.admin();
    world.sim.env(world.tool).spawn(Box::pin(async move {
        let to = Place::new(address(3), PartitionId(0));
        let options = MoveOptions { volume: "v".into(), from: None, to, live: false, drop_snapshots: false };
        let _ = admin.move_volume(options).await;
    }));
    (world, volume)
}

/// Events until nothing is under way any more.
fn events_of_a_move(seed: u64) -> u64 {
    let (world, volume) = begin(seed);
    let mut events = 0u64;
    let done = world.sim.run_until(SECONDS(60), || {
        events += 1;
        let source = world.servers[0].1.lock().unwrap();
        source.is_empty() && world.servers[1].1.lock().unwrap().contains_key(&volume)
    });
    done.expect("a move without trouble ends");
    world.wait_until_quiet(SECONDS(60));
    check(&world, volume, "nothing died");
    assert_eq!(home(&world.entry(volume)), Some(address(3)));
    events
}

fn check(world: &World, volume: VolumeId, what: &str) {
    world.sim.run_for(SECONDS(5));
    let before = world.acknowledged.lock().unwrap().len();
    world.sim.run_for(SECONDS(5));
    let acknowledged = world.acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() > before, "{what}: the client cannot write\n{}", world.sim.log_tail(40));
    let entry = world.entry(volume);
    assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    let mut holders = 0;
    for (index, (_, disk)) in world.servers.iter().enumerate() {
        for (id, held) in disk.lock().unwrap().iter() {
            assert_eq!(*id, volume, "{what}: {} is left on server {index}", held.name);
            holders += 1;
            let here = Some(address(2 + index as u8));
            assert_eq!(home(&entry), here, "{what}: the entry does not name the server that has it");
            assert!(held.in_service && !held.destroy_me, "{what}: it is off line");
            let lost: Vec<_> = acknowledged.iter().filter(|n| !held.numbers.contains_key(n)).collect();
            assert!(lost.is_empty(), "{what}: lost {lost:?}");
        }
    }
    assert_eq!(holders, 1, "{what}: it has to be on one server");
}

fn die_at(seed: u64, event: u64, victim: usize) {
    let (world, volume) = begin(seed);
    let node: NodeId = world.victims()[victim];
    let mut events = 0u64;
    let _ = world.sim.run_until(SECONDS(60), || {
        events += 1;
        events >= event
    });
    let what = format!("seed {seed}, {} dies at event {event}", world.sim.name(node));
    world.sim.crash(node);
    world.sim.run_for(SECONDS(4));
    if node != world.tool {
        world.restart(node);
    }
    world.wait_until_quiet(SECONDS(1200));
    check(&world, volume, &what);
}

/// `ANDREW_MOVE_STRIDE` says how many instants are passed over from one death to the next (default 23; 1 is every one),
/// `ANDREW_MOVE_SEED` which run.
fn every_instant(victim: usize) {
    let setting = |name, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (seed, stride) = (setting("ANDREW_MOVE_SEED", 1), setting("ANDREW_MOVE_STRIDE", 23u64).max(1));
    let events = events_of_a_move(seed);
    let mut event = 1 + victim as u64;
    while event <= events {
        die_at(seed, event, victim);
        event += stride;
    }
}

#[test]
fn the_source_dies_at_every_instant() {
    every_instant(0);
}

#[test]
fn the_target_dies_at_every_instant() {
    every_instant(1);
}

#[test]
fn the_tool_dies_at_every_instant() {
    every_instant(2);
}

#[test]
fn the_databases_die_at_every_instant() {
    every_instant(3);
}
