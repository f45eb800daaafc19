//! Files on drives of each kind, in each organisation, read and stored where their file server says: programs notice only that the
//! bytes are there.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

mod away;
mod buckets;
mod changes;
mod commanded;
use crate::common;
mod connecting;
mod copies;
mod crowded;
mod listed;
mod lists;
mod model;
mod named;
mod placed;
mod rekeyed;
mod renewing;
mod scene;
mod secured;
mod storing;
mod troubles;
mod whole;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::sync::oneshot;
use afs_sim::crash::seeds;
use afs_testkit::{BUCKET, Conduct, DrivePlan, Staging};
use afs_venus::{OpenFlags, SetAttr};
use afs_volume::DataRoute;
use common::{Client, pattern};
use scene::{MIB, OPENING, Scene, impostor};

const ALICE: u32 = 1001;

fn at_drives(client: &Client) -> u64 {
    client.venus.counters().drive_bytes_fetched
}

fn fallbacks(client: &Client, reason: &str) -> u64 {
    client.venus.counters().drive_fallbacks.get(reason).copied().unwrap_or_default()
}

#[test]
fn a_file_is_read_at_the_drive_and_its_server_sends_what_it_alone_has() {
    for seed in seeds(4) {
        let scene = Scene::new(seed);
        let big = pattern(5 * MIB + 3, 7);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        let before = client.venus.counters();
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        let after = client.venus.counters();
        assert_eq!(after.drive_bytes_fetched - before.drive_bytes_fetched, 5 * MIB as u64, "seed {seed}");
        assert_eq!(after.path_bytes_fetched, before.path_bytes_fetched, "seed {seed}");
        assert_eq!(after.bytes_fetched - before.bytes_fetched, big.len() as u64);
        assert_eq!(client.calls("GetLayout"), 2, "one for each file");
        assert_eq!(fallbacks(&client, "connecting"), 1, "{:?}", after.drive_fallbacks);
        assert_eq!(scene.hosts[0].served.counts().refused, [0; 8]);
    }
}

#[test]
fn the_first_bytes_of_a_gibibyte_come_from_a_drive_as_soon_as_those_of_a_file_that_has_no_more() {
    const FIRST: usize = 128 << 10;
    let read = |seed: u64, path: &'static str| {
        let scene = Scene::new(seed);
        scene.put("tiny", pattern(FIRST, 5));
        scene.put("large", pattern(MIB, 5));
        let writer = scene.writer.clone();
        scene.cell.on(&scene.writer, async move {
            let node = writer.find("large").await.unwrap().node;
            let longer = SetAttr { size: Some(1 << 30), ..SetAttr::default() };
            writer.venus.setattr(node, None, longer).await.unwrap();
        });
        let client = scene.warm(2);
        let (here, before) = (client.clone(), at_drives(&client));
        let took = scene.cell.on(&client, async move {
            let begun = here.env.now();
            let handle = here.open(path, OpenFlags::READ).await.unwrap();
            assert_eq!(here.venus.read(handle, 0, FIRST).await.unwrap(), pattern(MIB, 5)[..FIRST]);
            here.env.now().saturating_since(begun)
        });
        assert_eq!(at_drives(&client) - before, FIRST as u64, "seed {seed}, {path}");
        (took, client.venus.counters().calls)
    };
    let (mut tiny, mut large) = (Duration::ZERO, Duration::ZERO);
    for seed in 1..5 {
        let ((of_tiny, its_calls), (of_large, calls)) = (read(seed, "tiny"), read(seed, "large"));
        assert_eq!(calls, its_calls, "seed {seed}");
        tiny += of_tiny;
        large += of_large;
    }
    // The checksums of a longer chunk take a segment more, and latencies are drawn: a fetch of more bytes would take a multiple.
    assert!(large <= tiny * 3 / 2, "{tiny:?} {large:?}");
}

#[test]
fn holes_are_zeros() {
    let scene = Scene::new(1);
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        let handle = writer.open_new("holes").await.unwrap();
        writer.venus.write(handle, 0, pattern(MIB, 3).into()).await.unwrap();
        writer.venus.write(handle, 4 * MIB as u64, pattern(MIB, 4).into()).await.unwrap();
        writer.venus.flush(handle, 0).await.unwrap();
        writer.venus.release(handle).await.unwrap();
    });
    let client = scene.warm(2);
    let whole = [pattern(MIB, 3), vec![0; 3 * MIB], pattern(MIB, 4)].concat();
    assert!(scene.get(&client, "holes").unwrap() == whole);
    assert_eq!(at_drives(&client), 2 * MIB as u64);
}

#[test]
fn a_drive_that_does_anything_is_read_past() {
    let conducts = [
        (Conduct::Lies, "damaged"),
        (Conduct::Short, "damaged"),
        (Conduct::LongerThanTold, "damaged"),
        (Conduct::Refuses, "refused"),
        (Conduct::Fails, "declined"),
        (Conduct::Silent, "stalled"),
        (Conduct::Half, "declined"),
    ];
    for (conduct, reason) in conducts {
        let scene = Scene::new(3);
        let big = pattern(2 * MIB, 9);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        scene.set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        assert_eq!(at_drives(&client), 0, "{conduct:?}");
        let counters = client.venus.counters();
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {:?}", counters.drive_fallbacks);
        assert!(counters.path_bytes_fetched >= 2 * MIB as u64, "{conduct:?}: the file server's own drive");
    }
}

#[test]
fn a_drive_with_another_key_gives_nothing() {
    let scene = Scene::new(4);
    scene.put("one", pattern(MIB, 1));
    // Somebody on the way answers for the drive. Without TLS nothing proves the connection; the capabilities do not fit.
    impostor(&scene.cell, false);
    let client = scene.warm(2);
    assert!(scene.get(&client, "one").unwrap() == pattern(MIB, 1));
    assert_eq!(at_drives(&client), 0);
    assert!(fallbacks(&client, "refused") > 0, "{:?}", client.venus.counters().drive_fallbacks);
}

#[test]
fn a_drive_that_is_away_from_the_client_costs_it_a_moment_and_the_bytes_come() {
    for seed in seeds(4) {
        let scene = Scene::new(seed);
        let files: Vec<_> = (0..4).map(|n| (format!("f{n}"), pattern(MIB, n))).collect();
        files.iter().for_each(|(name, bytes)| scene.put(name, bytes.clone()));
        let client = scene.warm(2);
        scene.cut(&client, 0);
        for (name, bytes) in &files {
            assert!(scene.get(&client, name).unwrap() == *bytes, "seed {seed}, {name}");
        }
        assert_eq!(at_drives(&client), 0);
        assert_eq!(
            fallbacks(&client, "stalled"),
            1,
            "once, then it is left alone: {:?}",
            client.venus.counters()
        );
        assert!(fallbacks(&client, "paused") > 0);
    }
}

#[test]
fn after_a_change_of_rights_nothing_is_read_at_the_drive() {
    let scene = Scene::new(6);
    scene.make_home("rl");
    scene.put_at_home(pattern(4 * MIB, 5));
    let client = scene.warm(2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    let read = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open("home/big", OpenFlags::READ).await.unwrap();
        bob.venus.read(handle, 0, MIB).await.unwrap();
        here.env.sleep(OPENING).await;
        let first = bob.venus.read(handle, MIB as u64, MIB).await.unwrap();
        let before = at_drives(&here);
        let alice = writer.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        let second = bob.venus.read(handle, 2 * MIB as u64, MIB).await;
        (
            first.len(),
            before > 0,
            at_drives(&here) == before,
            second.map(|bytes| bytes.len()).map_err(|e| e.errno()),
        )
    });
    assert_eq!(read, (MIB, true, true, Err(13)));
}

#[test]
fn a_change_of_rights_in_the_middle_of_one_read_ends_it() {
    let scene = Scene::new(6);
    scene.make_home("rl");
    scene.put_at_home(pattern(2 * MIB, 5));
    let client = scene.warm(2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    scene.set_conduct(Conduct::Slow);
    let before = at_drives(&client);
    let read = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open("home/big", OpenFlags::READ).await.unwrap();
        let (done, reading) = oneshot::channel();
        let venus = bob.venus.clone();
        here.env.spawn(Box::pin(async move { _ = done.send(venus.read(handle, 0, MIB).await) }));
        // A drive that sends a piece in three seconds is in the middle of it.
        here.env.sleep(Duration::from_secs(10)).await;
        let alice = writer.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        reading.await.unwrap()
    });
    assert_eq!(read.map(|bytes| bytes.len()).map_err(|error| error.errno()), Err(13));
    assert_eq!(at_drives(&client), before);
    assert!(fallbacks(&client, "refused") > 0, "{:?}", client.venus.counters().drive_fallbacks);
}

#[test]
fn a_second_read_asks_for_no_layout_and_another_version_for_its_own() {
    let scene = Scene::new(7);
    scene.put("big", pattern(3 * MIB, 1));
    let client = scene.warm(2);
    let before = client.calls("GetLayout");
    let here = client.clone();
    scene.cell.on(&client, async move {
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        for n in 0..3 {
            here.venus.read(handle, n * MIB as u64, MIB).await.unwrap();
        }
    });
    assert_eq!((client.calls("GetLayout") - before, at_drives(&client)), (1, 3 * MIB as u64));
    scene.put("big", pattern(3 * MIB, 2));
    assert!(scene.get(&client, "big").unwrap() == pattern(3 * MIB, 2));
    assert_eq!((client.calls("GetLayout") - before, at_drives(&client)), (2, 6 * MIB as u64));
}

#[test]
fn a_volume_that_has_no_layouts_costs_one_call_a_while() {
    let scene = Scene::new(8);
    scene.set_route(DataRoute::Server);
    for n in 0..6 {
        scene.put(&format!("f{n}"), pattern(MIB, n));
    }
    let client = scene.cell.client(2);
    for n in 0..6 {
        assert!(scene.get(&client, &format!("f{n}")).unwrap() == pattern(MIB, n));
    }
    assert_eq!((client.calls("GetLayout"), at_drives(&client)), (1, 0));
    scene.set_route(DataRoute::Drives);
    scene.cell.sim.run_for(Duration::from_secs(200));
    scene.put("f6", pattern(MIB, 6));
    scene.get(&client, "f6").unwrap();
    assert_eq!(client.calls("GetLayout"), 2);
}

#[test]
fn a_mount_may_forbid_drives_and_the_same_bytes_come_by_each_way() {
    let scene = Scene::new(9);
    let big = pattern(3 * MIB + 77, 4);
    scene.put("big", big.clone());
    let mut moved = Vec::new();
    for (number, (enabled, drives)) in [(2, (false, false)), (3, (true, false)), (4, (true, true))] {
        {
            let mut config = scene.cell.data_path.lock().unwrap();
            (config.enabled, config.drives) = (enabled, drives);
        }
        let client = scene.warm(number);
        assert!(scene.get(&client, "big").unwrap() == big);
        let counters = client.venus.counters();
        let asked = client.calls("GetLayout") > 0;
        moved.push((counters.path_bytes_fetched > 0, counters.drive_bytes_fetched > 0, asked));
    }
    assert_eq!(moved[..2], [(false, false, false), (true, false, false)]);
    assert!(moved[2].1 && moved[2].2);
}
