//! Volumes whose data go to several drives at once: clients read and store them at all of them.

use super::storing::{put, read_elsewhere, stored};
use super::*;

/// Bytes that were read at drives, and those that the file server sent by its own path or calls.
fn moved(client: &Client) -> (u64, u64) {
    let counters = client.venus.counters();
    (counters.drive_bytes_fetched, counters.path_bytes_fetched + client.calls("FetchData64"))
}

/// A client that is connected to all drives, in a volume with a placement.
fn warm(scene: &Scene, number: u8) -> Client {
    let client = scene.cell.client(number);
    // A read goes to the file server from where it meets a drive that is not connected yet.
    for (name, seed) in [("warm 0", 5), ("warm 1", 6), ("warm 2", 7)] {
        scene.put(name, pattern(3 * MIB, seed));
        scene.get(&client, name).unwrap();
        scene.cell.sim.run_for(OPENING);
    }
    client
}

#[test]
fn a_file_that_goes_round_several_drives_is_read_at_each_of_them() {
    for (seed, width) in [(1, 2), (2, 3)] {
        let scene = Scene::with_three(seed);
        scene.place(1, width);
        let big = pattern(6 * MIB, seed);
        scene.put("big", big.clone());
        let client = warm(&scene, 2);
        let before = moved(&client);
        let served = |scene: &Scene| {
            scene.hosts.iter().map(|host| host.served.counts().bytes_sent).collect::<Vec<_>>()
        };
        let sent = served(&scene);
        assert!(scene.get(&client, "big").unwrap() == big, "width {width}");
        let after = moved(&client);
        assert_eq!((after.0 - before.0, after.1), (6 * MIB as u64, before.1), "width {width}");
        let each: Vec<_> = served(&scene).iter().zip(&sent).map(|(now, then)| now - then).collect();
        let used = each.iter().filter(|bytes| **bytes >= 6 * MIB as u64 / u64::from(width)).count();
        assert_eq!(used, width as usize, "{each:?}");
    }
}

#[test]
fn what_waited_for_two_drives_is_read_at_the_other_one_without_a_rebuild() {
    for away in 0..3 {
        let scene = Scene::with_three(3);
        scene.place(2, 3);
        let big = pattern(6 * MIB, 8);
        scene.put("big", big.clone());
        let client = warm(&scene, 2);
        let before = moved(&client);
        scene.cut(&client, away);
        assert!(scene.get(&client, "big").unwrap() == big, "{away}");
        let (after, why) = (moved(&client), client.venus.counters().drive_fallbacks);
        assert_eq!((after.0 - before.0, after.1), (6 * MIB as u64, before.1), "{away}: {why:?}");
    }
}

/// A client that is connected to all drives, in a volume with a placement, and has stored there.
fn storing(scene: &Scene, copies: u32, width: u32) -> Client {
    scene.place(copies, width);
    let client = warm(scene, 2);
    put(scene, &client, "first", pattern(3 * MIB, 99));
    scene.cell.sim.run_for(OPENING);
    client
}

#[test]
fn a_store_goes_to_all_drives_that_are_to_have_it_and_survives_any_of_them() {
    for (copies, width) in [(2, 1), (2, 3), (1, 3)] {
        let scene = Scene::with_three(4);
        let client = storing(&scene, copies, width);
        let before = stored(&client);
        let big = pattern(3 * MIB + 9, 9);
        put(&scene, &client, "big", big.clone());
        let after = stored(&client);
        assert_eq!((after.0 - before.0, after.1 - before.1), (big.len() as u64, 0), "{copies}, {width}");
        assert_eq!(client.calls("StoreData64"), 0, "{:?}", client.venus.counters().drive_fallbacks);
        let refused = |scene: &Scene| scene.hosts.iter().map(|host| host.served.counts().refused).collect();
        assert_eq!((after.2 - before.2, refused(&scene)), (1, vec![[0; 8]; 3]));
        assert!(read_elsewhere(&scene, 7, "big") == big, "{copies}, {width}");
        for lost in (0..3).filter(|_| copies > 1) {
            scene.reach(lost, false);
            let reader = scene.cell.client(10 + lost as u8);
            scene.cut(&reader, lost);
            assert!(scene.get(&reader, "big").unwrap() == big, "{copies}, {width}: {lost} is lost");
            scene.reach(lost, true);
            scene.cell.sim.run_for(Duration::from_secs(120));
        }
    }
}

/// The file server stores instead, on all drives that it reaches itself.
#[test]
fn whatever_one_of_two_drives_does_with_a_store_is_acknowledged_what_both_have() {
    let conducts = [(0, Staging::Full), (1, Staging::Forgets), (1, Staging::Silent)];
    for (drive, conduct) in conducts {
        let scene = Scene::with_copies(6);
        let client = storing(&scene, 2, 1);
        let (before, big) = (stored(&client), pattern(2 * MIB, 8));
        scene.hosts[drive].set_staging(conduct);
        put(&scene, &client, "big", big.clone());
        let after = stored(&client);
        assert_eq!((after.0, after.1 - before.1), (before.0, 2 * MIB as u64), "{conduct:?}");
        assert_eq!(client.calls("EndRoom"), 1, "{conduct:?}");
        for lost in 0..2 {
            scene.reach(lost, false);
            let reader = scene.cell.client(10 + lost as u8);
            scene.cut(&reader, lost);
            assert!(scene.get(&reader, "big").unwrap() == big, "{conduct:?}: {lost} is lost");
            scene.reach(lost, true);
            scene.cell.sim.run_for(Duration::from_secs(120));
        }
    }
}

/// While the file server does not reach a drive either, clients store at the others once it has found out.
#[test]
fn a_drive_that_is_away_is_left_out_and_stores_go_on_at_the_other() {
    let scene = Scene::with_copies(7);
    let client = storing(&scene, 2, 1);
    scene.reach(1, false);
    scene.cut(&client, 1);
    for n in 0..4 {
        put(&scene, &client, &format!("f{n}"), pattern(2 * MIB, n));
        scene.cell.sim.run_for(Duration::from_secs(50));
        scene.put("other", pattern(MIB, n));
    }
    scene.cell.sim.run_for(Duration::from_secs(130));
    scene.put("other", pattern(MIB, 5));
    let before = stored(&client);
    put(&scene, &client, "late", pattern(2 * MIB, 5));
    assert_eq!(stored(&client).0 - before.0, 2 * MIB as u64, "{:?}", client.venus.counters().drive_fallbacks);
    scene.reach(1, true);
    scene.cell.sim.run_for(Duration::from_secs(120));
    scene.copy();
    scene.reach(0, false);
    let reader = scene.cell.client(9);
    scene.cut(&reader, 0);
    assert!(scene.get(&reader, "late").unwrap() == pattern(2 * MIB, 5));
    for n in 0..4 {
        assert!(scene.get(&reader, &format!("f{n}")).unwrap() == pattern(2 * MIB, n), "{n}");
    }
}

#[test]
fn a_store_succeeds_without_a_drive_that_its_server_cannot_reach() {
    for away in 0..2 {
        let scene = Scene::with_three(5);
        scene.place(2, 1);
        scene.put("before", pattern(2 * MIB, 1));
        let (server, drive) = (scene.cell.server, scene.hosts[away].node);
        scene.cell.sim.cut(server, drive);
        scene.cell.sim.cut(drive, server);
        let began = scene.cell.sim.now();
        scene.put("first", pattern(4 * MIB, 2));
        assert!(scene.cell.sim.now() - began < Duration::from_secs(60), "host {away}");
        // It is left alone for a while: the next store does not wait for it.
        let began = scene.cell.sim.now();
        scene.put("second", pattern(4 * MIB, 3));
        assert!(scene.cell.sim.now() - began < Duration::from_secs(5), "host {away}");
        let reader = scene.cell.client(2);
        for (name, mebibytes, seed) in [("before", 2, 1), ("first", 4, 2), ("second", 4, 3)] {
            assert!(
                scene.get(&reader, name).unwrap() == pattern(mebibytes * MIB, seed),
                "{name}, host {away}"
            );
        }
        // When it is back, which its file server sees by itself, a pass makes what is missing, and either drive may go.
        scene.cell.sim.mend(server, drive);
        scene.cell.sim.mend(drive, server);
        scene.cell.sim.run_for(Duration::from_secs(12));
        scene.copy();
        let other = scene.hosts[1 - away].node;
        scene.cell.sim.cut(server, other);
        scene.cell.sim.cut(other, server);
        let reader = scene.cell.client(3);
        assert!(scene.get(&reader, "second").unwrap() == pattern(4 * MIB, 3), "host {away}");
    }
}
