//! A server that is restarted while programs use it, and one that stays unreachable.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{ErrorKind, Limits, LockKind, LockRange, OpenFlags, Result};
use afs_wire::ids::{Mode, VolumeId};
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::fakes::{Fakes, Image, RW};
use common::{Cell, Client, pattern};

/// As long as an ordinary restart takes; programs wait longer.
const RESTART: Duration = Duration::from_secs(10);
/// Longer than programs wait for a server, unless they wait for ever; and longer than an operation takes.
const OUTAGE: Duration = Duration::from_secs(70);
/// Time after which a reachable server is used again.
const NOTICED: Duration = Duration::from_secs(2);
/// Time for the work that waited.
const WORK: Duration = Duration::from_secs(8);

/// Record of the programs of one machine.
#[derive(Clone, Default)]
struct Done {
    rounds: Arc<AtomicU64>,
    failed: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

/// One round of all operations that change something at the server, under names of its own.
async fn round(client: &Client, program: u64, n: u64) -> Result<()> {
    let dir = format!("dir{program}-{n}");
    client.mkdir(&dir).await?;
    let path = format!("{dir}/file");
    client.put(&path, &pattern(3000, n)).await?;
    let handle = client.open(&path, OpenFlags::READ_WRITE).await?;
    client.venus.lock(handle, program, 1, LockRange::WHOLE, LockKind::Write, false).await?;
    client.venus.write(handle, 10, Bytes::from_static(b"under a lock")).await?;
    client.venus.fsync(handle).await?;
    client.venus.unlock(handle, program, LockRange::WHOLE).await?;
    client.venus.flush(handle, program).await?;
    client.venus.release(handle).await?;
    let node = client.find(&dir).await?.node;
    client.venus.rename(node, b"file", node, b"renamed").await?;
    client.venus.unlink(node, b"renamed").await?;
    client.venus.rmdir(afs_venus::NodeId::ROOT, dir.as_bytes()).await
}

fn start_program(client: &Client, program: u64, done: &Done) {
    let (client, done) = (client.clone(), done.clone());
    client.env.clone().spawn(Box::pin(async move {
        for n in 0.. {
            if done.stop.load(Ordering::SeqCst) {
                return;
            }
            if let Err(error) = round(&client, program, n).await {
                done.failed.lock().unwrap().push(error.to_string());
            }
            done.rounds.fetch_add(1, Ordering::SeqCst);
            client.env.sleep(Duration::from_millis(700)).await;
        }
    }));
}

#[test]
fn programs_see_a_restart_of_ten_seconds_as_a_pause() {
    (0..2).for_each(|seed| programs_see_no_error(80 + seed, RESTART, Limits::default().server_wait));
}

#[test]
fn programs_that_wait_for_ever_see_a_long_outage_as_a_pause() {
    programs_see_no_error(96, OUTAGE, Limits::FOR_EVER);
}

fn programs_see_no_error(seed: u64, outage: Duration, wait: Duration) {
    let cell = Cell::new(seed);
    cell.set_limits(|limits| limits.server_wait = wait);
    let (a, b) = (cell.client(1), cell.client(2));
    let done = Done::default();
    for program in 0..4 {
        start_program(if program < 2 { &a } else { &b }, program, &done);
    }
    cell.sim.run_for(Duration::from_millis(2000 + 73 * (seed % 16)));
    cell.sim.crash(cell.server);
    cell.sim.run_for(outage);
    let before = done.rounds.load(Ordering::SeqCst);
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(WORK);
    done.stop.store(true, Ordering::SeqCst);
    let after = done.rounds.load(Ordering::SeqCst);
    assert_eq!(*done.failed.lock().unwrap(), Vec::<String>::new(), "seed {seed}");
    assert!(before >= 4 && after >= before + 8, "seed {seed}: {before} {after}");
}

/// Result and duration of a read by a client that has nothing of the file cached.
fn ask(cell: &Cell, client: &Client, path: &'static str) -> (Result<Vec<u8>>, Duration) {
    let one = client.clone();
    cell.on(client, async move {
        let began = one.env.now();
        let answer = one.get(path).await;
        (answer, one.env.now().saturating_since(began))
    })
}

#[test]
fn a_server_that_stays_away_gives_errors_at_once_and_is_used_again_when_it_is_back() {
    let cell = Cell::new(90);
    let (a, b) = (cell.client(1), cell.client(2));
    let two = b.clone();
    cell.on(&b, async move {
        two.put("one", b"1").await.unwrap();
        two.put("two", b"2").await.unwrap();
    });
    let one = a.clone();
    cell.on(&a, async move { drop(one.names("").await.unwrap()) });
    cell.sim.crash(cell.server);
    let (answer, took) = ask(&cell, &a, "one");
    assert_eq!(answer.unwrap_err().kind, ErrorKind::ServerUnreachable);
    assert!((Duration::from_secs(14)..Duration::from_secs(17)).contains(&took), "{took:?}");
    for minutes in [0, 1, 30] {
        cell.sim.run_for(Duration::from_secs(60 * minutes));
        let (answer, took) = ask(&cell, &a, "two");
        assert_eq!(answer.unwrap_err().kind, ErrorKind::ServerUnreachable);
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(NOTICED);
    let (answer, took) = ask(&cell, &a, "one");
    assert_eq!(answer.unwrap(), b"1");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// However long a server was away, and however it was: it is used as soon as it is back, whatever was refused before.
#[test]
fn a_server_that_returns_is_used_within_two_seconds() {
    for seed in 0..12 {
        let cell = Cell::new(200 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let two = b.clone();
        cell.on(&b, async move { two.put("one", b"1").await.unwrap() });
        let one = a.clone();
        cell.on(&a, async move { drop(one.names("").await.unwrap()) });
        cell.sim.crash(cell.server);
        cell.sim.run_for(Duration::from_millis(300 * seed));
        ask(&cell, &a, "one").0.unwrap_err();
        for _ in 0..seed {
            cell.sim.run_for(Duration::from_millis(7_300));
            ask(&cell, &a, "one").0.unwrap_err();
        }
        cell.sim.restart(cell.server);
        cell.start_server();
        cell.sim.run_for(NOTICED);
        let (answer, took) = ask(&cell, &a, "one");
        assert_eq!(answer.unwrap(), b"1", "seed {seed}");
        assert!(took < Duration::from_millis(500), "seed {seed}: {took:?}");
    }
}

#[test]
fn a_client_configured_not_to_wait_fails_as_soon_as_a_server_is_silent() {
    let cell = Cell::new(94);
    cell.set_limits(|limits| limits.server_wait = Duration::ZERO);
    let (a, done) = (cell.client(1), Done::default());
    start_program(&a, 0, &done);
    cell.sim.run_for(Duration::from_secs(2));
    cell.sim.crash(cell.server);
    cell.sim.run_for(OUTAGE);
    assert!(!done.failed.lock().unwrap().is_empty());
}

#[test]
fn the_end_of_a_mount_waits_for_no_server_that_is_away() {
    let cell = Cell::new(91);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        for path in ["one", "two"] {
            let handle = one.open_new(path).await.unwrap();
            one.venus.write(handle, 0, Bytes::from_static(b"unsaved")).await.unwrap();
        }
    });
    cell.sim.crash(cell.server);
    let one = a.clone();
    let took = cell.on(&a, async move {
        let began = one.env.now();
        one.venus.shut_down().await.unwrap_err();
        one.env.now().saturating_since(began)
    });
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn a_volume_that_was_not_looked_up_before_is_found_when_the_location_service_is_back() {
    let cell = Cell::new(92);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move { one.mount("proj", "#proj.").await.map(|_| ()).unwrap() });
    cell.sim.crash(cell.server);
    let answer = Arc::new(Mutex::new(None));
    let (one, told) = (a.clone(), answer.clone());
    a.env.spawn(Box::pin(async move {
        let names = one.names("proj").await;
        *told.lock().unwrap() = Some(names);
    }));
    cell.sim.run_for(RESTART);
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(WORK);
    assert_eq!(answer.lock().unwrap().take().unwrap().unwrap(), [".", ".."]);
}

/// The file server is reachable and returns the text of the mount point; the location of its volume was not queried
/// before.
#[test]
fn an_unreachable_location_service_is_waited_for_like_a_file_server() {
    let cell = Fakes::new(95, 1, 1);
    let target = Image::new(1).with("file", b"of the other volume");
    let image = Image::new(1).with_link("other", b"#other.", Mode(0o644));
    for (volume, image) in [(RW, image), (VolumeId(3000), target)] {
        cell.servers[0].host(volume, &Arc::new(Mutex::new(image)), true);
    }
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    cell.locate_alone("other", VolumeId(3000), 0);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move { assert_eq!(one.names("").await.unwrap(), [".", "..", "other"]) });
    cell.sim.crash(cell.locations[0]);
    let answer = Arc::new(Mutex::new(None));
    let (one, told) = (a.clone(), answer.clone());
    a.env.spawn(Box::pin(async move {
        let found = one.get("other/file").await;
        *told.lock().unwrap() = Some(found);
    }));
    cell.sim.run_for(RESTART);
    assert!(answer.lock().unwrap().is_none(), "it waits");
    cell.restart_location(0);
    cell.sim.run_for(WORK);
    assert_eq!(answer.lock().unwrap().take().unwrap().unwrap(), b"of the other volume");
}

/// True if the process of that number is being killed.
static KILLED: AtomicBool = AtomicBool::new(false);
const VICTIM: u32 = 42;

#[test]
fn a_process_that_is_killed_waits_no_longer() {
    let cell = Cell::new(93);
    cell.set_limits(|limits| limits.server_wait = Limits::FOR_EVER);
    let a = cell.client(1);
    a.venus.set_kill_check(|pid| pid == VICTIM && KILLED.load(Ordering::SeqCst));
    let b = cell.client(2);
    let two = b.clone();
    cell.on(&b, async move {
        two.put("one", b"1").await.unwrap();
        two.put("two", b"2").await.unwrap();
    });
    let one = a.clone();
    cell.on(&a, async move { drop(one.names("").await.unwrap()) });
    cell.sim.crash(cell.server);
    let answers = [(VICTIM, "one"), (VICTIM + 1, "two")].map(|(pid, path)| {
        let (answer, told) = (Arc::new(Mutex::new(None)), a.clone());
        let kept = answer.clone();
        a.env.spawn(Box::pin(async move {
            let process = told.process(0, pid).await;
            *kept.lock().unwrap() = Some(process.find(path).await.map(drop));
        }));
        answer
    });
    let is_done = |n: usize| answers[n].lock().unwrap().is_some();
    cell.sim.run_for(Duration::from_secs(20));
    assert!(!is_done(0) && !is_done(1));
    KILLED.store(true, Ordering::SeqCst);
    cell.sim.run_for(Duration::from_secs(2));
    let refused = answers[0].lock().unwrap().take().unwrap().unwrap_err();
    assert_eq!((refused.kind, refused.errno()), (ErrorKind::Interrupted, 4), "{refused}");
    assert!(!is_done(1));
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(WORK);
    answers[1].lock().unwrap().take().unwrap().unwrap();
}

/// The servers of a volume are away: its mount point is shown at once, as a directory of which nothing else is known; and what is done
/// in it waits for them as anywhere.
#[test]
fn a_directory_with_a_mount_point_of_servers_that_are_away_is_listed_at_once() {
    let cell = Fakes::new(97, 2, 1);
    let target = Image::new(1).with("file", b"of the other volume");
    let image = Image::new(1).with_link("far", b"#far.", Mode(0o644)).with("near", b"here");
    cell.servers[0].host(RW, &Arc::new(Mutex::new(image)), true);
    cell.servers[1].host(VolumeId(3000), &Arc::new(Mutex::new(target)), true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    cell.locate_alone("far", VolumeId(3000), 1);
    let a = cell.client(1);
    cell.sim.crash(cell.servers[1].node);
    let one = a.clone();
    cell.on(&a, async move {
        for round in 0..3 {
            let began = one.env.now();
            assert_eq!(one.names("").await.unwrap(), [".", "..", "far", "near"]);
            for name in ["far", "near"] {
                let entry = one.venus.lookup(afs_venus::NodeId::ROOT, name.as_bytes()).await.unwrap();
                let is_directory = entry.attr.kind == afs_venus::Kind::Directory;
                assert_eq!(is_directory, name == "far");
                one.venus.getattr(entry.node).await.unwrap();
            }
            let took = one.env.now().saturating_since(began);
            let most = if round == 0 { Duration::from_secs(3) } else { Duration::from_millis(100) };
            assert!(took < most, "{took:?}");
        }
        let far = one.venus.lookup(afs_venus::NodeId::ROOT, b"far").await.unwrap();
        let error = one.venus.lookup(far.node, b"file").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ServerUnreachable, "{error}");
        one.venus.readdir(far.node, 0, 9).await.unwrap_err();
        assert_eq!(one.get("far/file").await.unwrap_err().kind, ErrorKind::ServerUnreachable);
    });
    cell.restart(1);
    cell.sim.run_for(NOTICED);
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.get("far/file").await.unwrap(), b"of the other volume");
        let far = one.venus.lookup(afs_venus::NodeId::ROOT, b"far").await.unwrap();
        assert_eq!(one.venus.lookup(far.node, b"file").await.unwrap().attr.size, 19);
    });
}

/// What a program does in a mount point that was not crossed goes on in the volume as soon as its server is back: the kernel is made to look
/// the path up again.
#[test]
fn what_is_done_in_a_mount_point_that_was_not_crossed_waits_for_its_servers() {
    let cell = Fakes::new(98, 2, 1);
    let target = Image::new(1).with("file", b"of the other volume");
    let image = Image::new(1).with_link("far", b"#far.", Mode(0o644));
    cell.servers[0].host(RW, &Arc::new(Mutex::new(image)), true);
    cell.servers[1].host(VolumeId(3000), &Arc::new(Mutex::new(target)), true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    cell.locate_alone("far", VolumeId(3000), 1);
    // Without a promise the root is asked for again.
    cell.servers[1].promise_for(0);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move { drop(one.get("far/file").await.unwrap()) });
    cell.sim.crash(cell.servers[1].node);
    let (answer, one) = (Arc::new(Mutex::new(None)), a.clone());
    let told = answer.clone();
    a.env.spawn(Box::pin(async move {
        let far = one.venus.lookup(afs_venus::NodeId::ROOT, b"far").await.unwrap();
        assert_eq!(far.attr.mode, Mode(0o555));
        let found = one.venus.lookup(far.node, b"file").await.map(drop);
        *told.lock().unwrap() = Some(found);
    }));
    cell.sim.run_for(RESTART);
    assert!(answer.lock().unwrap().is_none(), "it waits");
    cell.restart(1);
    cell.sim.run_for(NOTICED);
    let again = answer.lock().unwrap().take().unwrap().unwrap_err();
    assert_eq!(again.errno(), 116, "{again}");
    let one = a.clone();
    cell.on(&a, async move { assert_eq!(one.get("far/file").await.unwrap(), b"of the other volume") });
}
