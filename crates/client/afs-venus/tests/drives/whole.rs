//! Atomicity of stores as seen by other machines, also after crashes, on drives of each kind in each organisation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use afs_venus::Result;
use afs_wire::vl::SiteFlags;
use bytes::Bytes;

use super::common::Cell;
use super::common::fakes::{Fakes, Image, RW};
use super::scene::Scene;
use super::*;

/// Offsets in the file that are changed together: so far apart that they are not sent as one range.
const PLACES: [u64; 4] = [0, 600_000, 1_200_000, 1_800_000];
const LEN: usize = 2_000_000;

/// Opens the file, writes a tag at each offset, as many bytes as are stored in the index or on a drive, and closes it. The file need not
/// be fully cached.
async fn mark(client: &Client, tag: u8, bytes: usize) -> Result<()> {
    let handle = client.open("file", OpenFlags::WRITE).await?;
    for place in PLACES {
        client.venus.write(handle, place, Bytes::from(vec![tag; bytes])).await?;
    }
    let closed = client.venus.flush(handle, 0).await;
    client.venus.release(handle).await.ok();
    closed
}

/// The tags at all offsets, as one open of the file sees them.
async fn tags(client: &Client) -> Result<Vec<u8>> {
    let data = client.get("file").await?;
    assert_eq!(data.len(), LEN);
    Ok(PLACES.iter().map(|place| data[*place as usize + 50]).collect())
}

fn are_equal(tags: &[u8]) -> bool {
    tags.iter().all(|tag| *tag == tags[0])
}

const FEW: usize = 100;
const MANY: usize = 20_000;

/// On drives of some kind for every second seed; and how many bytes are to be changed at each offset.
fn scene(seed: u64, test: u64) -> (Scene, usize) {
    let (scene, bytes) = match seed % 2 {
        0 => (Scene::without_data_path(seed), FEW),
        _ => (Scene::planned(seed, &DrivePlan::of_seed(3 * (seed / 2) + test)), MANY),
    };
    scene.cell.set_limits(|limits| limits.chunk_bytes = 64 << 10);
    (scene, bytes)
}

/// A machine that has the whole file cached after an open.
fn reader(cell: &Cell, number: u8) -> Client {
    cell.set_limits(|limits| limits.chunk_bytes = 4 << 20);
    cell.client(number)
}

/// A file that one machine has created; with `all_here` it stays fully cached there.
fn prepare(cell: &Cell, client: &Client, all_here: bool) {
    let client_of = client.clone();
    cell.on(client, async move {
        client_of.put("file", &vec![0; LEN]).await.unwrap();
        if !all_here {
            let node = client_of.find("file").await.unwrap().node;
            client_of.venus.set_property(node, b"afs.flush", b"").await.unwrap();
        }
    });
}

#[test]
fn a_reader_during_a_store_of_many_ranges_sees_all_of_them_changed_or_none() {
    for seed in seeds(4) {
        let (scene, bytes) = scene(seed, 1);
        let cell = &scene.cell;
        let (a, b) = (cell.client(2), reader(cell, 3));
        prepare(cell, &a, seed % 2 == 0);
        let done = Arc::new(AtomicBool::new(false));
        let (one, ended) = (a.clone(), done.clone());
        a.env.spawn(Box::pin(async move {
            for round in 1..16 {
                mark(&one, round, bytes).await.unwrap();
                one.env.sleep(Duration::from_micros(one.env.random_u64() % 200_000)).await;
            }
            ended.store(true, Ordering::SeqCst);
        }));
        let two = b.clone();
        cell.on(&b, async move {
            while !done.load(Ordering::SeqCst) {
                let seen = tags(&two).await.unwrap();
                assert!(are_equal(&seen), "seed {seed}: {seen:?}");
                two.env.sleep(Duration::from_micros(two.env.random_u64() % 30_000)).await;
            }
        });
    }
}

#[test]
fn a_crash_during_a_store_of_many_ranges_leaves_all_of_them_changed_or_none() {
    for seed in seeds(8) {
        let (scene, bytes) = scene(seed, 2);
        let cell = &scene.cell;
        let (a, b) = (cell.client(2), reader(cell, 3));
        prepare(cell, &a, seed % 2 == 0);
        let one = a.clone();
        a.env.spawn(Box::pin(async move {
            for round in 1..200 {
                mark(&one, round, bytes).await.ok();
            }
        }));
        cell.sim.run_for(Duration::from_micros(20_000 + 137 * seed));
        cell.sim.crash(a.node);
        let two = b.clone();
        let seen = cell.on(&b, async move { tags(&two).await.unwrap() });
        assert!(are_equal(&seen), "seed {seed}: {seen:?}");
    }
}

#[test]
fn of_machines_that_close_at_the_same_time_one_wins_with_all_its_places() {
    for seed in seeds(4) {
        let (scene, bytes) = scene(seed, 3);
        let cell = &scene.cell;
        let machines = [cell.client(2), cell.client(3)];
        prepare(cell, &machines[0], true);
        let third = reader(cell, 4);
        for round in 1..8u8 {
            let done = Arc::new(std::sync::Mutex::new(0));
            for (n, machine) in machines.iter().cloned().enumerate() {
                let done = done.clone();
                machine.env.clone().spawn(Box::pin(async move {
                    if n == 0 && seed % 2 == 1 {
                        // The file is fully cached: it may be stored as a whole.
                        machine.get("file").await.unwrap();
                    }
                    mark(&machine, 2 * round + n as u8, bytes).await.unwrap();
                    *done.lock().unwrap() += 1;
                }));
            }
            cell.sim.run_until(Duration::from_secs(600), || *done.lock().unwrap() == 2).unwrap();
            for machine in machines.iter().chain([&third]) {
                let reader = machine.clone();
                let seen = cell.on(machine, async move { tags(&reader).await.unwrap() });
                assert!(are_equal(&seen) && seen[0] / 2 == round, "seed {seed} round {round}: {seen:?}");
            }
        }
    }
}

/// Writes into an open file while the server is unreachable, and closes it, which fails.
async fn close_that_fails(client: Client, handle: afs_venus::HandleId, data: &'static [u8]) {
    client.venus.write(handle, 0, Bytes::from_static(data)).await.unwrap();
    client.venus.flush(handle, 0).await.unwrap_err();
    client.venus.release(handle).await.ok();
}

#[test]
fn a_store_of_another_machine_that_looks_like_ours_is_not_taken_for_it() {
    let cell = Cell::new(1);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("file", b"--------").await.unwrap();
        one.open("file", OpenFlags::READ_WRITE).await.unwrap()
    });
    cell.sim.world().cut(cell.server, a.node);
    cell.sim.world().cut(a.node, cell.server);
    a.env.spawn(Box::pin(close_that_fails(a.clone(), handle, b"of A    ")));
    // In the same second, and with the same length.
    let two = b.clone();
    cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        two.venus.write(handle, 0, Bytes::from_static(b"of B    ")).await.unwrap();
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
    cell.sim.run_for(Duration::from_secs(90));
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.world().mend(a.node, cell.server);
    cell.sim.run_for(Duration::from_secs(120));
    for machine in [&a, &b] {
        let reader = machine.clone();
        let data = cell.on(machine, async move { reader.get("file").await.unwrap() });
        assert_eq!(String::from_utf8(data).unwrap(), "of B    ");
    }
}

#[test]
fn many_places_whose_answer_was_lost_are_known_at_the_server_and_not_stored_again() {
    for seed in seeds(2) {
        let (scene, bytes) = scene(2 * seed, 4);
        let cell = &scene.cell;
        let (a, b) = (cell.client(2), reader(cell, 3));
        prepare(cell, &a, seed == 0);
        let one = a.clone();
        let handle = cell.on(&a, async move {
            let handle = one.open("file", OpenFlags::WRITE).await.unwrap();
            for place in PLACES {
                one.venus.write(handle, place, Bytes::from(vec![7; bytes])).await.unwrap();
            }
            handle
        });
        cell.sim.world().cut(cell.server, a.node);
        let one = a.clone();
        cell.on(&a, async move {
            one.venus.flush(handle, 0).await.unwrap_err();
            one.venus.release(handle).await.ok();
        });
        cell.sim.world().mend(cell.server, a.node);
        let stores = || a.calls("StoreRanges") + a.calls("StoreData64");
        let before = stores();
        cell.sim.run_for(Duration::from_secs(120));
        assert_eq!(stores(), before, "seed {seed}");
        for machine in [&a, &b] {
            let reader = machine.clone();
            let seen = cell.on(machine, async move { tags(&reader).await.unwrap() });
            assert_eq!(seen, [7; 4], "seed {seed}");
        }
    }
}

#[test]
fn at_a_server_without_the_call_for_many_places_a_file_that_is_all_here_is_stored_as_a_whole() {
    use common::fakes::{Fakes, Image, RW};
    let cell = Fakes::new(1, 1, 1);
    let image = Arc::new(std::sync::Mutex::new(Image::new(100).with("file", &vec![0; LEN])));
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(tags(&one).await.unwrap(), [0; 4]);
        mark(&one, 9, FEW).await.unwrap();
    });
    assert_eq!(cell.servers[0].calls("StoreData"), 1);
    let b = cell.client(2);
    let two = b.clone();
    cell.on(&b, async move { assert_eq!(tags(&two).await.unwrap(), [9; 4]) });
    // The server is asked only once whether it knows the call.
    let one = a.clone();
    cell.on(&a, async move { mark(&one, 10, FEW).await.unwrap() });
    assert_eq!((a.calls("StoreRanges"), cell.servers[0].calls("StoreData")), (1, 2));
}

/// The other machine rewrites the file shorter between the client's look at its version and its store.
#[test]
fn a_file_that_another_machine_cut_is_not_extended_by_a_store_into_its_middle() {
    for is_cached in [false, true] {
        let image = Arc::new(Mutex::new(Image::new(100).with("file", &pattern(200_000, 1))));
        let cell = Fakes::new(1, 1, 1);
        cell.servers[0].host(RW, &image, true);
        cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
        let (client, shorter) = (cell.client(0), pattern(50_000, 2));
        let (one, mut expected) = (client.clone(), shorter.clone());
        expected[10..15].copy_from_slice(b"there");
        cell.on(&client, async move {
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            if is_cached {
                one.venus.read(handle, 0, 200_000).await.unwrap();
            }
            one.venus.write(handle, 10, Bytes::from_static(b"there")).await.unwrap();
            {
                let mut image = image.lock().unwrap();
                let file = image.find(RW, b"file").unwrap();
                image.store(file.vnode, 0, &shorter, 0).unwrap();
            }
            one.venus.flush(handle, 0).await.unwrap();
            one.venus.release(handle).await.unwrap();
            assert!(one.get("file").await.unwrap() == expected, "{is_cached}");
            assert_eq!(one.find("file").await.unwrap().attr.size, 50_000);
            let node = one.find("file").await.unwrap().node;
            one.venus.set_property(node, b"afs.flush", b"").await.unwrap();
            assert!(one.get("file").await.unwrap() == expected, "at the server: {is_cached}");
        });
    }
}
