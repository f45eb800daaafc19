//! Reads of a volume whose transfers the file server commands.

use afs_sim::crash::seeds;
use afs_venus::OpenFlags;
use afs_volume::DataRoute;

use super::at_drives;
use super::common::pattern;
use super::host::Conduct;
use super::scene::{MIB, Scene};

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
        let before = client.calls("Deliver");
        let fetched = at_drives(&client);
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        assert_eq!(at_drives(&client) - fetched, 5 * MIB as u64, "seed {seed}");
        assert_eq!(
            client.calls("Deliver") - before,
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
        assert!(client.venus.counters().path_bytes_fetched >= 2 * MIB as u64, "{conduct:?}");
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
