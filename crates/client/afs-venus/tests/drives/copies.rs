//! Two drives with copies: while one of them fails, the other one is read, and the file server moves nothing.

use super::*;

/// Four mebibytes on both drives, and a client that is being connected to both, because neither was open with the first read.
fn two(seed: u64) -> (Scene, Client, Vec<u8>) {
    let scene = Scene::with_copies(seed);
    let big = pattern(4 * MIB, seed);
    scene.put("big", big.clone());
    scene.put("warm", pattern(MIB, 2));
    scene.copy();
    let client = scene.cell.client(2);
    scene.get(&client, "warm").unwrap();
    scene.cell.sim.run_for(OPENING);
    (scene, client, big)
}

/// What was moved by the file server's own path or calls, and what by drives.
fn moved(client: &Client) -> (u64, u64) {
    let counters = client.venus.counters();
    (counters.path_bytes_fetched + client.calls("FetchData64"), counters.drive_bytes_fetched)
}

#[test]
fn the_other_copy_is_read_whatever_a_drive_does() {
    let conducts = [
        (Conduct::Lies, "damaged"),
        (Conduct::Short, "damaged"),
        (Conduct::LongerThanTold, "damaged"),
        (Conduct::Refuses, "refused"),
        (Conduct::Fails, "declined"),
        (Conduct::Silent, "stalled"),
        (Conduct::Slow, "stalled"),
        (Conduct::Half, "declined"),
    ];
    for (conduct, reason) in conducts {
        let (scene, client, big) = two(3);
        let before = moved(&client);
        scene.set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        assert_eq!(moved(&client), (before.0, before.1 + 4 * MIB as u64), "{conduct:?}");
        let counters = client.venus.counters();
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {:?}", counters.drive_fallbacks);
    }
}

#[test]
fn the_other_copy_is_read_while_a_drive_is_away() {
    for away in 0..2 {
        let (scene, client, big) = two(5);
        let before = moved(&client);
        scene.cut(&client, away);
        assert!(scene.get(&client, "big").unwrap() == big, "{away}");
        assert_eq!(moved(&client), (before.0, before.1 + 4 * MIB as u64), "{away}");
    }
}

#[test]
fn where_both_drives_lie_the_file_server_is_read() {
    let (scene, client, big) = two(6);
    let before = moved(&client);
    scene.hosts.iter().for_each(|host| host.set_conduct(Conduct::Lies));
    // The file server reads the same drives, which do not lie to it.
    assert!(scene.get(&client, "big").unwrap() == big);
    let after = moved(&client);
    assert!(after.0 > before.0 && after.1 == before.1, "{before:?} {after:?}");
}

#[test]
fn a_damaged_copy_is_asked_once_and_then_the_last_one() {
    let (scene, client, big) = two(7);
    scene.set_conduct(Conduct::Lies);
    // Each of the four chunks is damaged at the first drive.
    for round in 0..4 {
        let here = client.clone();
        scene.cell.on(&client, async move {
            here.venus.set_property(afs_venus::NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        });
        assert!(scene.get(&client, "big").unwrap() == big, "round {round}");
        assert_eq!(fallbacks(&client, "damaged"), 4, "round {round}");
    }
    assert_eq!(fallbacks(&client, "paused"), 0, "{:?}", client.venus.counters().drive_fallbacks);
}
