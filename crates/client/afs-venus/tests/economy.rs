//! Number of calls that operations need: of those by calls alone, so that one organisation is enough.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afs_venus::{MemoryCache, NodeId, OpenFlags, SetAttr};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::DataVersion;
use afs_wire::rpc::Request;
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::fakes::{FakeServer, Fakes, Image, RW};
use common::{Cell, pattern};

#[test]
fn a_new_file_costs_one_create_and_one_store_and_a_directory_one_call() {
    let cell = Cell::by_calls(1);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.find("nothing").await.unwrap_err();
        let before = client.venus.counters();
        client.mkdir("dir").await.unwrap();
        for n in 0..20 {
            client.put(&format!("dir/file{n}"), &pattern(3000, n)).await.unwrap();
        }
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/empty", b"").await.unwrap();
        for n in 0..20 {
            assert_eq!(client.get(&format!("dir/file{n}")).await.unwrap(), pattern(3000, n));
        }
        assert_eq!(client.names("dir").await.unwrap().len(), 23);
        assert_eq!(client.calls_since(&before), ["ChangeList 23", "StoreData64 20"]);
    });
}

#[test]
fn a_time_set_before_close_travels_with_the_data() {
    let cell = Cell::by_calls(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        let handle = client.open_new("file").await.unwrap();
        client.venus.write(handle, 0, Bytes::from_static(b"x")).await.unwrap();
        let node = client.find("file").await.unwrap().node;
        let before = client.venus.counters();
        let time = afs_venus::NewTime::At(afs_wire::ids::UnixSeconds(1_000_000).into());
        let change = SetAttr { mtime: Some(time), ..SetAttr::default() };
        let attr = client.venus.setattr(node, Some(handle), change).await.unwrap();
        assert_eq!(attr.mtime.seconds().0, 1_000_000);
        client.venus.flush(handle, 0).await.unwrap();
        assert_eq!(client.venus.getattr(node).await.unwrap().mtime.seconds().0, 1_000_000);
        assert_eq!(client.calls_since(&before), ["StoreData64 1"]);
    });
}

#[test]
fn a_warm_cache_makes_no_calls() {
    let cell = Cell::by_calls(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..10 {
            one.put(&format!("file{n}"), &pattern(2000, n)).await.unwrap();
        }
    });
    let two = b.clone();
    cell.on(&b, async move {
        let read = async |client: &common::Client| {
            client.names("").await.unwrap();
            for n in 0..10 {
                assert_eq!(client.get(&format!("file{n}")).await.unwrap(), pattern(2000, n));
            }
        };
        read(&two).await;
        let before = two.venus.counters();
        read(&two).await;
        assert!(two.calls_since(&before).is_empty());
    });
}

#[test]
fn a_listing_with_attributes_uses_bulk_status() {
    let cell = Cell::by_calls(4);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..120 {
            one.put(&format!("file{n}"), b"").await.unwrap();
        }
    });
    let two = b.clone();
    cell.on(&b, async move {
        let before = two.venus.counters();
        let mut offset = 0;
        let mut found = 0;
        loop {
            let listed = two.venus.readdirplus(NodeId::ROOT, offset, 60).await.unwrap();
            let Some(last) = listed.last() else { break };
            offset = last.entry.next_offset;
            found += listed.iter().filter(|entry| entry.found.is_some()).count();
        }
        assert_eq!(found, 120);
        // Three pages of a listing, two of which need two calls each.
        assert_eq!(two.calls_since(&before), ["FetchData64 1", "InlineBulkStatus 5"]);
    });
}

#[test]
fn look_ups_in_sequence_prefetch_the_neighbours() {
    let cell = Cell::by_calls(5);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..50 {
            one.put(&format!("file{n}"), b"").await.unwrap();
        }
    });
    let two = b.clone();
    cell.on(&b, async move {
        let before = two.venus.counters();
        for n in 0..50 {
            two.find(&format!("file{n}")).await.unwrap();
        }
        assert_eq!(two.calls_since(&before), ["FetchData64 1", "FetchStatus 2", "InlineBulkStatus 1"]);
    });
}

#[test]
fn only_what_changed_is_stored() {
    let cell = Cell::by_calls(6);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        let mut data = pattern(4 << 20, 1);
        client.put("file", &data).await.unwrap();
        let before = client.venus.counters();
        let handle = client.open("file", OpenFlags::READ_WRITE).await.unwrap();
        client.venus.write(handle, 1_000_000, Bytes::from_static(b"changed")).await.unwrap();
        let append = client.open("file", OpenFlags { append: true, ..OpenFlags::WRITE }).await.unwrap();
        client.venus.write(append, 0, Bytes::from_static(b"more")).await.unwrap();
        client.venus.flush(handle, 0).await.unwrap();
        client.venus.flush(append, 0).await.unwrap();
        let stored = client.venus.counters().bytes_stored - before.bytes_stored;
        assert_eq!(stored, 11);
        data[1_000_000..1_000_007].copy_from_slice(b"changed");
        data.extend_from_slice(b"more");
        assert!(client.get("file").await.unwrap() == data);
    });
    let b = cell.client(2);
    let other = b.clone();
    let data = cell.on(&b, async move { other.get("file").await.unwrap() });
    assert_eq!(data.len(), (4 << 20) + 4);
    assert_eq!(&data[1_000_000..1_000_007], b"changed");
    assert_eq!(&data[4 << 20..], b"more");
}

#[test]
fn after_a_restart_the_cache_is_validated_and_not_fetched_again() {
    let cell = Cell::by_calls(7);
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let a = cell.client_with(1, cache.clone());
    let client = a.clone();
    cell.on(&a, async move {
        client.put("file", &pattern(100_000, 1)).await.unwrap();
        client.put("other", &pattern(100, 2)).await.unwrap();
        client.venus.shut_down().await.unwrap();
        assert_eq!(client.calls("GiveUpAllCallBacks"), 1);
    });
    drop(a);
    let b = cell.client(3);
    let other = b.clone();
    cell.on(&b, async move { other.put("other", &pattern(100, 3)).await.unwrap() });
    let again = cell.client_with(2, cache);
    let client = again.clone();
    cell.on(&again, async move {
        assert_eq!(client.get("file").await.unwrap(), pattern(100_000, 1));
        assert_eq!(client.venus.counters().bytes_fetched, 2048, "only the directory was fetched");
        assert_eq!(client.get("other").await.unwrap(), pattern(100, 3));
    });
}

#[test]
fn after_the_server_restarts_statuses_are_asked_for_and_data_is_not() {
    let cell = Cell::by_calls(8);
    let a = cell.client(1);
    let client = a.clone();
    let node = cell.on(&a, async move {
        client.put("file", &pattern(50_000, 1)).await.unwrap();
        client.find("file").await.unwrap().node
    });
    cell.restart_server();
    let client = a.clone();
    cell.on(&a, async move {
        // No server has notified the client yet, so its promises are valid.
        let before = client.venus.counters();
        client.put("new", b"x").await.unwrap();
        assert_eq!(client.get("file").await.unwrap(), pattern(50_000, 1));
        assert_eq!(client.venus.counters().bytes_fetched - before.bytes_fetched, 0);
        let calls = client.calls_since(&before);
        assert!(count_of(&calls, "FetchStatus") + count_of(&calls, "InlineBulkStatus") > 0, "{calls:?}");
    });
    assert!(a.invalidated.take().contains(&format!("attributes {:x}", node.0)));
}

/// Directories, and files in each, of the tests of revalidation.
const DIRECTORIES: u64 = 10;
const FILES: u64 = 1000;

fn name(n: u64) -> String {
    format!("dir{}/file{n}", n % DIRECTORIES)
}

/// Makes the files on a machine, which has them in its cache then.
async fn make_files(client: &common::Client, files: u64) {
    for n in 0..DIRECTORIES {
        client.mkdir(&format!("dir{n}")).await.unwrap();
    }
    for n in 0..files {
        client.put(&name(n), &pattern(20, n)).await.unwrap();
    }
}

/// Reads all of them in an order of no use to read ahead by. `changed` are those that another machine has stored since.
async fn read_files(client: &common::Client, files: u64, changed: &[u64]) {
    for n in (0..files).map(|n| n * 373 % files) {
        let seed = if changed.contains(&n) { n + files } else { n };
        assert_eq!(client.get(&name(n)).await.unwrap(), pattern(20, seed), "file {n}");
    }
}

fn count_of(calls: &[String], name: &str) -> u64 {
    let of = |call: &String| call.split_once(' ').filter(|(called, _)| *called == name)?.1.parse().ok();
    calls.iter().find_map(of).unwrap_or(0)
}

/// The machine with the files is stopped, three of them are changed elsewhere, and a machine with its cache starts.
fn restarted(cell: &Cell, files: u64, changed: &'static [u64]) -> common::Client {
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let a = cell.client_with(1, cache.clone());
    let client = a.clone();
    cell.on(&a, async move {
        make_files(&client, files).await;
        client.venus.shut_down().await.unwrap();
    });
    drop(a);
    let b = cell.client(3);
    let other = b.clone();
    cell.on(&b, async move {
        for n in changed {
            other.put(&name(*n), &pattern(20, n + files)).await.unwrap();
        }
    });
    cell.client_with(2, cache)
}

#[test]
fn after_a_restart_a_call_validates_fifty_cached_files_and_only_changed_ones_are_fetched() {
    const CHANGED: &[u64] = &[3, 500, 999];
    let cell = Cell::by_calls(11);
    let again = restarted(&cell, FILES, CHANGED);
    let client = again.clone();
    cell.on(&again, async move {
        // The contents of directories are not kept: they are fetched first, and not counted.
        for n in 0..DIRECTORIES {
            client.names(&format!("dir{n}")).await.unwrap();
        }
        let before = client.venus.counters();
        read_files(&client, FILES, CHANGED).await;
        let calls = client.calls_since(&before);
        let statuses = count_of(&calls, "FetchStatus") + count_of(&calls, "InlineBulkStatus");
        assert!(statuses <= 25, "{calls:?}");
        assert_eq!(count_of(&calls, "FetchData64"), CHANGED.len() as u64, "{calls:?}");
    });
}

#[test]
fn after_the_server_restarts_a_call_validates_fifty_objects_in_use_by_their_nodes() {
    let cell = Cell::by_calls(12);
    let a = cell.client(1);
    let client = a.clone();
    let nodes = cell.on(&a, async move {
        make_files(&client, FILES).await;
        let mut nodes = Vec::new();
        for n in 0..FILES {
            nodes.push(client.find(&name(n)).await.unwrap().node);
        }
        nodes
    });
    cell.restart_server();
    let client = a.clone();
    cell.on(&a, async move {
        client.put("new", b"x").await.unwrap();
        let before = client.venus.counters();
        for n in 0..FILES {
            client.venus.getattr(nodes[(n * 373 % FILES) as usize]).await.unwrap();
        }
        read_files(&client, FILES, &[]).await;
        let calls = client.calls_since(&before);
        let total = client.venus.counters().calls_total() - before.calls_total();
        assert!(total <= 25, "{calls:?}");
        assert_eq!(client.venus.counters().bytes_fetched, before.bytes_fetched);
    });
}

#[test]
fn of_a_server_without_bulk_calls_cached_files_are_validated_one_by_one() {
    let bulk_calls = [155, 65536, afs_wire::fs::StatusAndCapability::OPCODE];
    let cell = Cell::with_older_server(13, true, &bulk_calls);
    let again = restarted(&cell, 60, &[7]);
    let client = again.clone();
    cell.on(&again, async move {
        let before = client.venus.counters();
        read_files(&client, 60, &[7]).await;
        let calls = client.calls_since(&before);
        assert!(count_of(&calls, "FetchStatus") >= 50, "{calls:?}");
        assert!(
            client.venus.counters().bytes_fetched - before.bytes_fetched <= 2048 * (1 + DIRECTORIES) + 20
        );
    });
}

#[test]
fn a_bulk_reply_of_too_few_statuses_validates_nothing_and_loses_nothing() {
    let too_few = |table: afs_rpc::Table<afs_server::FileServer>| {
        table.call(|_, _, _: afs_wire::fs::InlineBulkStatus| async move {
            let one = afs_wire::xdr::BoundedVec::first_of([afs_wire::fs::Status::default()]);
            let callbacks = afs_wire::xdr::BoundedVec::first_of([afs_wire::fs::CallBack::shared(3600)]);
            let sync = afs_wire::fs::VolSync::default();
            Ok::<_, AbortCode>(afs_wire::fs::BulkStatusReply { statuses: one, callbacks, sync })
        })
    };
    let cell = Cell::with_calls(14, true, Arc::new(too_few));
    let again = restarted(&cell, 60, &[7]);
    let client = again.clone();
    cell.on(&again, async move {
        let before = client.venus.counters();
        read_files(&client, 60, &[7]).await;
        assert!(
            client.venus.counters().bytes_fetched - before.bytes_fetched <= 2048 * (1 + DIRECTORIES) + 20
        );
    });
}

/// A server with sixty files, which a client has in its cache and must ask for again, and their nodes.
fn suspect_files(seed: u64) -> (Fakes, common::Client, Vec<NodeId>) {
    let (fakes, mut image) = (Fakes::new(seed, 1, 1), Image::new(1));
    for n in 0..SUSPECTS {
        image = image.with(&format!("file{n}"), &pattern(20, n));
    }
    fakes.servers[0].host(RW, &Arc::new(Mutex::new(image)), true);
    fakes.locate(&[(0, SiteFlags::RW_VOLUME)]);
    let a = fakes.client(1);
    let (client, server) = (a.clone(), fakes.servers[0].clone());
    let nodes = fakes.on(&a, async move {
        let mut nodes = Vec::new();
        for n in 0..SUSPECTS {
            assert_eq!(client.get(&format!("file{n}")).await.unwrap(), pattern(20, n));
            nodes.push(client.find(&format!("file{n}")).await.unwrap().node);
        }
        server.break_volume(RW).await;
        nodes
    });
    (fakes, a, nodes)
}

const SUSPECTS: u64 = 60;

/// Number of files whose status is asked for alone from now on.
fn asked_for_alone(server: &FakeServer) -> Arc<AtomicU64> {
    let files = Arc::new(AtomicU64::new(0));
    let counted = files.clone();
    server.falsify("FetchStatus", move |fid, _| {
        counted.fetch_add(u64::from(!fid.is_directory()), Ordering::Relaxed);
    });
    files
}

#[test]
fn objects_that_are_used_at_once_are_validated_by_one_call() {
    let (fakes, a, nodes) = suspect_files(15);
    let (server, client) = (&fakes.servers[0], a.clone());
    let (alone, before) = (asked_for_alone(server), server.calls("InlineBulkStatus"));
    fakes.on(&a, async move {
        let attrs = nodes[..4].iter().map(|node| client.venus.getattr(*node));
        assert!(afs_rpc::future::join_all(attrs).await.into_iter().all(|attr| attr.unwrap().size == 20));
    });
    assert_eq!((alone.load(Ordering::Relaxed), server.calls("InlineBulkStatus")), (0, before + 1));
}

#[test]
fn what_a_bulk_reply_refuses_is_asked_for_alone_and_takes_no_place_in_another() {
    let (fakes, a, nodes) = suspect_files(16);
    let (server, client) = (&fakes.servers[0], a.clone());
    server.falsify("InlineBulkStatus", |fid, status| {
        if fid.vnode.0.is_multiple_of(4) {
            status.error = Errno::EACCES.to_uae();
        }
    });
    let (alone, before) = (asked_for_alone(server), server.calls("InlineBulkStatus"));
    fakes.on(&a, async move {
        for node in nodes {
            assert_eq!(client.venus.getattr(node).await.unwrap().size, 20);
        }
    });
    assert_eq!(alone.load(Ordering::Relaxed), SUSPECTS / 2);
    let calls = server.calls("InlineBulkStatus") - before;
    assert!(calls <= 3, "{calls}");
}

#[test]
fn a_bulk_reply_about_other_objects_gives_no_file_the_data_of_another() {
    let (fakes, a, _) = suspect_files(17);
    let server = fakes.servers[0].clone();
    server
        .falsify("InlineBulkStatus", |_, status| (status.length, status.data_version) = (30, DataVersion(9)));
    let client = a.clone();
    fakes.on(&a, async move {
        for n in 0..SUSPECTS {
            let told = client.get(&format!("file{n}")).await;
            assert!(told.is_err(), "file {n}: its data is older than it was said to be");
        }
        server.falsify("InlineBulkStatus", |_, _| {});
        server.break_volume(RW).await;
        for n in 0..SUSPECTS {
            assert_eq!(client.get(&format!("file{n}")).await.unwrap(), pattern(20, n));
        }
    });
}

#[test]
fn unneeded_promises_are_given_up_in_batches() {
    let cell = Cell::by_calls(9);
    cell.set_limits(|limits| limits.statuses_max = 100);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        for n in 0..300 {
            client.put(&format!("file{n}"), b"").await.unwrap();
        }
        assert!(client.venus.statuses() <= 101, "{}", client.venus.statuses());
    });
    cell.sim.run_for(std::time::Duration::from_secs(60));
    let given_up = a.calls("GiveUpCallBacks");
    assert!((4..=8).contains(&given_up), "{given_up} calls for about 200 promises");
}
