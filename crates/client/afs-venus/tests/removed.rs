//! Files removed by other clients take no space in the cache any more.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::join;
use afs_venus::{CacheStore, DiskCache, ErrorKind, MemoryCache, NodeId, OpenFlags};
use bytes::Bytes;
use common::{Cell, Client, pattern};

const LEN: usize = 200_000;
/// Limit of the size of a cache without any of the files.
const LITTLE: u64 = 20_000;

/// Two machines, the second of which has a cache of each kind in turn.
fn with_both_caches(seed: u64, work: impl Fn(&Cell, Client, Client, Arc<dyn CacheStore>)) {
    let dir = tempfile::tempdir().unwrap();
    let caches: [Arc<dyn CacheStore>; 2] = [
        Arc::new(MemoryCache::new(64 << 20)),
        Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap()),
    ];
    for cache in caches {
        let cell = Cell::new(seed);
        work(&cell, cell.client(1), cell.client_with(2, cache.clone()), cache);
    }
}

fn put(cell: &Cell, client: &Client, names: &'static [&'static str]) {
    let client_of = client.clone();
    cell.on(client, async move {
        for name in names {
            client_of.put(name, &pattern(LEN, 1)).await.unwrap();
        }
    });
}

fn get(cell: &Cell, client: &Client, names: &'static [&'static str]) {
    let client_of = client.clone();
    cell.on(client, async move {
        for name in names {
            assert!(client_of.get(name).await.unwrap() == pattern(LEN, 1));
        }
    });
}

/// Lists directories, and waits until the effects are complete.
fn look(cell: &Cell, client: &Client, directories: &'static [&'static str]) {
    let client_of = client.clone();
    cell.on(client, async move {
        for directory in directories {
            client_of.names(directory).await.unwrap();
        }
    });
    cell.sim.run_for(Duration::from_secs(2));
}

#[test]
fn files_removed_elsewhere_are_dropped_when_their_directory_is_read() {
    with_both_caches(1, |cell, a, b, cache| {
        const NAMES: &[&str] = &["one", "two", "three", "stays"];
        put(cell, &a, NAMES);
        get(cell, &b, NAMES);
        assert!(cache.bytes_used() >= 4 * LEN as u64);
        let one = a.clone();
        cell.on(&a, async move {
            for name in &NAMES[..3] {
                one.venus.unlink(NodeId::ROOT, name.as_bytes()).await.unwrap();
            }
        });
        look(cell, &b, &[""]);
        assert!(cache.bytes_used() <= LEN as u64 + LITTLE, "{}", cache.bytes_used());
        let before = b.venus.counters().bytes_fetched;
        get(cell, &b, &["stays"]);
        assert_eq!(b.venus.counters().bytes_fetched, before, "it was not dropped");
    });
}

#[test]
fn files_moved_elsewhere_to_another_directory_stay_cached() {
    with_both_caches(2, |cell, a, b, _| {
        put(cell, &a, &["file"]);
        get(cell, &b, &["file"]);
        let one = a.clone();
        cell.on(&a, async move {
            one.mkdir("dir").await.unwrap();
            let dir = one.find("dir").await.unwrap().node;
            one.venus.rename(NodeId::ROOT, b"file", dir, b"moved").await.unwrap();
        });
        look(cell, &b, &["", "dir"]);
        let before = b.venus.counters().bytes_fetched;
        get(cell, &b, &["dir/moved"]);
        assert_eq!(b.venus.counters().bytes_fetched, before, "it was not dropped");
    });
}

/// Of a tree removed by another client only the top is ever looked up.
#[test]
fn the_contents_of_a_directory_removed_elsewhere_are_dropped_with_it() {
    with_both_caches(3, |cell, a, b, cache| {
        let one = a.clone();
        cell.on(&a, async move {
            one.mkdir("top").await.unwrap();
            one.mkdir("top/sub").await.unwrap();
        });
        put(cell, &a, &["top/one", "top/sub/two"]);
        get(cell, &b, &["top/one", "top/sub/two"]);
        let one = a.clone();
        cell.on(&a, async move {
            let node = async |path: &str| one.find(path).await.unwrap().node;
            let (top, sub) = (node("top").await, node("top/sub").await);
            one.venus.unlink(sub, b"two").await.unwrap();
            one.venus.rmdir(top, b"sub").await.unwrap();
            one.venus.unlink(top, b"one").await.unwrap();
            one.venus.rmdir(NodeId::ROOT, b"top").await.unwrap();
        });
        look(cell, &b, &[""]);
        assert!(cache.bytes_used() <= LITTLE, "{}", cache.bytes_used());
    });
}

#[test]
fn an_open_file_removed_elsewhere_is_dropped_at_its_last_close() {
    with_both_caches(4, |cell, a, b, cache| {
        put(cell, &a, &["file"]);
        let two = b.clone();
        let handle = cell.on(&b, async move { two.open("file", OpenFlags::READ).await.unwrap() });
        let one = a.clone();
        cell.on(&a, async move { one.venus.unlink(NodeId::ROOT, b"file").await.unwrap() });
        look(cell, &b, &[""]);
        let two = b.clone();
        cell.on(&b, async move {
            assert!(two.read_all(handle).await.unwrap() == pattern(LEN, 1), "it is read to its end");
            two.venus.release(handle).await.unwrap();
        });
        assert!(cache.bytes_used() <= LITTLE, "{}", cache.bytes_used());
    });
}

/// The kernel retries once after ESTALE, by name, and returns a second ESTALE to the program.
#[test]
fn a_name_that_is_looked_up_while_others_remove_it_is_there_or_not_and_never_stale() {
    for seed in 10..13 {
        let cell = Cell::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        a.env.clone().spawn(Box::pin(async move {
            loop {
                a.put("file", b"data").await.unwrap();
                a.venus.unlink(NodeId::ROOT, b"file").await.unwrap();
            }
        }));
        let (found, missed) = cell.on(&b.clone(), async move {
            let (mut found, mut missed) = (0, 0);
            for n in 0..150 {
                // Cached entries are returned in no time.
                b.env.sleep(Duration::from_micros(n % 37 * 50)).await;
                match b.find("file").await {
                    Ok(entry) => {
                        b.venus.forget(entry.node, 1);
                        found += 1;
                    }
                    Err(error) if error.kind == ErrorKind::NotFound => missed += 1,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            (found, missed)
        });
        assert!(found > 5 && missed > 5, "seed {seed}: {found} {missed}");
    }
}

/// The server has removed the file when its data is there.
#[test]
fn a_file_that_is_removed_or_replaced_here_while_it_is_closed_closes_without_an_error() {
    let cell = Cell::new(12);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        for is_replaced in [false, true] {
            one.put("file", b"").await.unwrap();
            one.put("other", b"other").await.unwrap();
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            one.venus.write(handle, 0, Bytes::from(pattern(1_000_000, 3))).await.unwrap();
            let close = async {
                one.venus.flush(handle, 0).await.unwrap();
                one.venus.release(handle).await.unwrap();
            };
            let remove = async {
                match is_replaced {
                    true => one.venus.rename(NodeId::ROOT, b"other", NodeId::ROOT, b"file").await.unwrap(),
                    false => one.venus.unlink(NodeId::ROOT, b"file").await.unwrap(),
                }
            };
            join(close, remove).await;
            assert_eq!(one.get("file").await.is_ok(), is_replaced);
        }
    });
}
