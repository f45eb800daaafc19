//! Layouts that are used for longer than their capabilities last: one call renews those of many files, and warm files cost none.

use afs_venus::NodeId;

use super::*;

const DIRECTORIES: usize = 4;
const EACH: usize = 15;
const LENGTH: usize = 70_000;

fn path(directory: usize, file: usize) -> String {
    format!("d{directory}/f{file}")
}

fn content(directory: usize, file: usize) -> Vec<u8> {
    pattern(LENGTH, (directory * EACH + file) as u64)
}

/// Files in several directories, and a client that is connected to their drive.
fn many(seed: u64) -> (Scene, Client) {
    let scene = Scene::new(seed);
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        for directory in 0..DIRECTORIES {
            writer.mkdir(&format!("d{directory}")).await.unwrap();
            for file in 0..EACH {
                writer.put(&path(directory, file), &content(directory, file)).await.unwrap();
            }
        }
    });
    let client = scene.warm(2);
    (scene, client)
}

/// Calls for layouts.
fn asked(client: &Client) -> u64 {
    client.calls("GetLayout")
}

/// Reads all files, of which nothing is cached; the calls that were made for layouts, and renewals.
fn read_all(scene: &Scene, client: &Client) -> (u64, u64) {
    let before = (asked(client), client.calls("GetCapability"), at_drives(client));
    let here = client.clone();
    scene.cell.on(client, async move {
        here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        for directory in 0..DIRECTORIES {
            for file in 0..EACH {
                assert!(here.get(&path(directory, file)).await.unwrap() == content(directory, file));
            }
        }
    });
    let fetched = at_drives(client) - before.2;
    // A connection that was idle is closed: the first file comes from the server.
    let least = (DIRECTORIES * EACH - 1) * LENGTH;
    assert!(fetched >= least as u64, "{fetched}: {:?}", client.venus.counters().drive_fallbacks);
    (asked(client) - before.0, client.calls("GetCapability") - before.1)
}

#[test]
fn what_was_read_before_is_read_at_the_drive_by_one_call_for_many_files_however_long_ago() {
    for seed in 1..4 {
        let (scene, client) = many(seed);
        let (layouts, renewals) = read_all(&scene, &client);
        assert!(layouts <= (DIRECTORIES * EACH) as u64 / 2, "seed {seed}: {layouts}");
        assert_eq!(renewals, 0, "seed {seed}");
        assert_eq!(read_all(&scene, &client), (0, 0), "seed {seed}: the capabilities last");
        for seconds in [50, 70, 3000] {
            scene.cell.sim.run_for(Duration::from_secs(seconds));
            let (layouts, renewals) = read_all(&scene, &client);
            assert_eq!(layouts, 0, "seed {seed}, after {seconds} s");
            assert!((1..=2).contains(&renewals), "seed {seed}, after {seconds} s: {renewals}");
        }
        // A file that is stored anew has a layout of its own.
        scene.put(&path(1, 1), content(1, 1));
        assert_eq!(read_all(&scene, &client).0, 1, "seed {seed}");
    }
}

#[test]
fn a_right_that_ended_is_not_renewed() {
    let scene = Scene::new(5);
    scene.make_home("rl");
    scene.put_at_home(pattern(2 * MIB, 5));
    let client = scene.warm(2);
    let (here, writer) = (client.clone(), scene.writer.clone());
    let before = at_drives(&client);
    let (first, second) = scene.cell.on(&client, async move {
        here.log_in(ALICE, "bob").await;
        let bob = here.user(ALICE);
        let handle = bob.open("home/big", OpenFlags::READ).await.unwrap();
        let first = bob.venus.read(handle, 0, MIB).await.map(|bytes| bytes.len());
        here.env.sleep(Duration::from_secs(120)).await;
        writer.user(ALICE).set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        let second = bob.venus.read(handle, MIB as u64, MIB).await;
        (first, second.map(|bytes| bytes.len()).map_err(|error| error.errno()))
    });
    assert_eq!((first.unwrap(), second), (MIB, Err(13)));
    assert_eq!(at_drives(&client) - before, MIB as u64);
}

#[test]
fn opens_and_reads_of_warm_files_send_nothing() {
    const FILES: usize = 10_000;
    let scene = Scene::new(6);
    let writer = scene.writer.clone();
    let name = |n: usize| format!("warm{}/{n}", n / 100);
    scene.cell.on(&scene.writer, async move {
        for n in 0..FILES {
            if n % 100 == 0 {
                writer.mkdir(&format!("warm{}", n / 100)).await.unwrap();
            }
            writer.put(&name(n), &n.to_be_bytes()).await.unwrap();
        }
    });
    let client = scene.cell.client(2);
    let here = client.clone();
    let read_all = async move || {
        for n in 0..FILES {
            assert_eq!(here.get(&name(n)).await.unwrap(), n.to_be_bytes());
        }
    };
    let again = read_all.clone();
    scene.cell.on(&client, async move { read_all().await });
    let before = client.venus.counters();
    scene.cell.on(&client, async move { again().await });
    assert_eq!(client.calls_since(&before), Vec::<String>::new());
}
