//! Stores that begin while their client is not connected to the drives yet.

use super::storing::{put, read_elsewhere, stored};
use super::*;

/// How long a store may wait for connections, with what the store itself takes.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Files of three mebibytes, all at a time, each of a name that begins with `prefix`.
pub fn put_at_once(scene: &Scene, client: &Client, prefix: &str, files: u64) {
    let (here, prefix) = (client.clone(), prefix.to_owned());
    scene.cell.on(client, async move {
        let mut puts = Vec::new();
        for number in 0..files {
            let ((done, putting), one, prefix) = (oneshot::channel(), here.clone(), prefix.clone());
            here.env.spawn(Box::pin(async move {
                let bytes = pattern(3 * MIB, number);
                _ = done.send(one.put(&format!("{prefix}{number}"), &bytes).await);
            }));
            puts.push(putting);
        }
        for putting in puts {
            putting.await.unwrap().unwrap();
        }
    });
}

#[test]
fn the_first_stores_at_drives_wait_for_their_connections_and_the_server_moves_nothing() {
    for seed in seeds(3) {
        let scene = Scene::with_three(seed);
        let client = scene.cell.client(2);
        // The room of each width has a drive that is not connected.
        for width in 1..=3 {
            scene.place(1, width);
            let (before, files) = (stored(&client), 4);
            put_at_once(&scene, &client, &format!("over {width}, "), files);
            let (after, told) = (stored(&client), client.venus.counters().drive_fallbacks);
            let moved = (after.0 - before.0, after.1 - before.1, client.calls("StoreData64"));
            assert_eq!(moved, (files * 3 * MIB as u64, 0, 0), "seed {seed}, width {width}: {told:?}");
            let name = format!("over {width}, 1");
            assert!(read_elsewhere(&scene, 6 + width as u8, &name) == pattern(3 * MIB, 1), "{name}");
        }
    }
}

#[test]
fn a_drive_that_cannot_be_reached_delays_stores_by_a_moment_until_that_is_known() {
    let scene = Scene::new(4);
    let client = scene.cell.client(2);
    scene.cut(&client, 0);
    let took = |number: u64| {
        let (began, name) = (scene.cell.sim.now(), format!("f{number}"));
        put(&scene, &client, &name, pattern(MIB, number));
        scene.cell.sim.now() - began
    };
    let took: Vec<_> = (0..12).map(took).collect();
    assert!(took.iter().all(|took| *took < WAIT_MAX), "{took:?}");
    assert!(took.iter().sum::<Duration>() < Duration::from_secs(15), "{took:?}");
    assert!(took[11] < Duration::from_millis(500), "it is known by now: {took:?}");
    let (at_drives, _, _) = stored(&client);
    assert_eq!((at_drives, fallbacks(&client, "unreachable")), (0, 1));
    assert_eq!(client.calls("GetRoom"), 1, "a room is asked for once: {:?}", client.venus.counters().calls);
    assert!(read_elsewhere(&scene, 7, "f0") == pattern(MIB, 0));
}
