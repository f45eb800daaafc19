//! Long files: the references come as lists, in few calls.

use afs_drive::DriveId;
use afs_venus::NodeId;

use super::*;

/// Bytes in each place of the file.
const LENGTH: usize = 70_000;
/// Where the file has them: in each of the ranges for which a client asks, and at the end of one.
const PLACES: [usize; 6] = [0, 7 * MIB, 8 * MIB, 63 * MIB, 64 * MIB, 600 * MIB];

/// Makes the file.
fn long(scene: &Scene) {
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        let handle = writer.open_new("long").await.unwrap();
        for (number, place) in PLACES.into_iter().enumerate() {
            writer.venus.write(handle, place as u64, pattern(LENGTH, number as u64).into()).await.unwrap();
        }
        writer.venus.flush(handle, 0).await.unwrap();
        writer.venus.release(handle).await.unwrap();
    });
}

/// Reads all of it that is not a hole, and compares; the calls for layouts, and the bytes of drives.
fn read(scene: &Scene, client: &Client) -> (u64, u64) {
    let counts = |client: &Client| [client.calls("GetLayout"), at_drives(client)];
    let (before, here) = (counts(client), client.clone());
    scene.cell.on(client, async move {
        let handle = here.open("long", OpenFlags::READ).await.unwrap();
        for (number, place) in PLACES.into_iter().enumerate() {
            let bytes = here.venus.read(handle, place as u64, LENGTH).await.unwrap();
            assert!(bytes == pattern(LENGTH, number as u64), "at {place}");
        }
        here.venus.release(handle).await.unwrap();
    });
    let after = counts(client);
    (after[0] - before[0], after[1] - before[1])
}

const ALL: u64 = (PLACES.len() * LENGTH) as u64;

/// What was read is read again; its layouts are there.
fn read_again(scene: &Scene, client: &Client) -> (u64, u64) {
    scene.cell.sim.run_for(OPENING);
    let here = client.clone();
    scene.cell.on(client, async move {
        here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
    });
    read(scene, client)
}

#[test]
fn a_long_file_costs_a_list_for_each_range_that_is_read_wherever_its_chunks_are() {
    for (drives, copies, width, route) in [
        (&[DriveId(1)][..], 1, 1, DataRoute::Drives),
        (&[DriveId(1), DriveId(2), DriveId(3)], 2, 3, DataRoute::Drives),
        (&[DriveId(1), DriveId(2)], 1, 2, DataRoute::Commanded),
        (&[BUCKET], 1, 1, DataRoute::Drives),
        (&[DriveId(1), BUCKET], 1, 2, DataRoute::Drives),
    ] {
        let plan = DrivePlan { drives, copies, width, route };
        let scene = Scene::planned(1, &plan);
        long(&scene);
        let client = scene.warm(2);
        assert_eq!(read(&scene, &client).0, 4, "{plan:?}");
        // All drives are connected by now.
        assert_eq!(read_again(&scene, &client), (0, ALL), "{plan:?}");
        assert!(scene.hosts.iter().all(|host| host.served.counts().refused == [0; 8]), "{plan:?}");
    }
}

#[test]
fn a_drive_that_lies_about_a_chunk_of_a_list_is_read_past() {
    for conduct in [Conduct::Lies, Conduct::Short, Conduct::Refuses] {
        let scene = Scene::new(1);
        long(&scene);
        let client = scene.warm(2);
        scene.set_conduct(conduct);
        let before = at_drives(&client);
        read(&scene, &client);
        assert_eq!(at_drives(&client), before, "{conduct:?}");
    }
}

/// What a drive bound before it was started again is void, and asked for once more.
#[test]
fn lists_end_with_the_run_of_their_drive() {
    let mut scene = Scene::new(1);
    long(&scene);
    let client = scene.warm(2);
    assert_eq!(read(&scene, &client), (4, ALL));
    scene.restart_host(0);
    scene.cell.sim.run_for(Duration::from_secs(120));
    read_again(&scene, &client);
    assert_eq!(read_again(&scene, &client).1, ALL);
}
