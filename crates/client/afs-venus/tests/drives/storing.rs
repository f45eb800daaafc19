//! Files stored at the drive by their client: one call makes the chunks a file's, and whatever fails the file server stores.

use afs_sim::crash::seeds;
use afs_sim::{StreamFault, StreamMishap};
use afs_venus::CounterValues;

use super::*;

/// Bytes that went to drives, by the path of the file server, and the calls that ended stores.
pub fn stored(client: &Client) -> (u64, u64, u64) {
    let counters = client.venus.counters();
    let commits = client.calls("Commit");
    (counters.drive_bytes_stored, counters.path_bytes_stored, commits)
}

/// A client that is connected to the drive, and a file server that has given it a room.
pub fn warm(scene: &Scene, number: u8) -> Client {
    let client = scene.warm(number);
    put(scene, &client, "first", pattern(MIB, 99));
    scene.cell.sim.run_for(OPENING);
    client
}

pub fn put(scene: &Scene, client: &Client, path: &str, bytes: Vec<u8>) {
    let (here, path) = (client.clone(), path.to_owned());
    scene.cell.on(client, async move { here.put(&path, &bytes).await.unwrap() });
}

/// What another client reads.
pub fn read_elsewhere(scene: &Scene, number: u8, path: &str) -> Vec<u8> {
    let other = scene.cell.client(number);
    scene.get(&other, path).unwrap()
}

#[test]
fn a_file_is_stored_at_the_drive_in_one_version_and_its_server_moves_nothing() {
    for seed in seeds(3) {
        let scene = Scene::new(seed);
        let client = warm(&scene, 2);
        let before = stored(&client);
        let big = pattern(5 * MIB + 77, seed);
        put(&scene, &client, "big", big.clone());
        let after = stored(&client);
        assert_eq!((after.0 - before.0, after.1 - before.1, after.2 - before.2), (big.len() as u64, 0, 1));
        assert_eq!(client.calls("StoreData64"), 0, "{:?}", client.venus.counters().drive_fallbacks);
        assert!(read_elsewhere(&scene, 7, "big") == big, "seed {seed}");
        assert_eq!(scene.hosts[0].served.counts().refused, [0; 8]);
    }
}

#[test]
fn changed_ranges_of_a_file_are_stored_and_the_rest_stays() {
    let scene = Scene::new(3);
    let client = warm(&scene, 2);
    let mut big = pattern(6 * MIB, 1);
    put(&scene, &client, "big", big.clone());
    let before = stored(&client);
    let here = client.clone();
    scene.cell.on(&client, async move {
        let handle = here.open("big", OpenFlags::WRITE).await.unwrap();
        here.venus.write(handle, 100_000, pattern(200_000, 5).into()).await.unwrap();
        here.venus.write(handle, 3 * MIB as u64 - 50_000, pattern(100_000, 6).into()).await.unwrap();
        here.venus.flush(handle, 0).await.unwrap();
        here.venus.release(handle).await.unwrap();
    });
    big[100_000..300_000].copy_from_slice(&pattern(200_000, 5));
    big[3 * MIB - 50_000..3 * MIB + 50_000].copy_from_slice(&pattern(100_000, 6));
    let after = stored(&client);
    assert!(after.0 > before.0 && after.2 == before.2 + 1, "{:?}", client.venus.counters().drive_fallbacks);
    assert!(read_elsewhere(&scene, 7, "big") == big);
}

#[test]
fn whatever_the_drive_does_with_a_store_the_file_server_stores_it_once() {
    let conducts = [
        (Staging::Refuses, "refused"),
        (Staging::Full, "declined"),
        (Staging::Silent, "stalled"),
        (Staging::Keeps, "ticket"),
        (Staging::Forgets, "ticket"),
    ];
    for (conduct, reason) in conducts {
        let scene = Scene::new(5);
        let client = warm(&scene, 2);
        let before = client.venus.counters();
        scene.hosts[0].set_staging(conduct);
        let began = scene.cell.sim.now();
        let big = pattern(3 * MIB, 8);
        put(&scene, &client, "big", big.clone());
        assert!(scene.cell.sim.now() - began < Duration::from_secs(20), "{conduct:?}");
        let after = client.venus.counters();
        assert_eq!(after.drive_bytes_stored, before.drive_bytes_stored, "{conduct:?}");
        assert_eq!(after.path_bytes_stored - before.path_bytes_stored, 3 * MIB as u64, "{conduct:?}");
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {:?}", after.drive_fallbacks);
        assert!(read_elsewhere(&scene, 7, "big") == big, "{conduct:?}");
        let commits = |counters: &CounterValues| counters.calls.get("Commit").copied().unwrap_or(0);
        let of_room = u64::from(matches!(conduct, Staging::Keeps | Staging::Forgets));
        assert_eq!(commits(&after) - commits(&before), 1 + of_room, "{conduct:?}");
    }
}

#[test]
fn a_drive_that_is_away_costs_a_store_a_moment_once() {
    let scene = Scene::new(6);
    let client = warm(&scene, 2);
    scene.cut(&client, 0);
    for n in 0..3 {
        let name = format!("f{n}");
        put(&scene, &client, &name, pattern(MIB, n));
        assert!(read_elsewhere(&scene, 7 + n as u8, &name) == pattern(MIB, n));
    }
    let told = client.venus.counters().drive_fallbacks;
    assert_eq!(fallbacks(&client, "stalled"), 1, "{told:?}");
}

#[test]
fn a_mount_may_forbid_stores_at_drives_and_a_volume_without_rooms_is_asked_once() {
    let scene = Scene::new(7);
    scene.cell.data_path.lock().unwrap().drives = false;
    let client = warm(&scene, 2);
    put(&scene, &client, "f", pattern(2 * MIB, 1));
    assert_eq!((client.calls("GetRoom"), stored(&client).0), (0, 0));
    scene.cell.data_path.lock().unwrap().drives = true;
    scene.set_route(DataRoute::Server);
    let client = scene.cell.client(3);
    for n in 0..4 {
        put(&scene, &client, &format!("g{n}"), pattern(MIB, n));
    }
    assert_eq!((client.calls("GetRoom"), stored(&client).0), (1, 0));
    assert_eq!(client.venus.counters().drive_fallbacks.get("no_room"), None);
}

#[test]
fn nobody_stores_at_the_drive_what_may_not_be_stored() {
    let scene = Scene::new(8);
    scene.make_home("rlidwk");
    let client = warm(&scene, 2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    let before = scene.hosts[0].staged();
    let flushed = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open_new("home/f").await.unwrap();
        bob.venus.write(handle, 0, pattern(2 * MIB, 1).into()).await.unwrap();
        writer.user(ALICE).set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        bob.venus.flush(handle, 0).await.map_err(|error| error.errno())
    });
    assert_eq!(flushed, Err(13));
    assert_eq!(scene.hosts[0].staged(), before, "nothing was written there");
}

#[test]
fn of_stores_whose_connection_to_the_drive_breaks_at_any_byte_programs_notice_nothing() {
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(3))];
    let mut at_drive = 0;
    for (seed, mishap) in (1..).zip(mishaps) {
        for n in 0..6 {
            let scene = Scene::new(seed);
            let client = scene.cell.client(2);
            let (to_drive, after) = (n % 2 == 0, if n % 2 == 0 { 400_000 * n } else { 60 * n });
            let (here, there) = (client.node, scene.hosts[0].node);
            let (from, to) = if to_drive { (here, there) } else { (there, here) };
            scene.cell.sim.break_stream(from, to, StreamFault { after, mishap });
            put(&scene, &client, "first", pattern(MIB, 99));
            scene.cell.sim.run_for(OPENING);
            let big = pattern(3 * MIB + 5, n);
            put(&scene, &client, "big", big.clone());
            at_drive += stored(&client).0;
            assert!(read_elsewhere(&scene, 7, "big") == big, "{mishap:?} after {after}, {to_drive}");
        }
    }
    assert!(at_drive > 0, "a stream that stalls goes on");
}

#[test]
fn a_commit_whose_reply_is_lost_is_not_stored_by_another_way() {
    for seconds in [5, 200] {
        let scene = Scene::new(9);
        let client = warm(&scene, 2);
        let before = stored(&client);
        let (world, server) = (scene.cell.sim.world().clone(), scene.cell.server);
        let (node, env) = (client.node, scene.cell.sim.env(scene.hosts[0].node));
        // What the file server replies from then on does not come.
        scene.hosts[0].when_chunks_are_given(move || {
            world.cut(server, node);
            let (world, later) = (world.clone(), env.clone());
            env.spawn(Box::pin(async move {
                later.sleep(Duration::from_secs(seconds)).await;
                world.mend(server, node);
            }));
        });
        let here = client.clone();
        let big = pattern(3 * MIB, 4);
        let content = big.clone();
        let put = scene.cell.on(&client, async move { here.put("big", &content).await });
        scene.cell.sim.run_for(Duration::from_secs(600));
        assert!(put.is_ok() || seconds > 60, "{put:?}");
        assert!(read_elsewhere(&scene, 7, "big") == big, "{seconds} s: it was made");
        let after = stored(&client);
        assert_eq!(after.1, before.1, "{seconds} s: nothing went by another way");
        assert!(after.2 > before.2);
    }
}

#[test]
fn a_store_that_goes_by_another_way_has_the_quota_that_its_room_had() {
    // The drive cannot be reached; or it fails in the middle.
    for conduct in [None, Some(Staging::Full), Some(Staging::Keeps), Some(Staging::Forgets)] {
        let scene = Scene::new(10);
        let client = match conduct {
            None => scene.cell.client(2),
            Some(_) => warm(&scene, 2),
        };
        if conduct.is_none() {
            scene.cut(&client, 0);
        }
        scene.hosts[0].set_staging(conduct.unwrap_or(Staging::Honest));
        // Room for one such file.
        scene.set_quota(8 * 1024);
        let (before, big) = (stored(&client).1, pattern(5 * MIB, 8));
        put(&scene, &client, "big", big.clone());
        assert_eq!(client.calls("EndRoom"), 1, "{conduct:?}");
        assert!(read_elsewhere(&scene, 7, "big") == big, "{conduct:?}");
        assert_eq!(stored(&client).1 - before, 5 * MIB as u64, "{conduct:?}");
    }
}
