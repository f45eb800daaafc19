//! More reads at one drive than a connection takes at a time.

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
