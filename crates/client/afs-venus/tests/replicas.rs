//! A read-only volume at several sites: choice of the site, and fallback when it does not reply.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_sim::LinkConfig;
use afs_venus::OpenFlags;
use afs_wire::error::AbortCode;
use afs_wire::vl::SiteFlags;
use common::fakes::{Fakes, Image, RO, RW, Shared};
use common::{Client, pattern};

const MASTER: SiteFlags = SiteFlags::RW_VOLUME;
const REPLICA: SiteFlags = SiteFlags::RO_VOLUME;
/// Larger than what is fetched by an open.
const LARGE: usize = 1 << 20;

/// A cell whose servers all have the read-only volume; the first has the read-write one too.
fn cell(seed: u64, sites: u8) -> (Fakes, Image) {
    let cell = Fakes::new(seed, sites, 1);
    let image = Image::new(100)
        .with("small", b"as of the first release")
        .with("other", b"never changes")
        .with("large", &pattern(LARGE, 1));
    let mut located = vec![(0, MASTER)];
    for (n, server) in cell.servers.iter().enumerate() {
        server.host(RO, &shared(&image), false);
        located.push((n, REPLICA));
    }
    cell.servers[0].host(RW, &shared(&image), true);
    cell.locate(&located);
    (cell, image)
}

fn shared(image: &Image) -> Shared {
    Arc::new(Mutex::new(image.clone()))
}

fn get(cell: &Fakes, client: &Client, path: &'static str) -> Vec<u8> {
    let one = client.clone();
    cell.on(client, async move { one.get(path).await.unwrap() })
}

/// The server to which the client's data calls go now.
fn asked(cell: &Fakes, client: &Client) -> usize {
    let before: Vec<u64> = cell.servers.iter().map(|server| server.calls("FetchData")).collect();
    let one = client.clone();
    cell.on(client, async move {
        let node = one.find("other").await.unwrap().node;
        one.venus.set_property(node, b"afs.flush", b"file").await.unwrap();
        one.get("other").await.unwrap();
    });
    let now = cell.servers.iter().map(|server| server.calls("FetchData"));
    let more: Vec<usize> = now.zip(before).enumerate().filter(|(_, (a, b))| a > b).map(|(n, _)| n).collect();
    assert_eq!(more.len(), 1, "{more:?}");
    more[0]
}

fn distance(cell: &Fakes, client: &Client, server: usize, millis: u64) {
    let latency = Duration::from_millis(millis);
    let link =
        LinkConfig { latency_min: latency, latency_max: latency + latency / 10, ..LinkConfig::default() };
    cell.sim.set_link_between(client.node, cell.servers[server].node, link);
    cell.sim.set_link_between(cell.servers[server].node, client.node, link);
}

/// OpenAFS's `fs setserverprefs` of an administrator who knows more than the measured distance.
#[test]
fn a_given_rank_counts_before_the_distance_and_a_silent_site_is_passed_over() {
    let (cell, _) = cell(9, 3);
    let a = cell.client(1);
    for (server, millis) in [(0, 40), (1, 15), (2, 3)] {
        distance(&cell, &a, server, millis);
    }
    cell.sim.run_for(Duration::from_secs(300));
    assert_eq!(asked(&cell, &a), 2);
    let rank = |server: usize, rank| a.venus.set_ranks(&[(cell.servers[server].address.into(), rank)]);
    rank(0, Some(5000)).unwrap();
    assert_eq!(asked(&cell, &a), 0);
    rank(1, Some(4999)).unwrap();
    assert_eq!(asked(&cell, &a), 1);
    cell.sim.crash(cell.servers[1].node);
    assert_eq!(asked(&cell, &a), 0, "a silent site");
    rank(0, Some(40_000)).unwrap();
    assert_eq!(asked(&cell, &a), 2, "behind one without a rank");
    rank(0, None).unwrap();
    rank(2, Some(60_000)).unwrap();
    assert_eq!(asked(&cell, &a), 0);
    assert!(rank(0, Some(0)).is_err());
    let told = a.venus.activity().servers;
    let of = |server: usize| {
        let address = format!("{}:7000", cell.servers[server].address);
        told.iter().find(|it| it.addresses == [address.clone()]).unwrap().ranks[0]
    };
    assert_eq!([of(0), of(1), of(2)], [None, Some(4999), Some(60_000)]);
}

#[test]
fn the_nearest_site_is_asked_and_the_next_when_that_changes() {
    let (cell, _) = cell(1, 3);
    let a = cell.client(1);
    for (server, millis) in [(0, 40), (1, 15), (2, 3)] {
        distance(&cell, &a, server, millis);
    }
    cell.sim.run_for(Duration::from_secs(300));
    assert_eq!(asked(&cell, &a), 2);
    distance(&cell, &a, 2, 120);
    cell.sim.run_for(Duration::from_secs(1800));
    asked(&cell, &a);
    assert_eq!(asked(&cell, &a), 1);
}

#[test]
fn clients_spread_over_sites_that_are_equally_near() {
    let (cell, _) = cell(2, 3);
    let mut used = [0; 3];
    for number in 0..24 {
        let a = cell.client(number);
        used[asked(&cell, &a)] += 1;
    }
    assert!(used.iter().all(|n| *n > 1), "{used:?}");
}

#[test]
fn a_site_that_dies_in_the_middle_of_a_file_costs_no_error_and_little_time() {
    for seed in 0..8 {
        let (cell, _) = cell(10 + seed, 3);
        let a = cell.client(1);
        let dying = asked(&cell, &a);
        let one = a.clone();
        let begun = cell.on(&a, async move {
            let handle = one.open("large", OpenFlags::READ).await.unwrap();
            let mut data = Vec::new();
            while data.len() < LARGE / 3 {
                data.extend(one.venus.read(handle, data.len() as u64, 128 << 10).await.unwrap());
            }
            (handle, data)
        });
        cell.sim.crash(cell.servers[dying].node);
        let one = a.clone();
        let took = cell.on(&a, async move {
            let began = one.env.now();
            let (handle, mut data) = begun;
            while data.len() < LARGE {
                data.extend(one.venus.read(handle, data.len() as u64, 128 << 10).await.unwrap());
            }
            assert!(data == pattern(LARGE, 1));
            one.env.now().saturating_since(began)
        });
        assert!(took < Duration::from_secs(4), "{took:?}");
        assert_ne!(asked(&cell, &a), dying);
        // Reachable again, it is not the first choice at once.
        cell.restart(dying);
        cell.sim.run_for(Duration::from_secs(60));
        assert_ne!(asked(&cell, &a), dying);
    }
}

/// What a program does with a path.
#[derive(Clone, Copy, Debug)]
enum Use {
    Read(&'static str),
    Stat(&'static str),
    List,
}

async fn use_once(client: Client, what: Use) {
    match what {
        Use::Read(path) => drop(client.get(path).await.unwrap()),
        Use::Stat(path) => drop(client.find(path).await.unwrap()),
        Use::List => drop(client.names("").await.unwrap()),
    }
}

#[test]
fn a_site_that_falls_silent_costs_the_first_use_two_seconds_and_later_ones_nothing() {
    for (seed, what) in
        [Use::Read("small"), Use::Read("large"), Use::Stat("other"), Use::List].into_iter().enumerate()
    {
        let (cell, _) = cell(80 + seed as u64, 3);
        let a = cell.client(1);
        let silent = asked(&cell, &a);
        let one = a.clone();
        cell.on(&a, async move {
            one.venus.set_property(afs_venus::NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        });
        cell.sim.crash(cell.servers[silent].node);
        let timed = || {
            let one = a.clone();
            cell.on(&a, async move {
                let began = one.env.now();
                use_once(one.clone(), what).await;
                one.env.now().saturating_since(began)
            })
        };
        let first = timed();
        assert!(first <= Duration::from_secs(2), "{what:?}: {first:?}");
        let one = a.clone();
        cell.on(&a, async move {
            one.venus.set_property(afs_venus::NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        });
        let later = timed();
        assert!(later < Duration::from_millis(200), "{what:?}: {later:?}");
    }
}

#[test]
fn a_site_that_cannot_serve_is_passed_by_without_waiting() {
    for (seed, code) in [
        AbortCode::VOFFLINE,
        AbortCode::VBUSY,
        AbortCode::VNOVOL,
        AbortCode::VRESTARTING,
        AbortCode::VSALVAGE,
        AbortCode::VSALVAGING,
        AbortCode::VNOSERVICE,
    ]
    .into_iter()
    .enumerate()
    {
        let (cell, _) = cell(20 + seed as u64, 2);
        let a = cell.client(1);
        let first = asked(&cell, &a);
        cell.servers[first].refuse(RO, Some(code));
        let one = a.clone();
        cell.on(&a, async move {
            let began = one.env.now();
            assert_eq!(one.get("large").await.unwrap().len(), LARGE);
            let took = one.env.now().saturating_since(began);
            assert!(took < Duration::from_secs(1), "{code}: {took:?}");
        });
    }
}

#[test]
fn when_no_site_can_serve_for_a_while_it_is_waited_for() {
    for (seed, code) in [AbortCode::VOFFLINE, AbortCode::VBUSY].into_iter().enumerate() {
        let (cell, _) = cell(30 + seed as u64, 2);
        let a = cell.client(1);
        cell.servers[0].refuse(RO, Some(code));
        cell.sim.crash(cell.servers[1].node);
        let (env, server) = (a.env.clone(), cell.servers[0].clone());
        a.env.spawn(Box::pin(async move {
            afs_rpc::EnvExt::sleep(&*env, Duration::from_secs(9)).await;
            server.refuse(RO, None);
        }));
        assert_eq!(get(&cell, &a, "large").len(), LARGE);
    }
}

#[test]
fn sites_that_were_not_released_to_are_not_asked() {
    let (cell, _) = cell(40, 3);
    cell.locate(&[
        (0, MASTER),
        (0, REPLICA | SiteFlags::DONT_USE),
        (1, REPLICA | SiteFlags::NEW_REPSITE),
        (2, REPLICA),
    ]);
    for number in 0..6 {
        let a = cell.client(number);
        assert_eq!(asked(&cell, &a), 1);
    }
}

/// The steps of a release: each site in turn is off line, gets the new contents and breaks promises; the location entry
/// is updated after each.
#[test]
fn a_release_under_readers_is_seen_without_an_error() {
    for seed in 50..53 {
        let (cell, old) = cell(seed, 3);
        let new = old.released(&[("small", b"as of the second".to_vec()), ("large", pattern(LARGE, 2))]);
        let (a, b) = (cell.client(1), cell.client(2));
        let one = a.clone();
        let open = cell.on(&a, async move {
            one.get("other").await.unwrap();
            one.open("small", OpenFlags::READ).await.unwrap()
        });
        let stop = Arc::new(Mutex::new(false));
        for client in [a.clone(), b.clone()] {
            let stop = stop.clone();
            client.env.clone().spawn(Box::pin(async move {
                while !*stop.lock().unwrap() {
                    let small = client.get("small").await.unwrap();
                    let versions = [&b"as of the first release"[..], b"as of the second"];
                    assert!(versions.contains(&&*small), "{}", small.escape_ascii());
                    let large = client.get("large").await.unwrap();
                    assert_eq!(large.len(), LARGE);
                    afs_rpc::EnvExt::sleep(&*client.env, Duration::from_millis(150)).await;
                }
            }));
        }
        for released in 0..3 {
            let server = cell.servers[released].clone();
            server.refuse(RO, Some(AbortCode::VOFFLINE));
            cell.sim.run_for(Duration::from_millis(700));
            server.host(RO, &shared(&new), false);
            let breaking = server.clone();
            let node = server.node;
            cell.sim.block_on(node, common::LIMIT, async move { breaking.break_volume(RO).await }).unwrap();
            let flags = |n| if n <= released { REPLICA | SiteFlags::NEW_REPSITE } else { REPLICA };
            cell.locate(&[(0, MASTER), (0, flags(0)), (1, flags(1)), (2, flags(2))]);
            cell.sim.run_for(Duration::from_millis(300));
        }
        cell.locate(&[(0, MASTER), (0, REPLICA), (1, REPLICA), (2, REPLICA)]);
        *stop.lock().unwrap() = true;
        cell.sim.run_for(Duration::from_secs(30));
        for client in [&a, &b] {
            assert_eq!(get(&cell, client, "small"), b"as of the second");
            assert!(get(&cell, client, "large") == pattern(LARGE, 2));
        }
        // A handle opened before continues with its version; unchanged data was not fetched again.
        let one = a.clone();
        cell.on(&a, async move {
            assert_eq!(one.read_all(open).await.unwrap(), b"as of the first release");
            let before = one.venus.counters();
            assert_eq!(one.get("other").await.unwrap(), b"never changes");
            let calls = one.calls_since(&before);
            assert!(!calls.iter().any(|call| call.starts_with("FetchData")), "{calls:?}");
        });
    }
}

/// A server of another kind gives two releases of one second the same creation time: its break tells them apart.
#[test]
fn a_release_in_the_second_of_the_one_before_is_seen() {
    let (cell, old) = cell(59, 1);
    let a = cell.client(1);
    assert_eq!(get(&cell, &a, "small"), b"as of the first release");
    assert_eq!(get(&cell, &a, "other"), b"never changes");
    let mut new = old.released(&[("small", b"as of the second".to_vec())]);
    new.creation = old.creation;
    let server = cell.servers[0].clone();
    server.host(RO, &shared(&new), false);
    let (breaking, node) = (server.clone(), server.node);
    cell.sim.block_on(node, common::LIMIT, async move { breaking.break_volume(RO).await }).unwrap();
    // Another object has brought the promise on the volume.
    assert_eq!(get(&cell, &a, "other"), b"never changes");
    assert_eq!(get(&cell, &a, "small"), b"as of the second");
}

#[test]
fn one_promise_covers_a_read_only_volume() {
    let (cell, _) = cell(60, 2);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        for path in ["small", "other", "large"] {
            one.get(path).await.unwrap();
        }
        let before = one.venus.counters();
        for path in ["small", "other", "large"] {
            one.get(path).await.unwrap();
        }
        assert!(one.calls_since(&before).is_empty(), "{:?}", one.calls_since(&before));
    });
}

#[test]
fn with_one_location_server_of_three_alive_volumes_are_found_at_once_afterwards() {
    for seed in 70..76 {
        let cell = Fakes::new(seed, 1, 3);
        let image = Image::new(100).with("file", b"x");
        cell.servers[0].host(RW, &shared(&image), true);
        cell.locate(&[(0, MASTER)]);
        cell.sim.crash(cell.locations[(seed % 3) as usize]);
        cell.sim.crash(cell.locations[((seed + 1) % 3) as usize]);
        let a = cell.client(1);
        let one = a.clone();
        cell.on(&a, async move {
            let ask = |one: Client| async move {
                let began = one.env.now();
                one.venus.set_property(afs_venus::NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
                assert_eq!(one.get("file").await.unwrap(), b"x");
                one.find("elsewhere").await.unwrap_err();
                one.env.now().saturating_since(began)
            };
            assert!(ask(one.clone()).await < Duration::from_secs(5));
            assert!(ask(one.clone()).await < Duration::from_millis(200));
        });
    }
}
