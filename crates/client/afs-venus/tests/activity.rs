//! Activity of a mount: what it tells of its caches, servers and calls.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::join;
use common::{Cell, Client, pattern};

/// A cell, and a client that has written a file and read it.
fn used(seed: u64) -> (Cell, Client) {
    let cell = Cell::new(seed);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", &pattern(5000, 1)).await.unwrap();
        drop(one.get("file").await.unwrap());
    });
    (cell, a)
}

#[test]
fn counts_caches_and_the_calls_to_a_server_are_told_without_a_call() {
    let (_cell, a) = used(1);
    let before = a.venus.counters();
    let told = a.venus.activity();
    assert_eq!(a.calls_since(&before), [""; 0]);
    assert_eq!((told.counts.stored_bytes, told.counts.calls), (5000, before.calls_total()));
    assert!(told.cache.used_bytes >= 5000 && told.cache.limit_bytes > told.cache.used_bytes, "{told:?}");
    let [server] = &told.servers[..] else { panic!("{:?}", told.servers) };
    assert_eq!(server.addresses, ["10.0.0.1:7000"]);
    assert!(server.calls > 3 && server.calls_micros > 0, "{server:?}");
    assert!(server.unreachable_seconds.is_none() && server.round_trip_micros.is_some());
    assert!(told.in_progress.is_empty());
    let slow: Vec<u64> = told.slowest.iter().map(|call| call.micros).collect();
    assert!(!slow.is_empty() && slow.is_sorted_by(|a, b| a >= b), "{slow:?}");
}

#[test]
fn a_call_to_a_server_that_does_not_answer_is_in_progress_and_then_the_slowest() {
    let (cell, a) = used(2);
    let one = a.clone();
    cell.on(&a, async move { one.put("dir-entry", b"").await.unwrap() });
    cell.sim.crash(cell.server);
    let (one, other) = (a.clone(), a.clone());
    cell.on(&a, async move {
        let waiting = async { drop(one.put("new", b"x").await.unwrap_err()) };
        let watching = async {
            other.env.sleep(Duration::from_secs(3)).await;
            let told = other.venus.activity();
            assert_eq!(told.in_progress.len(), 1, "{:?}", told.in_progress);
            assert!(told.in_progress[0].micros >= 2_000_000, "{:?}", told.in_progress);
        };
        join(waiting, watching).await;
    });
    let told = a.venus.activity();
    assert!(told.in_progress.is_empty());
    assert!(told.slowest[0].has_failed && told.slowest[0].micros > 5_000_000, "{:?}", told.slowest);
    assert!(told.servers[0].failed_calls > 0 && told.servers[0].unreachable_seconds.is_some());
}

#[test]
fn a_check_of_servers_finds_one_that_is_back_and_takes_bounded_time_for_one_that_is_not() {
    let (cell, a) = used(3);
    cell.sim.crash(cell.server);
    let one = a.clone();
    cell.on(&a, async move { drop(one.put("new", b"x").await.unwrap_err()) });
    let check = || {
        let one = a.clone();
        cell.on(&a, async move {
            let begun = one.env.now();
            one.venus.check_servers().await;
            one.env.now().saturating_since(begun)
        })
    };
    let took = check();
    assert!(took <= Duration::from_secs(7), "{took:?}");
    // The mount's own probes are far apart by now.
    cell.sim.run_for(Duration::from_secs(300));
    cell.restart_server();
    let is_unreachable = || a.venus.activity().servers[0].unreachable_seconds.is_some();
    assert!(is_unreachable());
    check();
    assert!(!is_unreachable());
}
