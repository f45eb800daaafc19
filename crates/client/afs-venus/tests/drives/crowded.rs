//! More reads and stores at one drive than a connection takes at a time.

use super::connecting::put_at_once;
use super::storing::{stored, warm};
use super::*;

/// With what is fetched ahead of each reader, several times the transfers of a connection.
const READERS: u8 = 24;

#[test]
fn reads_that_find_no_place_at_a_drive_wait_for_one() {
    let scene = Scene::new(8);
    let file = |number: u8| pattern(2 * MIB, u64::from(number));
    (0..READERS).for_each(|number| scene.put(&format!("f{number}"), file(number)));
    let client = scene.warm(2);
    let here = client.clone();
    let read = scene.cell.on(&client, async move {
        let mut reads = Vec::new();
        for number in 0..READERS {
            let ((done, reading), one) = (oneshot::channel(), here.clone());
            here.env.spawn(Box::pin(async move { _ = done.send(one.get(&format!("f{number}")).await) }));
            reads.push(reading);
        }
        let mut read = Vec::new();
        for reading in reads {
            read.push(reading.await.unwrap().unwrap());
        }
        read
    });
    assert!(read.iter().zip(0..).all(|(bytes, number)| *bytes == file(number)));
    let counters = client.venus.counters();
    assert_eq!(fallbacks(&client, "full"), 0, "{:?}", counters.drive_fallbacks);
}

#[test]
fn stores_that_find_no_place_at_a_drive_wait_for_one_with_all_their_chunks() {
    for (seed, copies, width) in [(1, 1, 1), (2, 1, 3), (3, 2, 3)] {
        let scene = Scene::with_three(seed);
        scene.place(copies, width);
        let client = scene.cell.client(2);
        for turn in ["first", "next"] {
            let before = stored(&client);
            put_at_once(&scene, &client, turn, u64::from(READERS));
            let (after, told) = (stored(&client), client.venus.counters().drive_fallbacks);
            let moved = (after.0 - before.0, after.1 - before.1, client.calls("StoreData64"));
            let all = u64::from(READERS) * 3 * MIB as u64;
            assert_eq!(moved, (all, 0, 0), "{copies} copies, width {width}, {turn}: {told:?}");
        }
        assert_eq!(scene.hosts[0].served.counts().refused, [0; 8]);
    }
}

#[test]
fn a_read_does_not_wait_for_the_stores_that_are_at_its_drive() {
    let scene = Scene::new(9);
    scene.put("read", pattern(2 * MIB, 1));
    let client = warm(&scene, 2);
    // For ten seconds.
    scene.hosts[0].set_staging(Staging::Silent);
    let (here, before) = (client.clone(), at_drives(&client));
    let took = scene.cell.on(&client, async move {
        for number in 0..READERS {
            let one = here.clone();
            here.env.spawn(Box::pin(async move {
                _ = one.put(&format!("stored {number}"), &pattern(MIB, u64::from(number))).await;
            }));
        }
        here.env.sleep(Duration::from_secs(2)).await;
        let began = here.env.now();
        assert!(here.get("read").await.unwrap() == pattern(2 * MIB, 1));
        here.env.now().saturating_since(began)
    });
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(at_drives(&client) - before, 2 * MIB as u64, "{:?}", client.venus.counters().drive_fallbacks);
}
