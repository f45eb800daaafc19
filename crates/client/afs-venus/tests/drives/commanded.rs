//! Reads and stores of a volume whose transfers the file server commands.

use afs_rpc::EnvExt;
use afs_sim::crash::seeds;
use afs_testkit::{Conduct, Staging};
use afs_venus::OpenFlags;
use afs_volume::DataRoute;

use super::common::pattern;
use super::scene::{MIB, OPENING, Scene};
use super::storing::{put, read_elsewhere, stored, warm};
use super::{Duration, at_drives, fallbacks};

fn commanded(seed: u64) -> Scene {
    let scene = Scene::new(seed);
    scene.set_route(DataRoute::Commanded);
    scene
}

#[test]
fn commanded_transfers_bring_the_same_bytes_by_a_call_each() {
    for seed in seeds(4) {
        let scene = commanded(seed);
        let big = pattern(5 * MIB + 3, 7);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        let before = client.calls("Command");
        let fetched = at_drives(&client);
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        assert_eq!(at_drives(&client) - fetched, 5 * MIB as u64, "seed {seed}");
        assert_eq!(
            client.calls("Command") - before,
            6,
            "one for what is read first, one for the rest of each mebibyte"
        );
        assert_eq!(client.venus.counters().path_bytes_fetched, 0);
        assert_eq!(scene.hosts[0].served.counts().refused, [0; 8]);
    }
}

#[test]
fn a_drive_or_a_file_server_that_does_not_deliver_is_read_past() {
    for conduct in [Conduct::Lies, Conduct::Refuses, Conduct::Silent, Conduct::Half] {
        let scene = commanded(3);
        let big = pattern(2 * MIB, 9);
        scene.put("big", big.clone());
        let client = scene.warm(2);
        scene.set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        // What is read first goes by a call where the capability does not come in time.
        assert!(client.venus.counters().path_bytes_fetched >= MIB as u64, "{conduct:?}");
    }
    // The setting changes after the layout was given: nothing is commanded any more.
    let scene = commanded(4);
    scene.put("big", pattern(3 * MIB, 9));
    let client = scene.warm(2);
    let (here, before) = (client.clone(), at_drives(&client));
    let first = async move {
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        here.venus.read(handle, 0, MIB).await.unwrap();
        handle
    };
    let handle = scene.cell.on(&client, first);
    let fetched = at_drives(&client);
    assert!(fetched > before);
    scene.set_route(DataRoute::Server);
    let here = client.clone();
    let rest = async move { here.venus.read(handle, MIB as u64, 2 * MIB).await.unwrap() };
    assert!(scene.cell.on(&client, rest)[..] == pattern(3 * MIB, 9)[MIB..]);
    assert_eq!(at_drives(&client), fetched);
}

#[test]
fn commanded_stores_go_to_each_drive_by_a_call_for_each_chunk() {
    for (seed, copies) in [(1, 1), (2, 1), (3, 2)] {
        let scene = Scene::with_copies(seed);
        scene.set_route(DataRoute::Commanded);
        scene.place(copies, 1);
        let client = warm(&scene, 2);
        let (before, asked) = (stored(&client), client.calls("Command"));
        let big = pattern(5 * MIB + 77, seed);
        put(&scene, &client, "big", big.clone());
        let after = stored(&client);
        let moved = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
        assert_eq!(moved, (big.len() as u64, 0, 1), "{:?}", client.venus.counters().drive_fallbacks);
        assert_eq!(client.calls("Command") - asked, 6 * u64::from(copies));
        assert_eq!(client.calls("StoreData64"), 0);
        assert!(read_elsewhere(&scene, 7, "big") == big, "seed {seed}");
        assert!(scene.hosts.iter().all(|host| host.served.counts().refused == [0; 8]));
    }
}

#[test]
fn whatever_the_drive_does_with_a_commanded_store_the_file_server_stores_it_once() {
    let conducts = [
        (Staging::Refuses, "refused"),
        (Staging::Full, "declined"),
        (Staging::Silent, "stalled"),
        (Staging::Keeps, "ticket"),
        (Staging::Forgets, "ticket"),
    ];
    for (conduct, reason) in conducts {
        let scene = commanded(5);
        let client = warm(&scene, 2);
        let before = stored(&client);
        scene.hosts[0].set_staging(conduct);
        let big = pattern(3 * MIB, 8);
        put(&scene, &client, "big", big.clone());
        let after = stored(&client);
        assert_eq!((after.0 - before.0, after.1 - before.1), (0, 3 * MIB as u64), "{conduct:?}");
        let told = client.venus.counters().drive_fallbacks;
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {told:?}");
        assert!(read_elsewhere(&scene, 7, "big") == big, "{conduct:?}");
    }
}

/// The command does not come, or the file server does not give it: programs notice nothing, and no read is kept from the drive.
#[test]
fn a_store_that_is_not_commanded_goes_through_the_file_server() {
    // The file server does not reach the drive for a while.
    let scene = commanded(6);
    let client = warm(&scene, 2);
    let before = stored(&client);
    scene.reach(0, false);
    let (here, big) = (client.clone(), pattern(3 * MIB, 4));
    let (env, content) = (client.env.clone(), big.clone());
    let working = env.spawn_with_result(async move { here.put("big", &content).await });
    scene.cell.sim.run_for(Duration::from_secs(8));
    scene.reach(0, true);
    let done = scene.cell.on(&client, async move { working.await.unwrap() });
    assert!(done.is_ok(), "{done:?}");
    let told = client.venus.counters().drive_fallbacks;
    assert!(fallbacks(&client, "unavailable") > 0, "{told:?}");
    assert_eq!(stored(&client).0, before.0);
    assert!(read_elsewhere(&scene, 7, "big") == big);
    // The setting is another one by the time that the chunks are to be sent.
    let scene = commanded(7);
    let client = warm(&scene, 2);
    let before = stored(&client);
    scene.set_route(DataRoute::Server);
    put(&scene, &client, "big", big.clone());
    assert_eq!(stored(&client).0, before.0);
    assert_eq!(stored(&client).1 - before.1, 3 * MIB as u64);
    scene.set_route(DataRoute::Commanded);
    scene.cell.sim.run_for(Duration::from_secs(200));
    for (number, name) in ["again", "once more"].into_iter().enumerate() {
        put(&scene, &client, name, pattern(MIB, number as u64));
        scene.cell.sim.run_for(OPENING);
    }
    assert!(stored(&client).0 > before.0, "{:?}", client.venus.counters().drive_fallbacks);
    let fetched = at_drives(&client);
    scene.put("other", pattern(2 * MIB, 6));
    assert!(scene.get(&client, "other").unwrap() == pattern(2 * MIB, 6) && at_drives(&client) > fetched);
}

/// The file server does not reply for a while: the drive, which has waited for its command, has not failed.
#[test]
fn a_command_that_is_late_is_not_a_failure_of_the_drive() {
    let scene = commanded(8);
    let client = warm(&scene, 2);
    let (asked, before) = (client.calls("Command"), stored(&client).0);
    let (here, big) = (client.clone(), pattern(3 * MIB, 4));
    let (env, content) = (client.env.clone(), big.clone());
    let working = env.spawn_with_result(async move { here.put("big", &content).await });
    while client.calls("Command") == asked {
        scene.cell.sim.run_for(Duration::from_micros(100));
    }
    let (sim, server) = (scene.cell.sim.world(), scene.cell.server);
    let both_ways = [(client.node, server), (server, client.node)];
    both_ways.iter().for_each(|(from, to)| sim.cut(*from, *to));
    scene.cell.sim.run_for(Duration::from_secs(12));
    both_ways.iter().for_each(|(from, to)| sim.mend(*from, *to));
    let done = scene.cell.on(&client, async move { working.await.unwrap() });
    assert!(done.is_ok(), "{done:?}");
    let told = client.venus.counters().drive_fallbacks;
    assert!(fallbacks(&client, "unavailable") > 0 && fallbacks(&client, "stalled") == 0, "{told:?}");
    assert!(read_elsewhere(&scene, 7, "big") == big);
    scene.cell.sim.run_for(Duration::from_secs(31));
    put(&scene, &client, "next", pattern(MIB, 5));
    assert!(stored(&client).0 > before, "{:?}", client.venus.counters().drive_fallbacks);
}
