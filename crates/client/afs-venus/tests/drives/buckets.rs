//! Files in a bucket, which clients read there by addresses that the file server signs.

use std::sync::Arc;
use std::time::Duration;

use afs_drive::DriveId;
use afs_testkit::{BUCKET, StoreConduct};
use afs_venus::OpenFlags;
use afs_volume::DataRoute;

use super::common::pattern;
use super::scene::{MIB, Scene};
use super::{ALICE, at_drives, fallbacks};

#[test]
fn a_file_in_a_bucket_is_read_there_by_a_call_and_a_request_for_each_mebibyte() {
    for seed in 1..5 {
        let scene = Scene::with_bucket(seed);
        let big = pattern(5 * MIB + 3, 7);
        scene.put("big", big.clone());
        let client = scene.cell.client(2);
        assert!(scene.get(&client, "big").unwrap() == big, "seed {seed}");
        let counters = client.venus.counters();
        // What a reader waits for first is less than half of a chunk, and comes from the file server.
        let first = 5 * MIB as u64 - counters.drive_bytes_fetched;
        assert!(first < MIB as u64 / 2, "seed {seed}: {first} {:?}", counters.drive_fallbacks);
        assert!(counters.path_bytes_fetched <= first, "seed {seed}");
        assert_eq!((client.calls("GetLayout"), client.calls("Command"), scene.store().reads()), (1, 5, 5));
    }
}

#[test]
fn parts_in_a_bucket_and_on_a_drive_make_one_file() {
    for seed in 1..5 {
        let scene = Scene::with_bucket(seed);
        scene.use_drives(&[DriveId(1)]);
        let client = scene.warm(2);
        let (near, far) = (pattern(2 * MIB, 3), pattern(2 * MIB, 4));
        scene.put("mixed", near.clone());
        scene.use_drives(&[BUCKET]);
        let (writer, more) = (scene.writer.clone(), far.clone());
        scene.cell.on(&scene.writer, async move {
            let handle = writer.open("mixed", OpenFlags::WRITE).await.unwrap();
            writer.venus.write(handle, 2 * MIB as u64, more.into()).await.unwrap();
            writer.venus.flush(handle, 0).await.unwrap();
            writer.venus.release(handle).await.unwrap();
        });
        let before = at_drives(&client);
        assert!(scene.get(&client, "mixed").unwrap() == [near, far].concat(), "seed {seed}");
        assert_eq!(at_drives(&client) - before, 4 * MIB as u64, "{:?}", client.venus.counters());
        assert_eq!(scene.store().reads(), 2, "seed {seed}");
    }
}

#[test]
fn a_store_or_a_file_server_that_does_anything_is_read_past() {
    let conducts = [
        (StoreConduct::Status(503), "broken"),
        (StoreConduct::Status(429), "broken"),
        (StoreConduct::Status(403), "refused"),
        (StoreConduct::Status(404), "declined"),
        (StoreConduct::Status(416), "declined"),
        (StoreConduct::Status(302), "protocol"),
        (StoreConduct::Status(200), "protocol"),
        (StoreConduct::Away, "unreachable"),
        (StoreConduct::Cut, "broken"),
        (StoreConduct::Length, "protocol"),
        (StoreConduct::Wrong, "damaged"),
        (StoreConduct::Silent, "stalled"),
        (StoreConduct::Elsewhere, "forbidden"),
        (StoreConduct::SignsNothing, "declined"),
    ];
    for (conduct, reason) in conducts {
        let scene = Scene::with_bucket(3);
        let big = pattern(2 * MIB, 9);
        scene.put("big", big.clone());
        let client = scene.cell.client(2);
        scene.store().set_conduct(conduct);
        assert!(scene.get(&client, "big").unwrap() == big, "{conduct:?}");
        let counters = client.venus.counters();
        assert_eq!(counters.drive_bytes_fetched, 0, "{conduct:?}");
        assert!(fallbacks(&client, reason) > 0, "{conduct:?}: {:?}", counters.drive_fallbacks);
    }
}

#[test]
fn a_bucket_that_fails_is_left_alone_for_a_minute_and_then_read_again() {
    let scene = Scene::with_bucket(4);
    for n in 0..6 {
        scene.put(&format!("f{n}"), pattern(MIB, n));
    }
    let client = scene.cell.client(2);
    scene.store().set_conduct(StoreConduct::Away);
    for n in 0..4 {
        assert!(scene.get(&client, &format!("f{n}")).unwrap() == pattern(MIB, n));
    }
    assert_eq!((scene.store().reads(), client.calls("Command")), (1, 1), "once, then it is left alone");
    assert_eq!(fallbacks(&client, "paused"), 3);
    scene.store().set_conduct(StoreConduct::Right);
    scene.cell.sim.run_for(Duration::from_secs(61));
    for n in 4..6 {
        assert!(scene.get(&client, &format!("f{n}")).unwrap() == pattern(MIB, n));
    }
    assert_eq!(at_drives(&client), 2 * MIB as u64);
}

#[test]
fn a_client_that_reads_no_object_stores_notices_nothing() {
    let scene = Scene::with_bucket(5);
    let big = pattern(3 * MIB, 1);
    scene.put("big", big.clone());
    *scene.cell.objects.lock().unwrap() = None;
    let client = scene.cell.client(2);
    assert!(scene.get(&client, "big").unwrap() == big);
    assert_eq!((at_drives(&client), client.calls("Command"), client.calls("GetLayout")), (0, 0, 1));
}

#[test]
fn a_mount_may_forbid_buckets_and_so_does_each_other_setting_of_the_volume() {
    let scene = Scene::with_bucket(6);
    scene.put("big", pattern(2 * MIB, 1));
    for (number, route) in [(2, DataRoute::Calls), (3, DataRoute::Server), (4, DataRoute::Commanded)] {
        scene.set_route(route);
        let client = scene.cell.client(number);
        assert!(scene.get(&client, "big").unwrap() == pattern(2 * MIB, 1));
        assert_eq!((at_drives(&client), client.calls("Command")), (0, 0), "{route:?}");
    }
    scene.set_route(DataRoute::Drives);
    scene.cell.data_path.lock().unwrap().drives = false;
    let client = scene.cell.client(5);
    assert!(scene.get(&client, "big").unwrap() == pattern(2 * MIB, 1));
    assert_eq!((client.calls("GetLayout"), scene.store().reads()), (0, 0));
}

#[test]
fn a_setting_that_changes_after_the_layout_ends_the_addresses() {
    let scene = Scene::with_bucket(7);
    scene.put("big", pattern(3 * MIB, 9));
    let client = scene.cell.client(2);
    let here = client.clone();
    let handle = scene.cell.on(&client, async move {
        let handle = here.open("big", OpenFlags::READ).await.unwrap();
        here.venus.read(handle, 0, MIB).await.unwrap();
        handle
    });
    assert_eq!(at_drives(&client), MIB as u64);
    scene.set_route(DataRoute::Server);
    let here = client.clone();
    let rest = async move { here.venus.read(handle, MIB as u64, 2 * MIB).await.unwrap() };
    assert!(scene.cell.on(&client, rest)[..] == pattern(3 * MIB, 9)[MIB..]);
    assert_eq!(at_drives(&client), MIB as u64);
}

#[test]
fn rights_that_are_taken_away_between_two_reads_end_the_addresses() {
    let scene = Scene::with_bucket(8);
    scene.make_home("rl");
    scene.put_at_home(pattern(4 * MIB, 5));
    let client = scene.cell.client(2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    let read = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open("home/big", OpenFlags::READ).await.unwrap();
        let first = bob.venus.read(handle, 0, MIB).await.unwrap().len();
        let alice = writer.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        (first, bob.venus.read(handle, MIB as u64, MIB).await.map_err(|error| error.errno()))
    });
    assert_eq!(read, (MIB, Err(13)));
    assert_eq!((at_drives(&client), scene.store().reads()), (MIB as u64, 1));
    assert_eq!(fallbacks(&client, "refused"), 1, "{:?}", client.venus.counters().drive_fallbacks);
}

#[test]
fn less_than_half_of_a_chunk_is_read_at_the_file_server() {
    let scene = Scene::with_bucket(9);
    scene.put("big", pattern(2 * MIB, 5));
    scene.cell.set_limits(|limits| limits.chunk_bytes = 256 << 10);
    let client = scene.cell.client(2);
    assert!(scene.get(&client, "big").unwrap() == pattern(2 * MIB, 5));
    assert_eq!((at_drives(&client), client.calls("Command"), scene.store().reads()), (0, 0, 0));
}

#[test]
fn a_chunk_with_bytes_that_were_overwritten_is_not_handed_out() {
    let scene = Scene::with_bucket(10);
    scene.put("big", pattern(2 * MIB, 5));
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        let handle = writer.open("big", OpenFlags::WRITE).await.unwrap();
        writer.venus.write(handle, 300_000, pattern(100_000, 1).into()).await.unwrap();
        writer.venus.flush(handle, 0).await.unwrap();
        writer.venus.release(handle).await.unwrap();
    });
    let mut whole = pattern(2 * MIB, 5);
    whole[300_000..400_000].copy_from_slice(&pattern(100_000, 1));
    let client = scene.cell.client(2);
    assert!(scene.get(&client, "big").unwrap() == whole);
    // What was written last, and the second mebibyte; the chunk of the first has bytes that the file no longer has.
    assert_eq!(scene.store().reads(), 2, "{:?}", client.venus.counters());
    assert_eq!(at_drives(&client), 100_000 + MIB as u64);
}

#[test]
fn an_address_is_asked_for_anew_for_each_read() {
    let scene = Scene::with_bucket(11);
    scene.put("big", pattern(MIB, 5));
    let reader: Arc<dyn afs_venus::ObjectReader> = Arc::new(scene.store().clone());
    *scene.cell.objects.lock().unwrap() = Some(reader);
    for number in 2..5 {
        let client = scene.cell.client(number);
        scene.get(&client, "big").unwrap();
        assert_eq!(client.calls("Command"), 1);
        // What was given to one before has expired.
        scene.cell.sim.run_for(Duration::from_secs(61));
    }
    assert_eq!(scene.store().reads(), 3);
}
