//! Errors that applications get.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_server::VolumeState;
use afs_sim::{LinkConfig, SimRng};
use afs_venus::{ErrorKind, Kind, MemoryCache, NodeId, OpenFlags, RootKind, SetAttr};
use afs_wire::ids::VolumeName;
use bytes::Bytes;
use common::small_disk::{Room, SmallDisk};
use common::{Cell, Client, PROJ, SMALL_KIB, pattern};

#[test]
fn close_reports_that_the_quota_is_used_up_and_the_data_is_kept() {
    let cell = Cell::new(1);
    let a = cell.client(1);
    let client = a.clone();
    // The server lets a store that has begun exceed the quota by a mebibyte.
    let data = pattern((SMALL_KIB as usize + 1100) << 10, 1);
    let sent = data.clone();
    cell.on(&a, async move {
        client.mount("small", "#small.").await.unwrap();
        let handle = client.open_new("small/file").await.unwrap();
        client.write_all(handle, &sent).await.unwrap();
        let refused = client.venus.flush(handle, 0).await.unwrap_err();
        assert_eq!((refused.kind, refused.errno()), (ErrorKind::OverQuota, 122), "{refused}");
        assert!(refused.server.is_some());
        assert_eq!(client.read_all(handle).await.unwrap(), sent);
        assert_eq!(client.venus.release(handle).await.unwrap_err().errno(), 122);
        assert_eq!(client.get("small/file").await.unwrap(), sent, "kept for this machine's users");
    });
}

#[test]
fn a_removed_file_whose_store_failed_leaves_no_dirty_data() {
    let cell = Cell::new(24);
    let a = cell.client(1);
    let client = a.clone();
    let data = pattern((SMALL_KIB as usize + 1100) << 10, 1);
    cell.on(&a, async move {
        client.mount("small", "#small.").await.unwrap();
        let dir = client.find("small").await.unwrap().node;
        // The kernel may release a file before its name is removed, or after.
        for released_first in [true, false] {
            let handle = client.open_new("small/file").await.unwrap();
            client.write_all(handle, &data).await.unwrap();
            client.venus.flush(handle, 0).await.unwrap_err();
            if released_first {
                client.venus.release(handle).await.unwrap_err();
            }
            client.venus.unlink(dir, b"file").await.unwrap();
            if !released_first {
                client.venus.release(handle).await.unwrap();
            }
        }
        client.venus.shut_down().await.unwrap();
    });
}

#[test]
fn access_is_denied_when_a_file_is_made() {
    let cell = Cell::new(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.mount("guarded", "#guarded.").await.unwrap();
        let dir = client.find("guarded").await.unwrap().node;
        let refused = client.venus.create(dir, b"file", 0o644, OpenFlags::WRITE).await.unwrap_err();
        assert_eq!(refused.errno(), 13, "{refused}");
        assert_eq!(client.venus.mkdir(dir, b"dir", 0o755).await.unwrap_err().errno(), 13);
        assert_eq!(client.names("guarded").await.unwrap(), [".", ".."]);
    });
}

#[test]
fn a_server_that_is_away_stops_only_what_is_not_cached_and_is_named() {
    let cell = Cell::new(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&b, async move { two.put("theirs", &pattern(3000, 2)).await.unwrap() });
    cell.on(&a, async move {
        one.put("mine", &pattern(3000, 1)).await.unwrap();
        one.names("").await.unwrap();
    });
    cell.sim.world().cut(a.node, cell.server);
    cell.sim.world().cut(cell.server, a.node);
    let one = a.clone();
    cell.on(&a, async move {
        let began = one.env.now();
        assert_eq!(one.get("mine").await.unwrap(), pattern(3000, 1));
        assert!(one.env.now().saturating_since(began) < Duration::from_millis(100));
        let began = one.env.now();
        let failed = one.get("theirs").await.unwrap_err();
        let took = one.env.now().saturating_since(began);
        assert_eq!((failed.kind, failed.errno()), (ErrorKind::ServerUnreachable, 110));
        assert_eq!(failed.server.unwrap().to_string(), "10.0.0.1:7000");
        assert!(failed.to_string().contains("10.0.0.1:7000"), "{failed}");
        assert!(took < Duration::from_secs(17), "{took:?}");
        // Once the server is known to be unreachable, programs do not wait.
        let began = one.env.now();
        one.get("theirs").await.unwrap_err();
        assert!(one.env.now().saturating_since(began) < Duration::from_secs(1));
        assert_eq!(one.get("mine").await.unwrap(), pattern(3000, 1));
    });
    cell.sim.world().mend(a.node, cell.server);
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(60));
    let one = a.clone();
    assert_eq!(cell.on(&a, async move { one.get("theirs").await.unwrap() }), pattern(3000, 2));
}

#[test]
fn a_server_that_is_down_for_ten_seconds_costs_programs_time_and_no_error() {
    for seed in 300..303 {
        let cell = Cell::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let two = b.clone();
        cell.on(&b, async move { two.put("theirs", &pattern(300_000, 2)).await.unwrap() });
        let one = a.clone();
        cell.on(&a, async move {
            one.put("mine", b"before").await.unwrap();
            one.names("").await.unwrap();
        });
        cell.sim.crash(cell.server);
        let (one, results) = (a.clone(), Arc::new(parking_lot::Mutex::new(Vec::new())));
        let done = results.clone();
        a.env.spawn(Box::pin(async move {
            let read = one.get("theirs").await.map(|data| data == pattern(300_000, 2));
            let stored = one.put("mine", b"meanwhile").await.map(|()| true);
            let made = one.mkdir("dir").await.map(|()| true);
            done.lock().extend([read, stored, made]);
        }));
        cell.sim.run_for(Duration::from_secs(10));
        assert!(results.lock().is_empty());
        cell.restart_server();
        cell.sim.run_for(Duration::from_secs(40));
        let results: Vec<_> = results.lock().drain(..).collect();
        assert_eq!(results, [Ok(true), Ok(true), Ok(true)]);
    }
}

#[test]
fn a_store_that_failed_for_want_of_the_server_is_made_good_later() {
    let cell = Cell::new(4);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"precious")).await.unwrap();
        handle
    });
    cell.sim.world().cut(a.node, cell.server);
    let one = a.clone();
    cell.on(&a, async move {
        let failed = one.venus.flush(handle, 0).await.unwrap_err();
        assert_eq!((failed.kind, failed.errno()), (ErrorKind::ServerUnreachable, 110));
        one.venus.release(handle).await.unwrap_err();
        assert_eq!(one.get("file").await.unwrap(), b"precious");
    });
    cell.sim.world().mend(a.node, cell.server);
    cell.sim.run_for(Duration::from_secs(120));
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"precious");
}

/// The server crashes between the truncation by an open and the close: all data that it acknowledged before is kept.
#[test]
fn a_rewrite_that_is_refused_leaves_the_old_data_at_the_server() {
    let cell = Cell::new(12);
    let a = cell.client(1);
    let one = a.clone();
    let second = cell.on(&a, async move {
        let first = one.open_new("file").await.unwrap();
        one.write_all(first, &pattern(45_142, 1)).await.unwrap();
        one.venus.flush(first, 0).await.unwrap();
        let second = one.open_new("file").await.unwrap();
        one.venus.release(first).await.unwrap();
        one.write_all(second, &pattern(51_048, 2)).await.unwrap();
        second
    });
    cell.sim.crash(cell.server);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.venus.flush(second, 0).await.unwrap_err().errno(), 110);
        one.venus.release(second).await.unwrap_err();
    });
    // The machine that could store it later has crashed too.
    cell.sim.crash(a.node);
    cell.sim.restart(cell.server);
    cell.start_server();
    let b = cell.client(2);
    let two = b.clone();
    assert!(cell.on(&b, async move { two.get("file").await.unwrap() }) == pattern(45_142, 1));
}

/// Data of a failed close may be opened and truncated by another program before it is stored.
#[test]
fn a_retried_store_waits_for_the_close_of_a_later_writer() {
    let cell = Cell::new(13);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move { one.put("file", b"acknowledged").await.unwrap() });
    cell.sim.world().cut(a.node, cell.server);
    let one = a.clone();
    let second = cell.on(&a, async move {
        one.put("file", b"refused").await.unwrap_err();
        let second = one.open_new("file").await.unwrap();
        one.venus.write(second, 0, Bytes::from_static(b"half of ")).await.unwrap();
        second
    });
    cell.sim.world().mend(a.node, cell.server);
    cell.sim.run_for(Duration::from_secs(120));
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"acknowledged");
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.write(second, 8, Bytes::from_static(b"the new")).await.unwrap();
        one.venus.flush(second, 0).await.unwrap();
        one.venus.release(second).await.unwrap();
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"half of the new");
}

/// truncate(2) without an open file is at the server when it returns; earlier dirty data is truncated with it, or not
/// at all.
#[test]
fn a_truncate_that_fails_leaves_what_an_earlier_close_could_not_store() {
    for is_open in [false, true] {
        let cell = Cell::new(15);
        let (a, b) = (cell.client(1), cell.client(2));
        let one = a.clone();
        cell.on(&a, async move { one.put("file", b"acknowledged").await.unwrap() });
        cell.sim.world().cut(a.node, cell.server);
        let one = a.clone();
        cell.on(&a, async move {
            one.put("file", b"refused").await.unwrap_err();
            let reader = match is_open {
                true => Some(one.open("file", OpenFlags::READ).await.unwrap()),
                false => None,
            };
            let node = one.find("file").await.unwrap().node;
            let cut = SetAttr { size: Some(3), ..SetAttr::default() };
            assert_eq!(one.venus.setattr(node, None, cut).await.unwrap_err().errno(), 110);
            assert_eq!(one.get("file").await.unwrap(), b"refused");
            if let Some(reader) = reader {
                one.venus.release(reader).await.unwrap();
            }
        });
        cell.sim.world().mend(a.node, cell.server);
        cell.sim.run_for(Duration::from_secs(120));
        let two = b.clone();
        assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"refused");
        let one = a.clone();
        cell.on(&a, async move {
            let node = one.find("file").await.unwrap().node;
            let cut = SetAttr { size: Some(3), ..SetAttr::default() };
            assert_eq!(one.venus.setattr(node, None, cut).await.unwrap().size, 3);
        });
    }
}

/// As for an open that the kernel is told to repeat in another way.
#[test]
fn an_open_that_is_given_up_stores_nothing() {
    let cell = Cell::new(14);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        one.put("file", b"acknowledged").await.unwrap();
        let cut = one.open_new("file").await.unwrap();
        one.venus.cancel_open(cut).await;
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"acknowledged");
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        assert_eq!(one.get("file").await.unwrap(), b"acknowledged");
        one.put("file", b"new").await.unwrap();
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"new");
}

#[test]
fn a_busy_volume_is_waited_for() {
    let cell = Cell::new(5);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mount("proj", "#proj.").await.unwrap();
        one.put("proj/file", b"x").await.unwrap();
    });
    let (states, id) = (cell.states.clone(), cell.volume(PROJ));
    states.set(id, Some(VolumeState::Busy));
    let env = a.env.clone();
    env.spawn(Box::pin({
        let env = a.env.clone();
        async move {
            afs_rpc::EnvExt::sleep(&*env, Duration::from_secs(9)).await;
            states.set(id, None);
        }
    }));
    let one = a.clone();
    cell.on(&a, async move { one.put("proj/file", b"later").await.unwrap() });
    let b = cell.client(2);
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("proj/file").await.unwrap() }), b"later");
}

#[test]
fn a_volume_that_stays_off_line_is_an_error_in_bounded_time() {
    let cell = Cell::new(6);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move { one.mount("proj", "#proj.").await.map(drop).unwrap() });
    cell.states.set(cell.volume(PROJ), Some(VolumeState::Offline));
    let one = a.clone();
    cell.on(&a, async move {
        let began = one.env.now();
        let dir = one.find("proj").await.unwrap().node;
        let failed = one.venus.create(dir, b"x", 0o644, OpenFlags::WRITE).await.unwrap_err();
        assert_eq!((failed.kind, failed.errno()), (ErrorKind::VolumeOffline, 19), "{failed}");
        assert!(one.env.now().saturating_since(began) < Duration::from_secs(61));
    });
}

#[test]
fn a_volume_that_is_not_known_is_no_missing_file() {
    let cell = Cell::new(7);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let made = one.mount("nowhere", "#no.such.volume.").await.unwrap();
        for entry in [made, one.find("nowhere").await.unwrap()] {
            assert_eq!((entry.attr.kind, entry.attr.mode.0, entry.attr.nlink), (Kind::Directory, 0o555, 2));
        }
        // Access to it gives an error; a listing of the directory around it does not.
        assert_eq!(one.names("nowhere").await.unwrap_err().errno(), 19);
        assert_eq!(one.find("nowhere/file").await.unwrap_err().errno(), 19);
        assert_eq!(one.put("nowhere/file", b"x").await.unwrap_err().errno(), 19);
        assert_eq!(one.names("").await.unwrap(), [".", "..", "nowhere"]);
        let node = one.find("nowhere").await.unwrap().node;
        assert_eq!(one.venus.getattr(node).await.unwrap().kind, Kind::Directory);
        one.venus.set_property(NodeId::ROOT, b"afs.rmmount", b"nowhere").await.unwrap();
        assert_eq!(one.find("nowhere").await.unwrap_err().errno(), 2);
    });
    let root = RootKind::Volume(VolumeName::new("no.such.volume").unwrap());
    let failed = cell.try_client(9, Arc::new(MemoryCache::new(1 << 20)), root).err().unwrap();
    assert_eq!(failed.errno(), 19);
}

/// For a client that has found it when it existed, as a kernel has.
#[test]
fn a_mount_point_whose_volume_was_removed_is_shown_as_one_that_leads_nowhere() {
    let cell = Cell::new(16);
    let a = cell.client(1);
    let one = a.clone();
    let node = cell.on(&a, async move {
        one.mount("proj", "#proj.").await.unwrap();
        one.find("proj").await.unwrap().node
    });
    cell.states.set(cell.volume(PROJ), Some(VolumeState::Hidden));
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        one.invalidated.take();
        let attr = one.venus.getattr(node).await.unwrap();
        assert_eq!((attr.node, attr.kind, attr.mode.0, attr.nlink), (node, Kind::Directory, 0o555, 2));
        let told = one.invalidated.take();
        assert!(told.iter().any(|told| told.starts_with("entry") && told.ends_with(" proj")), "{told:?}");
        assert_eq!(one.venus.readdir(node, 0, 9).await.unwrap_err().errno(), 19);
        assert_eq!(one.venus.getattr(node).await.unwrap().mode.0, 0o555);
    });
}

#[test]
fn a_location_server_that_is_away_is_named_too() {
    let cell = Cell::new(8);
    cell.sim.crash(cell.server);
    let root = RootKind::Volume(VolumeName::new("root.cell").unwrap());
    let failed = cell.try_client(1, Arc::new(MemoryCache::new(1 << 20)), root).err().unwrap();
    assert_eq!((failed.kind, failed.errno()), (ErrorKind::ServerUnreachable, 110));
    assert_eq!(failed.server.unwrap().to_string(), "10.0.0.1:7003");
}

#[test]
fn data_acknowledged_by_close_survives_a_power_failure_of_the_server() {
    let cell = Cell::new(9);
    let a = cell.client(1);
    for round in 0..4 {
        let one = a.clone();
        cell.on(&a, async move { one.put("file", &pattern(30_000, round)).await.unwrap() });
        cell.restart_server();
        let b = cell.client(2 + round as u8);
        let two = b.clone();
        assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), pattern(30_000, round));
    }
}

/// The stores of two clients overlap: the first one's close failed, so the data of the second one, whose close
/// succeeded, must be kept.
#[test]
fn a_store_tried_again_later_does_not_undo_what_others_stored_since() {
    let cell = Cell::new(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("file", b"first").await.unwrap();
        let handle = one.open_new("file").await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"lost")).await.unwrap();
        handle
    });
    cell.sim.world().cut(a.node, cell.server);
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(handle, 0).await.unwrap_err() });
    let two = b.clone();
    cell.on(&b, async move { two.put("file", b"acknowledged").await.unwrap() });
    cell.sim.world().mend(a.node, cell.server);
    cell.sim.run_for(Duration::from_secs(300));
    let (one, two) = (a.clone(), b.clone());
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"acknowledged");
    cell.on(&a, async move { one.venus.release(handle).await.unwrap_err() });
    let (one, two) = (a.clone(), b.clone());
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"acknowledged");
    assert_eq!(cell.on(&a, async move { one.get("file").await.unwrap() }), b"acknowledged");
}

/// The store was executed, and only the reply was lost: the retry must notice.
#[test]
fn a_store_whose_answer_was_lost_is_not_made_twice() {
    let cell = Cell::new(11);
    let a = cell.client(1);
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("file", b"first").await.unwrap();
        let handle = one.open_new("file").await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"second")).await.unwrap();
        handle
    });
    cell.sim.world().cut(cell.server, a.node);
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(handle, 0).await.unwrap_err() });
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(120));
    let one = a.clone();
    cell.on(&a, async move {
        let before = one.venus.counters();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        assert!(!one.calls_since(&before).iter().any(|call| call.starts_with("StoreData")));
        assert_eq!(one.get("file").await.unwrap(), b"second");
    });
    let b = cell.client(2);
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"second");
}

/// Writes a file, and closes it. The disk may vanish in between.
async fn write_with_vanishing_disk(
    client: &Client,
    name: &str,
    data: &[u8],
    disk: Option<&Room>,
) -> Result<(), i32> {
    let handle = client.open_new(name).await.map_err(|error| error.errno())?;
    let written = client.write_all(handle, data).await;
    if let Some(disk) = disk {
        disk.set_there(false);
    }
    let closed = client.venus.flush(handle, 0).await;
    client.venus.release(handle).await.ok();
    written.and(closed).map_err(|error| error.errno())
}

/// Files of a program, those that it was told are written and the others, while the disk of its cache fills up, or vanishes and comes back.
async fn write_on_bad_disk(client: Client, room: Room, mut rng: SimRng) -> [BTreeMap<String, Vec<u8>>; 2] {
    let [mut acknowledged, mut refused] = [const { BTreeMap::new() }; 2];
    for n in 0..80u8 {
        let mut vanishing = None;
        match rng.below(8) {
            0 => room.set(rng.below(20_000)),
            1 => vanishing = Some(&room),
            2..5 => room.set_there(true),
            5 => room.set(u64::MAX),
            _ => {}
        }
        let (name, data) = (format!("file{n}"), vec![n; rng.between(1, 9000) as usize]);
        match write_with_vanishing_disk(&client, &name, &data, vanishing).await {
            Ok(()) => drop(acknowledged.insert(name, data)),
            Err(errno) => {
                assert!([5, 28].contains(&errno), "file{n}: {errno}");
                refused.insert(name, data);
            }
        }
    }
    room.set_there(false);
    for (name, data) in &acknowledged {
        match client.get(name).await {
            Ok(read) => assert_eq!(read, *data, "{name}"),
            Err(error) => assert_eq!(error.errno(), 5, "{error}"),
        }
    }
    [acknowledged, refused]
}

#[test]
fn a_cache_disk_that_is_full_or_has_vanished_is_an_error_and_nothing_acknowledged_is_lost() {
    for seed in 0..3 {
        let (cell, room) = (Cell::new(600 + seed), Room::default());
        let a = cell.client_with(1, Arc::new(SmallDisk::new(&room)));
        let [acknowledged, refused] = cell.on(&a, write_on_bad_disk(a.clone(), room, SimRng::new(seed)));
        assert!(acknowledged.len() > 10 && refused.len() > 10, "seed {seed}: this test would notice nothing");
        cell.sim.crash(a.node);
        let b = cell.client(2);
        let two = b.clone();
        cell.on(&b, async move {
            for (name, data) in &acknowledged {
                assert_eq!(two.get(name).await.unwrap(), *data, "seed {seed}: {name}");
            }
            // Refused: none of it is there, or all of it.
            for (name, data) in &refused {
                let there = two.get(name).await.unwrap_or_default();
                assert!(there.is_empty() || there == *data, "seed {seed}: {} bytes of {name}", there.len());
            }
        });
    }
}

/// Reads a file as its last version, within the time after which a client knows of a change that it could not be told of. Until then it may be the one before.
async fn reads_last(client: Client, name: String, [before, last]: [Vec<u8>; 2]) {
    let begun = client.env.now();
    loop {
        let read = match client.get(&name).await {
            Err(error) if error.errno() == 2 && before.is_empty() => Vec::new(),
            read => read.unwrap(),
        };
        if read == last {
            return;
        }
        assert!(read == before, "{name}: {} bytes that were never stored", read.len());
        assert!(client.env.now() - begun < Duration::from_secs(75), "{name}: still as before");
        client.env.sleep(Duration::from_secs(1)).await;
    }
}

#[test]
fn with_one_datagram_in_twenty_lost_programs_get_no_error_and_right_data() {
    for seed in 0..2 {
        let cell = Cell::new(650 + seed);
        let clients = [cell.client(1), cell.client(2)];
        cell.sim.set_link(LinkConfig { loss_per_million: 50_000, ..LinkConfig::default() });
        let mut versions: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for n in 0..30 {
            let (writer, reader) = (&clients[n % 2], &clients[(n + 1) % 2]);
            let name = format!("dir{}/file{}", n % 3, n % 5);
            let data = pattern([90, 5_000, 100_000][n % 3], n as u64 + 1);
            let (one, file, sent) = (writer.clone(), name.clone(), data.clone());
            cell.on(writer, async move {
                if n < 3 {
                    one.mkdir(&format!("dir{n}")).await.unwrap();
                }
                one.put(&file, &sent).await.unwrap();
            });
            let before = versions.insert(name.clone(), data.clone()).unwrap_or_default();
            cell.on(reader, reads_last(reader.clone(), name, [before, data]));
        }
        // Fewer are sent where bytes of files go by streams.
        let stats = cell.sim.net_stats();
        assert!(stats.lost > stats.sent / 40, "seed {seed}: {stats:?}");
    }
}
