//! Volumes whose data go to several drives at once: clients read them at all of them, and store through the file server.

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

#[test]
fn clients_store_through_the_file_server_where_data_go_to_several_drives() {
    for (copies, width) in [(2, 1), (1, 2)] {
        let scene = Scene::with_three(4);
        let client = warm(&scene, 2);
        scene.place(copies, width);
        let big = pattern(4 * MIB, 9);
        let (here, content) = (client.clone(), big.clone());
        scene.cell.on(&client, async move { here.put("big", &content).await.unwrap() });
        assert_eq!(client.venus.counters().drive_bytes_stored, 0);
        let other = scene.cell.client(7);
        assert!(scene.get(&other, "big").unwrap() == big);
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
        // When it is back, a pass makes what is missing, and either drive may go.
        scene.cell.sim.mend(server, drive);
        scene.cell.sim.mend(drive, server);
        scene.cell.sim.run_for(Duration::from_secs(61));
        scene.copy();
        let other = scene.hosts[1 - away].node;
        scene.cell.sim.cut(server, other);
        scene.cell.sim.cut(other, server);
        let reader = scene.cell.client(3);
        assert!(scene.get(&reader, "second").unwrap() == pattern(4 * MIB, 3), "host {away}");
    }
}
