//! A server that is restarted while programs use it, and one that stays unreachable.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{ErrorKind, LockKind, LockRange, OpenFlags, Result};
use afs_wire::ids::{Mode, VolumeId};
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::fakes::{Fakes, Image, RW};
use common::{Cell, Client, pattern};

/// Longer than an ordinary restart takes.
const RESTART: Duration = Duration::from_secs(30);
/// Time after which a reachable server is used again.
const NOTICED: Duration = Duration::from_secs(10);

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
fn programs_see_a_restart_of_half_a_minute_as_a_pause() {
    for seed in 0..3 {
        let cell = Cell::new(80 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let done = Done::default();
        for program in 0..4 {
            start_program(if program < 2 { &a } else { &b }, program, &done);
        }
        cell.sim.run_for(Duration::from_millis(2000 + 73 * seed));
        cell.sim.crash(cell.server);
        cell.sim.run_for(RESTART);
        let before = done.rounds.load(Ordering::SeqCst);
        cell.sim.restart(cell.server);
        cell.start_server();
        cell.sim.run_for(NOTICED);
        done.stop.store(true, Ordering::SeqCst);
        let after = done.rounds.load(Ordering::SeqCst);
        assert_eq!(*done.failed.lock().unwrap(), Vec::<String>::new(), "seed {seed}");
        assert!(before >= 4 && after >= before + 8, "seed {seed}: {before} {after}");
    }
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
    assert!((Duration::from_secs(40)..Duration::from_secs(61)).contains(&took), "{took:?}");
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

#[test]
fn a_client_configured_not_to_wait_fails_as_soon_as_a_server_is_silent() {
    let cell = Cell::new(94);
    cell.set_limits(|limits| limits.unreachable_wait_max = Duration::ZERO);
    let (a, done) = (cell.client(1), Done::default());
    start_program(&a, 0, &done);
    cell.sim.run_for(Duration::from_secs(2));
    cell.sim.crash(cell.server);
    cell.sim.run_for(RESTART);
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
    cell.sim.run_for(NOTICED);
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
    cell.sim.run_for(NOTICED);
    assert_eq!(answer.lock().unwrap().take().unwrap().unwrap(), b"of the other volume");
}

/// True if the process of that number is being killed.
static KILLED: AtomicBool = AtomicBool::new(false);
const VICTIM: u32 = 42;

#[test]
fn a_process_that_is_killed_waits_no_longer() {
    let cell = Cell::new(93);
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
    cell.sim.run_for(NOTICED);
    answers[1].lock().unwrap().take().unwrap().unwrap();
}
