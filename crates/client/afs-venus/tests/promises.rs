//! Promises at the limits of the tables that hold them.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_wire::vl::SiteFlags;
use common::fakes::{Fakes, Image, RW};
use common::{Cell, Client};

/// Number of files, three times as many as the status cache holds.
const FILES: usize = 300;

/// Looks files up, one after the other, until promises were given back twice, and then half as many files as the status
/// cache holds: some of the objects given back are in use again by then. Returns the last file.
async fn look_up_until_promises_are_given_back(client: Client) -> usize {
    let (mut left, mut n) = (None, 0);
    while left != Some(0) {
        client.find(&format!("file{}", n % FILES)).await.unwrap();
        client.env.sleep(Duration::from_millis(1)).await;
        n += 1;
        left = match left {
            Some(left) => Some(left - 1),
            None => (client.calls("GiveUpCallBacks") > 1).then_some(50),
        };
    }
    client.env.sleep(Duration::from_secs(2)).await;
    (n - 1) % FILES
}

async fn rewrite_all(client: Client) {
    for n in 0..FILES {
        client.put(&format!("file{n}"), b"new and longer").await.unwrap();
    }
}

/// Files that still have their old length. `last` was looked up last; the most recent ones, which are cached, come
/// first.
async fn files_of_old_length(client: Client, last: usize) -> Vec<usize> {
    let mut stale = Vec::new();
    for n in (0..FILES).map(|back| (last + FILES - back) % FILES) {
        let found = client.find(&format!("file{n}")).await.unwrap();
        stale.extend((found.attr.size == 3).then_some(n));
    }
    stale
}

#[test]
fn a_promise_obtained_while_the_old_one_is_given_back_is_not_relied_on() {
    for seed in 0..4 {
        let cell = Cell::new(seed);
        let delay = Duration::from_millis(15 + seed);
        cell.sim.set_link(afs_sim::LinkConfig {
            latency_min: delay,
            latency_max: delay,
            ..Default::default()
        });
        cell.set_limits(|limits| {
            limits.statuses_max = 100;
            limits.maintenance = Duration::from_secs(3);
        });
        let (a, b) = (cell.client(1), cell.client(2));
        let two = b.clone();
        cell.on(&b, async move {
            for n in 0..FILES {
                two.put(&format!("file{n}"), b"old").await.unwrap();
            }
        });
        let last = cell.on(&a, look_up_until_promises_are_given_back(a.clone()));
        cell.on(&b, rewrite_all(b.clone()));
        let stale = cell.on(&a, files_of_old_length(a.clone(), last));
        assert!(stale.is_empty(), "seed {seed}: {stale:?} are shown as they were");
    }
}

/// The same with a server that ends all promises on the objects that the call names, including those granted a moment
/// ago.
#[test]
fn promises_that_a_server_ends_with_given_up_ones_are_void() {
    let mut cell = Fakes::new(12, 1, 1);
    cell.set_limits(|limits| {
        limits.statuses_max = 100;
        limits.maintenance = Duration::from_secs(3);
    });
    let with = |image: Image, n| image.with(&format!("file{n}"), b"old");
    let image = Arc::new(Mutex::new((0..FILES).fold(Image::new(1), with)));
    cell.servers[0].host(RW, &image, true);
    cell.servers[0].delay_give_up(Duration::from_secs(5));
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..FILES {
            one.find(&format!("file{n}")).await.unwrap();
        }
        while one.calls("GiveUpCallBacks") == 0 {
            one.env.sleep(Duration::from_millis(100)).await;
        }
        // The oldest ones, which the call in progress names.
        for n in 0..50 {
            one.find(&format!("file{n}")).await.unwrap();
        }
        assert_eq!(one.calls("GiveUpCallBacks"), 1, "the call has been answered before");
        one.env.sleep(Duration::from_secs(60)).await;
    });
    cell.on(&b, rewrite_all(b.clone()));
    let stale = cell.on(&a, files_of_old_length(a.clone(), 49));
    assert!(stale.is_empty(), "{stale:?} are shown as they were");
}

/// A machine that could not receive a break is resumed, and its clock shows that time has passed.
#[test]
fn after_a_jump_of_a_clock_nothing_is_relied_on_that_was_promised_before() {
    let cell = Cell::new(9);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"old").await.unwrap();
        one.get("file").await.unwrap();
    });
    let (world, two) = (cell.sim.world(), b.clone());
    for (from, to) in [(cell.server, a.node), (a.node, cell.server)] {
        world.cut(from, to);
    }
    cell.on(&b, async move { two.put("file", b"changed").await.unwrap() });
    for (from, to) in [(cell.server, a.node), (a.node, cell.server)] {
        world.mend(from, to);
    }
    a.invalidated.take();
    world.jump_wall(a.node, Duration::from_secs(600), true);
    // The clocks are read once in this time.
    cell.sim.run_for(Duration::from_secs(16));
    assert!(!a.invalidated.take().is_empty());
    let one = a.clone();
    assert_eq!(cell.on(&a, async move { one.get("file").await.unwrap() }), b"changed");
}

/// A call to the callback service of a machine from another one, without authentication.
fn call_from_another_machine<R: afs_wire::rpc::Request + Clone>(
    cell: &Cell,
    (of, from): (&Client, &Client),
    request: R,
) -> Result<R::Reply, afs_rpc::CallError> {
    use std::net::SocketAddr;
    let at = |last, port| SocketAddr::new(std::net::IpAddr::from([10, 0, 0, last]), port);
    assert_eq!((cell.sim.name(of.node), cell.sim.name(from.node)), ("client1".into(), "client2".into()));
    let rx = cell.sim.rx(from.node, from.env.clone(), at(12, 9999), Default::default(), Default::default());
    cell.on(from, async move {
        let service = afs_wire::rpc::ServiceId::CALLBACK;
        rx.connection(at(11, 7001), service, afs_rpc::Security::null()).call(&request).await
    })
}

#[test]
fn entries_of_the_cache_are_not_shown_to_other_machines() {
    let cell = Cell::new(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move { one.put("file", b"x").await.unwrap() });
    let wide = call_from_another_machine(&cell, (&a, &b), afs_wire::cb::GetCe64 { index: 0 });
    assert_eq!(wide.unwrap_err().abort_code(), Some(afs_wire::error::AbortCode(1)));
}

#[test]
fn a_list_that_names_one_volume_many_times_is_one_break() {
    let cell = Cell::new(11);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move { one.put("file", b"x").await.unwrap() });
    let before = a.venus.counters().promises_broken;
    let volume = afs_wire::ids::Fid::whole_volume(cell.volume(common::ROOT));
    let fids = afs_wire::xdr::BoundedVec::first_of([volume; 50]);
    let list = afs_wire::cb::CallBack { fids, callbacks: afs_wire::xdr::BoundedVec::new() };
    call_from_another_machine(&cell, (&a, &b), list).unwrap();
    assert_eq!(a.venus.counters().promises_broken, before + 1);
    let one = a.clone();
    assert_eq!(cell.on(&a, async move { one.get("file").await.unwrap() }), b"x");
}
