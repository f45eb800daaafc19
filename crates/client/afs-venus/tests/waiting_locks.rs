//! Processes that wait for a lock of another one: who asked first gets it first, at once on the same machine, and by a
//! message of the server on another.
//!
//! The file is Alice's, in a directory where only she and Bob have rights; both use both machines.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::join_all;
use afs_sim::LinkConfig;
use afs_venus::{ErrorKind, HandleId, LockKind, LockRange, OpenFlags, Result};
use bytes::Bytes;
use common::{Cell, Client};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
/// The time that a datagram takes.
const TRIP: Duration = Duration::from_millis(10);

/// What happened, in order.
type Log = Arc<Mutex<Vec<(String, Duration)>>>;

/// A cell whose datagrams all take the same time, with two machines.
fn scene(seed: u64) -> (Cell, [Client; 2]) {
    let cell = Cell::by_calls(seed);
    cell.sim.set_link(LinkConfig { latency_min: TRIP, latency_max: TRIP, ..LinkConfig::default() });
    cell.users.add("alice", 11);
    cell.users.add("bob", 12);
    let machines = [cell.client(1), cell.client(2)];
    for machine in &machines {
        let here = machine.clone();
        cell.on(machine, async move {
            here.log_in(ALICE, "alice").await;
            here.log_in(BOB, "bob").await;
        });
    }
    let alice = machines[0].user(ALICE);
    cell.on(&machines[0], async move {
        alice.mkdir("home").await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rlidwk")]).await.unwrap();
        alice.put("home/file", b"0").await.unwrap();
    });
    (cell, machines)
}

/// A process that has the file open.
#[derive(Clone)]
struct Process {
    client: Client,
    handle: HandleId,
    number: u64,
    log: Log,
}

impl Process {
    async fn open(client: &Client, uid: u32, number: u64, log: &Log) -> Process {
        let client = client.process(uid, number as u32).await;
        let handle = client.open("home/file", OpenFlags::READ_WRITE).await.unwrap();
        Process { client, handle, number, log: log.clone() }
    }

    async fn lock(&self, kind: LockKind, wait: bool) -> Result<()> {
        let (number, whole) = (self.number, LockRange::WHOLE);
        let locked = self.client.venus.lock(self.handle, number, number as u32, whole, kind, wait).await;
        if locked.is_ok() {
            self.note(format!("{number} has it"));
        }
        locked
    }

    async fn unlock(&self) {
        self.note(format!("{} gives it", self.number));
        self.client.venus.unlock(self.handle, self.number, LockRange::WHOLE).await.unwrap();
    }

    fn note(&self, what: String) {
        let now = Duration::from_nanos(self.client.env.now().as_nanos());
        self.log.lock().unwrap().push((what, now));
    }

    /// Adds one to the number in the file, under the lock.
    async fn add(&self) {
        self.lock(LockKind::Write, true).await.unwrap();
        let read = self.client.venus.read(self.handle, 0, 20).await.unwrap();
        let number: u64 = std::str::from_utf8(&read).unwrap().parse().unwrap();
        let text = Bytes::from((number + 1).to_string());
        self.client.venus.write(self.handle, 0, text).await.unwrap();
        self.unlock().await;
    }
}

fn happened(log: &Log) -> Vec<String> {
    log.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
}

fn holders(happened: &[String]) -> Vec<&str> {
    happened.iter().filter_map(|what| what.strip_suffix(" has it")).collect()
}

/// The time from one event to another.
fn between(log: &Log, first: &str, second: &str) -> Duration {
    let log = log.lock().unwrap();
    let at = |what: &str| log.iter().find(|(noted, _)| noted == what).unwrap().1;
    at(second) - at(first)
}

#[test]
fn a_released_lock_goes_to_the_next_process_of_the_machine_at_once_and_without_a_call() {
    let (cell, [machine, _]) = scene(1);
    let (here, log) = (machine.clone(), Log::default());
    let seen = log.clone();
    let calls = cell.on(&machine, async move {
        let mut processes = Vec::new();
        for (number, uid) in (1..).zip([ALICE, ALICE, ALICE, BOB]) {
            processes.push(Process::open(&here, uid, number, &log).await);
        }
        processes[0].lock(LockKind::Write, true).await.unwrap();
        let mut waiting = Vec::new();
        for process in processes[1..].iter().cloned() {
            waiting.push(here.env.spawn_with_result(async move {
                process.lock(LockKind::Write, true).await.unwrap();
                process.client.env.sleep(TRIP / 10).await;
                process.unlock().await;
            }));
            here.env.sleep(TRIP * 100).await;
        }
        let before = here.venus.counters();
        processes[0].unlock().await;
        join_all(waiting).await;
        here.calls_since(&before)
    });
    let expected = [
        "1 has it",
        "1 gives it",
        "2 has it",
        "2 gives it",
        "3 has it",
        "3 gives it",
        "4 has it",
        "4 gives it",
    ];
    assert_eq!(happened(&seen), expected);
    for (gives, has) in [("1 gives it", "2 has it"), ("2 gives it", "3 has it")] {
        assert_eq!(between(&seen, gives, has), Duration::ZERO, "{gives}, {has}");
    }
    assert!(
        calls.contains(&"ReleaseLock 2".into()) && calls.contains(&"SetLock 1".into()),
        "another user: {calls:?}"
    );
}

#[test]
fn a_released_lock_reaches_another_machine_in_three_round_trips_in_the_order_of_asking() {
    let (cell, machines) = scene(2);
    let log = Log::default();
    let [one, other] = machines.clone();
    let seen = log.clone();
    cell.on(&machines[0], async move {
        let holder = Process::open(&one, ALICE, 1, &log).await;
        let waiters = [Process::open(&other, BOB, 2, &log).await, Process::open(&one, BOB, 3, &log).await];
        let last = Process::open(&other, ALICE, 4, &log).await;
        holder.lock(LockKind::Write, true).await.unwrap();
        let mut waiting = Vec::new();
        for process in waiters.into_iter().chain([last]) {
            let env = process.client.env.clone();
            waiting.push(env.spawn_with_result(async move {
                process.lock(LockKind::Write, true).await.unwrap();
                process.client.env.sleep(TRIP).await;
                process.unlock().await;
            }));
            one.env.sleep(TRIP * 20).await;
        }
        holder.unlock().await;
        join_all(waiting).await;
    });
    assert_eq!(holders(&happened(&seen)), ["1", "2", "3", "4"]);
    for (gives, has) in [("1 gives it", "2 has it"), ("2 gives it", "3 has it"), ("3 gives it", "4 has it")] {
        let took = between(&seen, gives, has);
        // Six trips, and what both ends do in between.
        assert!(took < TRIP * 7, "{gives}, {has}: {took:?}");
    }
}

#[test]
fn a_waiter_who_gives_up_is_passed_over_here_and_on_another_machine() {
    let (cell, machines) = scene(3);
    let log = Log::default();
    let [one, other] = machines.clone();
    for machine in &machines {
        // The processes with even numbers get a signal.
        machine.venus.set_signal_check(|pid| pid % 2 == 0);
    }
    let seen = log.clone();
    cell.on(&machines[0], async move {
        let holder = Process::open(&one, ALICE, 1, &log).await;
        holder.lock(LockKind::Write, true).await.unwrap();
        let mut waiting = Vec::new();
        for (number, machine) in [(2, &one), (4, &other), (5, &one), (7, &other)] {
            let process = Process::open(machine, BOB, number, &log).await;
            let env = process.client.env.clone();
            waiting.push(env.spawn_with_result(async move {
                match process.lock(LockKind::Write, true).await {
                    Ok(()) => process.unlock().await,
                    Err(error) => {
                        assert_eq!(error.kind, ErrorKind::Interrupted);
                        process.note(format!("{number} gives up"));
                    }
                }
            }));
        }
        one.env.sleep(TRIP * 100).await;
        holder.unlock().await;
        join_all(waiting).await;
    });
    let happened = happened(&seen);
    let mut holders = holders(&happened);
    holders.sort_unstable();
    assert_eq!(holders, ["1", "5", "7"], "{happened:?}");
    assert_eq!(happened.iter().filter(|what| what.ends_with("gives up")).count(), 2);
}

#[test]
fn readers_get_a_released_lock_together() {
    let (cell, machines) = scene(4);
    let log = Log::default();
    let [one, other] = machines.clone();
    let seen = log.clone();
    cell.on(&machines[0], async move {
        let holder = Process::open(&one, ALICE, 1, &log).await;
        holder.lock(LockKind::Write, true).await.unwrap();
        let mut waiting = Vec::new();
        for (number, machine) in [(2, &one), (3, &one), (4, &other)] {
            let process = Process::open(machine, BOB, number, &log).await;
            let env = process.client.env.clone();
            waiting.push(env.spawn_with_result(async move {
                process.lock(LockKind::Read, true).await.unwrap();
                process.client.env.sleep(TRIP * 50).await;
                process.unlock().await;
            }));
        }
        one.env.sleep(TRIP * 100).await;
        holder.unlock().await;
        join_all(waiting).await;
    });
    let happened = happened(&seen);
    let first_release = happened.iter().position(|what| what == "2 gives it").unwrap();
    for has in ["2 has it", "3 has it"] {
        assert!(happened.iter().position(|what| what == has).unwrap() < first_release, "{happened:?}");
    }
}

/// Each unlock stores what was changed under the lock, also where the lock stays on the machine.
#[test]
fn processes_of_two_machines_that_take_turns_lose_no_change() {
    const EACH: u64 = 6;
    for seed in 10..12 {
        let (cell, machines) = scene(seed);
        let both = machines.clone();
        let read = cell.on(&machines[0], async move {
            let log = Log::default();
            let mut working = Vec::new();
            for number in 1..=6 {
                let uid = if number % 3 == 0 { BOB } else { ALICE };
                let process = Process::open(&both[number as usize % 2], uid, number, &log).await;
                let env = process.client.env.clone();
                working.push(env.spawn_with_result(async move {
                    for _ in 0..EACH {
                        process.add().await;
                    }
                    process.client.venus.flush(process.handle, process.number).await.unwrap();
                    process.client.venus.release(process.handle).await.unwrap();
                }));
            }
            join_all(working).await;
            both[1].user(BOB).get("home/file").await.unwrap()
        });
        assert_eq!(read, (6 * EACH).to_string().into_bytes(), "seed {seed}");
    }
}

/// Three processes and two files: 1 waits for 2, 2 waits for 3, and 3 would wait for 1.
#[test]
fn who_would_wait_in_a_circle_of_this_machine_is_told_at_once() {
    let (cell, [machine, _]) = scene(6);
    let here = machine.clone();
    cell.on(&machine, async move {
        here.user(ALICE).put("home/other", b"0").await.unwrap();
        let bytes = |first| LockRange { first, last: first };
        let (file, other) = ("home/file", "home/other");
        let mut processes = Vec::new();
        for number in 1..=4u64 {
            let client = here.process(ALICE, number as u32).await;
            let handles = [file, other].map(|name| client.open(name, OpenFlags::READ_WRITE));
            processes.push((number, client.clone(), join_all(handles).await));
        }
        let lock = |at: usize, of: usize, first, wait| {
            let (number, client, handles) = processes[at - 1].clone();
            let handle = *handles[of].as_ref().unwrap();
            async move {
                let venus = &client.venus;
                venus.lock(handle, number, number as u32, bytes(first), LockKind::Write, wait).await
            }
        };
        lock(1, 0, 1, true).await.unwrap();
        lock(2, 0, 2, true).await.unwrap();
        lock(3, 1, 0, true).await.unwrap();
        let first = here.env.spawn_with_result(lock(1, 0, 2, true));
        here.env.sleep(TRIP).await;
        let second = here.env.spawn_with_result(lock(2, 1, 0, true));
        here.env.sleep(TRIP).await;
        // A process outside of the circle waits, and so does one of the circle for what nobody in it holds.
        let outside = here.env.spawn_with_result(lock(4, 0, 1, true));
        here.env.sleep(TRIP).await;
        let before = here.env.now();
        assert_eq!(lock(3, 0, 1, true).await.map_err(|error| error.kind), Err(ErrorKind::Deadlock));
        assert_eq!(here.env.now(), before);
        assert_eq!(lock(3, 0, 1, false).await.map_err(|error| error.kind), Err(ErrorKind::WouldBlock));
        // The third gives up what it has, and all of them go on.
        let unlock = |at: usize, of: usize| {
            let (number, client, handles) = processes[at - 1].clone();
            let handle = *handles[of].as_ref().unwrap();
            async move { client.venus.unlock(handle, number, LockRange::WHOLE).await.unwrap() }
        };
        unlock(3, 1).await;
        second.await.unwrap().unwrap();
        unlock(2, 0).await;
        first.await.unwrap().unwrap();
        unlock(1, 0).await;
        outside.await.unwrap().unwrap();
        // What is over counts no more: the first may wait for the third again.
        lock(3, 0, 7, true).await.unwrap();
        let again = here.env.spawn_with_result(lock(1, 0, 7, true));
        here.env.sleep(TRIP).await;
        unlock(3, 0).await;
        again.await.unwrap().unwrap();
    });
}
