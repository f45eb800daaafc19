//! A release to two sites. Each shows one complete state; the entry says which have the new one; the next
//! release brings it to all.

use afs_admin::ReleaseOptions;
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, SiteFlags};

use crate::interrupted::instants::{self, SECONDS, StartedOperation, every_instant, place};
use crate::interrupted::world::{DiskVolume, Implementation, World};

/// A volume that was released, and written to since, and a tool that releases it once more. With `beside`, one site is
/// where the volume is.
fn releasing(seed: u64, beside: bool) -> StartedOperation {
    let world = World::new(seed, 3, Implementation::Andrew);
    let volume = instants::create(&world, "v");
    let first = if beside { 0 } else { 1 };
    for site in [first, 2] {
        world.run(|admin| async move { admin.add_site("v", place(site), false).await });
    }
    world.write(volume);
    world.sim.run_for(SECONDS(2));
    world.run(|admin| async move { admin.release(options()).await });
    world.sim.run_for(SECONDS(2));
    let check = move |world: &World, what: &str| check(world, volume, beside, what);
    StartedOperation::new(world, |admin| async move { admin.release(options()).await.map(drop) }, check)
}

fn options() -> ReleaseOptions {
    ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() }
}

fn to_others(seed: u64) -> StartedOperation {
    releasing(seed, false)
}

fn beside(seed: u64) -> StartedOperation {
    releasing(seed, true)
}

fn check(world: &World, volume: VolumeId, beside: bool, what: &str) {
    let acknowledged = instants::written(world, what);
    let entry = world.entry(volume);
    assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    let read_only = entry.id(VolumeKind::ReadOnly);
    instants::assert_nothing_lost(&world.disk(0)[&volume], &acknowledged, what);
    let copies = copies(world, volume, read_only, beside, what);
    let marked = |server: u8| {
        let at = entry
            .sites
            .iter()
            .find(|s| s.flags.contains(SiteFlags::RO_VOLUME) && s.server == place(server).server);
        at.expect("a site").flags.contains(SiteFlags::NEW_REPSITE)
    };
    let sites = if beside { [0, 2] } else { [1, 2] };
    let [first, second] = [0, 1].map(|n| copies[n].numbers.len());
    if first != second {
        assert_eq!(
            sites.map(marked),
            [first > second, second > first],
            "{what}: {first} and {second} numbers"
        );
    }
    // Whatever happened, the next release brings every site to the same state.
    world.run(|admin| async move { admin.release(ReleaseOptions { force: true, ..options() }).await });
    let copies = self::copies(world, volume, read_only, beside, what);
    assert_eq!(copies[0].numbers.len(), copies[1].numbers.len(), "{what}: after one more release");
}

/// The content of the two sites; checks that no other server has any.
fn copies(world: &World, volume: VolumeId, read_only: VolumeId, beside: bool, what: &str) -> Vec<DiskVolume> {
    let mut copies = Vec::new();
    for index in 0..world.servers.len() {
        for (id, held) in world.disk(index) {
            assert!(id == volume || id == read_only, "{what}: {} is left on server {index}", held.name);
            assert_eq!(
                id == volume,
                index == 0 && held.kind == VolumeKind::ReadWrite.into(),
                "{what}: {}",
                held.name
            );
            assert!(id == volume || index != 0 || beside, "{what}: {} is left", held.name);
            instants::assert_whole(&held, what);
            if id == read_only {
                copies.push(held);
            }
        }
    }
    assert_eq!(copies.len(), 2, "{what}: copies");
    copies
}

#[test]
fn the_source_of_a_release_dies_at_every_instant() {
    every_instant(to_others, 0);
}

#[test]
fn a_site_dies_at_every_instant() {
    every_instant(to_others, 1);
}

#[test]
fn the_tool_of_a_release_dies_at_every_instant() {
    every_instant(to_others, 3);
}

#[test]
fn the_databases_die_at_every_instant_of_a_release() {
    every_instant(to_others, 4);
}

#[test]
fn a_source_that_is_a_site_dies_at_every_instant() {
    every_instant(beside, 0);
}

#[test]
fn the_other_site_dies_at_every_instant() {
    every_instant(beside, 2);
}

#[test]
fn the_tool_dies_at_every_instant_of_a_release_beside_the_source() {
    every_instant(beside, 3);
}
