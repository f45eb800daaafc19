//! A volume that moves to another server while it is used.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{ErrorKind, HandleId, LockKind, LockRange, OpenFlags};
use afs_wire::error::AbortCode;
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::fakes::{Fakes, Image, RW, Shared};
use common::{Client, pattern};

const MASTER: SiteFlags = SiteFlags::RW_VOLUME;

/// Two servers, of which the first has the volume; and the contents of the volume.
fn cell(seed: u64) -> (Fakes, Shared) {
    let cell = Fakes::new(seed, 2, 1);
    let mut image = Image::new(100).with("file", b"old").with("large", &pattern(1 << 20, 1));
    for n in 0..60 {
        image = image.with(&format!("cached{n}"), &pattern(2000, n));
    }
    let shared = Arc::new(Mutex::new(image));
    cell.servers[0].host(RW, &shared, true);
    cell.locate(&[(0, MASTER)]);
    (cell, shared)
}

/// The last steps of a move, as clients see them: the new server has the volume, the location service has the new
/// entry, and the old server aborts calls and breaks its promises.
fn arrive(cell: &Fakes, image: &Shared, (from, to): (usize, usize), code: AbortCode) {
    cell.servers[to].host(RW, image, true);
    cell.locate(&[(to, MASTER)]);
    let server = cell.servers[from].clone();
    server.refuse(RW, Some(code));
    if cell.sim.is_up(server.node) {
        let node = server.node;
        cell.sim.block_on(node, common::LIMIT, async move { server.break_volume(RW).await }).unwrap();
    }
}

fn get(cell: &Fakes, client: &Client, path: &'static str) -> Vec<u8> {
    let one = client.clone();
    cell.on(client, async move { one.get(path).await.unwrap() })
}

#[test]
fn dirty_data_is_stored_at_the_new_server_of_a_moved_volume() {
    for code in [AbortCode::VMOVED, AbortCode::VNOVOL] {
        let (cell, image) = cell(1);
        let (a, b) = (cell.client(1), cell.client(2));
        assert_eq!(get(&cell, &b, "file"), b"old");
        let one = a.clone();
        let handle = cell.on(&a, async move {
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            one.venus.write(handle, 0, Bytes::from_static(b"written before")).await.unwrap();
            handle
        });
        arrive(&cell, &image, (0, 1), code);
        let one = a.clone();
        cell.on(&a, async move {
            one.venus.write(handle, 14, Bytes::from_static(b" and after")).await.unwrap();
            one.venus.flush(handle, 0).await.unwrap();
            one.venus.release(handle).await.unwrap();
        });
        assert_eq!((cell.servers[0].calls("StoreData"), cell.servers[1].calls("StoreData")), (0, 1));
        assert_eq!(get(&cell, &b, "file"), b"written before and after");
    }
}

/// The first machine locks the file and has dirty data of it.
fn locked(cell: &Fakes, a: &Client) -> HandleId {
    let one = a.clone();
    cell.on(a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"under the lock")).await.unwrap();
        handle
    })
}

/// The second machine tries to lock the file, and changes it if it gets the lock.
fn lock_and_change(cell: &Fakes, b: &Client) -> bool {
    let two = b.clone();
    cell.on(b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let got = two.venus.lock(handle, 9, 2, LockRange::WHOLE, LockKind::Write, false).await.is_ok();
        if got {
            two.venus.write(handle, 0, Bytes::from_static(b"of the other")).await.unwrap();
        }
        two.venus.flush(handle, 9).await.unwrap();
        two.venus.release(handle).await.unwrap();
        got
    })
}

#[test]
fn a_lock_goes_on_at_the_server_that_its_volume_moved_to() {
    let (cell, image) = cell(11);
    let (a, b) = (cell.client(1), cell.client(2));
    let handle = locked(&cell, &a);
    assert!(!lock_and_change(&cell, &b));
    arrive(&cell, &image, (0, 1), AbortCode::VMOVED);
    let one = a.clone();
    cell.on(&a, async move { one.venus.fsync(handle).await.unwrap() });
    assert!(!lock_and_change(&cell, &b), "what is stored under a lock is stored where the lock is");
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.flush(handle, 7).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    assert!(lock_and_change(&cell, &b));
}

#[test]
fn a_lock_that_another_machine_got_after_a_move_is_lost_and_its_changes_are_not_overwritten() {
    let (cell, image) = cell(12);
    let (a, b) = (cell.client(1), cell.client(2));
    let handle = locked(&cell, &a);
    arrive(&cell, &image, (0, 1), AbortCode::VMOVED);
    assert!(lock_and_change(&cell, &b));
    let one = a.clone();
    cell.on(&a, async move {
        let refused = one.venus.fsync(handle).await.unwrap_err();
        assert_eq!((refused.kind, refused.errno()), (ErrorKind::LockLost, 5), "{refused}");
        one.venus.flush(handle, 7).await.unwrap_err();
        one.venus.release(handle).await.ok();
    });
    assert_eq!(get(&cell, &b, "file"), b"of the other");
}

/// The first machine releases a lock and gets no reply; `is_heard` tells whether the server received the release.
/// Returns whether the second machine gets the lock when the server is reachable again, and whether the third one gets
/// it after that.
fn lock_of_no_holder(seed: u64, is_heard: bool, was_silent: bool) -> [bool; 2] {
    let (cell, _) = cell(seed);
    let server = &cell.servers[0];
    server.forget_lock_holders();
    let (a, b, c) = (cell.client(1), cell.client(2), cell.client(3));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ).await.unwrap();
        one.get("large").await.unwrap();
        one.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        handle
    });
    cell.sim.world().cut(server.node, a.node);
    if !is_heard {
        cell.sim.world().cut(a.node, server.node);
    }
    let one = a.clone();
    cell.on(&a, async move {
        if was_silent {
            one.find("nothing").await.ok();
            one.put("cached1", b"new").await.unwrap_err();
        }
        one.venus.flush(handle, 7).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    let take = |client: &Client| {
        let one = client.clone();
        cell.on(client, async move {
            let handle = one.open("file", OpenFlags::READ).await.unwrap();
            one.venus.lock(handle, 9, 2, LockRange::WHOLE, LockKind::Write, false).await.is_ok()
        })
    };
    let early = is_heard && take(&b);
    cell.sim.world().mend(server.node, a.node);
    cell.sim.world().mend(a.node, server.node);
    cell.sim.run_for(Duration::from_secs(60));
    [early || take(&b), take(&c)]
}

#[test]
fn a_release_is_sent_again_to_a_server_that_knows_no_holders_only_if_it_was_surely_not_heard() {
    assert_eq!(lock_of_no_holder(13, true, false), [true, false], "the lock of another machine is released");
    assert_eq!(lock_of_no_holder(14, false, true), [true, false], "a lock that is surely ours is kept");
    assert_eq!(lock_of_no_holder(15, false, false), [false, false], "it may have been heard");
}

#[test]
fn the_cache_of_a_moved_volume_stays_and_is_revalidated_in_bulk() {
    let (cell, image) = cell(2);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..60 {
            one.get(&format!("cached{n}")).await.unwrap();
        }
        one.get("large").await.unwrap();
    });
    arrive(&cell, &image, (0, 1), AbortCode::VMOVED);
    let one = a.clone();
    cell.on(&a, async move {
        let before = one.venus.counters();
        for n in 0..60 {
            assert_eq!(one.get(&format!("cached{n}")).await.unwrap(), pattern(2000, n));
        }
        one.get("large").await.unwrap();
        let calls = one.calls_since(&before);
        assert!(!calls.iter().any(|call| call.starts_with("FetchData")), "{calls:?}");
        assert!(one.venus.counters().calls_total() - before.calls_total() < 16, "{calls:?}");
    });
    assert_eq!(cell.servers[1].calls("FetchData"), 0);
}

/// No break is sent when a server dies: its volume may be restored elsewhere.
#[test]
fn a_volume_whose_server_died_is_found_where_it_was_brought_to() {
    let (cell, image) = cell(3);
    let a = cell.client(1);
    assert_eq!(get(&cell, &a, "file"), b"old");
    cell.sim.crash(cell.servers[0].node);
    arrive(&cell, &image, (0, 1), AbortCode::VNOVOL);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"new").await.unwrap();
        assert_eq!(one.get("file").await.unwrap(), b"new");
    });
    // A change by another client is noticed: promises of the dead server are void.
    let b = cell.client(2);
    let two = b.clone();
    cell.on(&b, async move { two.put("file", b"newer").await.unwrap() });
    assert_eq!(get(&cell, &a, "file"), b"newer");
}

#[test]
fn a_volume_that_stays_off_line_is_named_in_the_error() {
    let (cell, _) = cell(4);
    let a = cell.client(1);
    let one = a.clone();
    let server = cell.servers[0].clone();
    cell.on(&a, async move {
        one.get("file").await.unwrap();
        server.refuse(RW, Some(AbortCode::VOFFLINE));
        let began = one.env.now();
        let failed = one.put("file", b"x").await.unwrap_err();
        assert_eq!((failed.kind, failed.errno()), (ErrorKind::VolumeOffline, 19), "{failed}");
        let text = failed.to_string();
        assert!(text.contains("volume proj") && text.contains("10.0.1.0:7000"), "{text}");
        let took = one.env.now().saturating_since(began);
        assert!((Duration::from_secs(5)..Duration::from_secs(31)).contains(&took), "{took:?}");
        server.refuse(RW, Some(AbortCode::VBUSY));
        let failed = one.put("file", b"x").await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::VolumeBusy, "{failed}");
        assert!(failed.to_string().contains("volume proj"), "{failed}");
    });
}

/// Moves back and forth under writers, with the pauses of a real move.
#[test]
fn moves_back_and_forth_lose_no_acknowledged_byte_and_cause_no_error() {
    for seed in afs_sim::crash::seeds(3) {
        let (cell, image) = cell(1000 + seed);
        let mut rng = SimRng::new(seed);
        let clients: Vec<Client> = (0..3).map(|n| cell.client(n)).collect();
        let stop = Arc::new(Mutex::new(false));
        let last = Arc::new(Mutex::new(vec![0u64; clients.len()]));
        for (n, client) in clients.iter().cloned().enumerate() {
            let (stop, last) = (stop.clone(), last.clone());
            client.env.clone().spawn(Box::pin(async move {
                let path = format!("cached{n}");
                let mut round = 0;
                while !*stop.lock().unwrap() {
                    round += 1;
                    let data = pattern(1000 + 700 * (round % 90) as usize, round);
                    let put = client.put(&path, &data).await;
                    put.unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
                    last.lock().unwrap()[n] = round;
                    client.env.sleep(Duration::from_millis(150)).await;
                }
            }));
        }
        let mut at = 0;
        for _ in 0..20 {
            cell.sim.run_for(rng.duration(Duration::ZERO, Duration::from_secs(3)));
            cell.servers[at].refuse(RW, Some(AbortCode::VBUSY));
            cell.sim.run_for(rng.duration(Duration::ZERO, Duration::from_secs(9)));
            let gone = if rng.chance(500_000) { AbortCode::VMOVED } else { AbortCode::VNOVOL };
            arrive(&cell, &image, (at, 1 - at), gone);
            at = 1 - at;
        }
        *stop.lock().unwrap() = true;
        cell.sim.run_for(Duration::from_secs(20));
        let newcomer = cell.client(9);
        for (n, round) in last.lock().unwrap().iter().copied().enumerate() {
            assert!(round > 10, "seed {seed}: {round}");
            let one = newcomer.clone();
            let data = cell.on(&newcomer, async move { one.get(&format!("cached{n}")).await.unwrap() });
            assert!(data == pattern(1000 + 700 * (round % 90) as usize, round), "seed {seed}, writer {n}");
        }
    }
}

#[test]
fn a_volume_that_is_gone_for_good_is_no_device() {
    let (cell, _) = cell(5);
    let a = cell.client(1);
    assert_eq!(get(&cell, &a, "file"), b"old");
    cell.forget_location();
    cell.servers[0].refuse(RW, Some(AbortCode::VNOVOL));
    let one = a.clone();
    cell.on(&a, async move {
        let failed = one.get("large").await.unwrap_err();
        assert_eq!((failed.kind, failed.errno()), (ErrorKind::NoVolume, 19), "{failed}");
    });
}
