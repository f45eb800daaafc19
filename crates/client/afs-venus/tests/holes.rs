//! Files with holes: what a store sends of them, and how much space they take in the cache.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex};

use afs_venus::{
    Allocate, CacheStore, DiskCache, HandleId, MemoryCache, NodeId, OpenFlags, Opened, Seek, SetAttr,
};
use bytes::Bytes;
use common::fakes::{Fakes, Image, RW};
use common::{Cell, Client, SMALL, SMALL_KIB, pattern};

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
/// Offsets at which bytes are written into a file of [`TIB`].
const PLACES: [u64; 3] = [0, 1 << 39, TIB - 1];
/// Limit of the space that these take: a page each, and what a file system may add to it.
const LITTLE: u64 = 3 * (64 << 10);
const PASSTHROUGH: OpenFlags = OpenFlags { passthrough: true, ..OpenFlags::READ_WRITE };

fn disk(dir: &tempfile::TempDir) -> Arc<dyn CacheStore> {
    Arc::new(DiskCache::open(dir.path(), 64 << 20, "this boot").unwrap())
}

/// Writes by passthrough if possible, otherwise through Venus.
async fn write(client: &Client, opened: &Opened, place: u64, bytes: &[u8]) {
    match &opened.backing {
        Some(backing) => backing.file.write_all_at(bytes, place).unwrap(),
        None => {
            client.venus.write(opened.handle, place, Bytes::copy_from_slice(bytes)).await.unwrap();
        }
    }
}

async fn read_at(client: &Client, name: &str, place: u64, len: usize) -> Vec<u8> {
    let handle = client.open(name, OpenFlags::READ).await.unwrap();
    let bytes = client.venus.read(handle, place, len).await.unwrap().to_vec();
    client.venus.release(handle).await.unwrap();
    bytes
}

/// Runs a test with passthrough and without.
fn both_caches(work: impl Fn(Arc<dyn CacheStore>)) {
    work(Arc::new(MemoryCache::new(64 << 20)));
    work(disk(&tempfile::tempdir().unwrap()));
}

#[test]
fn a_close_sends_the_data_of_a_file_and_none_of_its_holes() {
    both_caches(|cache| {
        let cell = Cell::new(1);
        let (a, b) = (cell.client_with(1, cache), cell.client(2));
        let one = a.clone();
        cell.on(&a, async move {
            let before = one.venus.counters().bytes_stored;
            let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
            for place in PLACES {
                write(&one, &opened, place, b"x").await;
            }
            one.venus.flush(opened.handle, 0).await.unwrap();
            one.venus.release(opened.handle).await.unwrap();
            let stored = one.venus.counters().bytes_stored - before;
            assert!(stored <= LITTLE, "{stored} bytes");
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, TIB);
            assert_eq!(one.stores(), 1);
        });
        let two = b.clone();
        cell.on(&b, async move {
            assert_eq!(two.find("file").await.unwrap().attr.size, TIB);
            for place in PLACES {
                assert_eq!(read_at(&two, "file", place, 1).await, b"x");
                let beside = if place == 0 { 1 } else { place - 1 };
                assert_eq!(read_at(&two, "file", beside, 1).await, [0]);
            }
        });
    });
}

#[test]
fn a_file_with_holes_takes_the_place_of_another_version_without_its_holes_being_sent() {
    both_caches(|cache| {
        let cell = Cell::new(2);
        let (a, b) = (cell.client_with(1, cache), cell.client(2));
        let one = a.clone();
        let opened = cell.on(&a, async move {
            let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
            for place in PLACES {
                write(&one, &opened, place, b"x").await;
            }
            one.venus.flush(opened.handle, 0).await.unwrap();
            write(&one, &opened, 0, b"a").await;
            opened
        });
        let two = b.clone();
        cell.on(&b, async move {
            let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
            two.venus.write(handle, 5 * MIB, Bytes::from_static(b"of b")).await.unwrap();
            two.venus.write(handle, TIB, Bytes::from_static(b"of b")).await.unwrap();
            two.venus.flush(handle, 0).await.unwrap();
            two.venus.release(handle).await.unwrap();
        });
        let one = a.clone();
        cell.on(&a, async move {
            let before = one.venus.counters().bytes_stored;
            one.venus.flush(opened.handle, 0).await.unwrap();
            one.venus.release(opened.handle).await.unwrap();
            let stored = one.venus.counters().bytes_stored - before;
            assert!(stored <= LITTLE, "{stored} bytes");
        });
        let two = b.clone();
        cell.on(&b, async move {
            assert_eq!(two.find("file").await.unwrap().attr.size, TIB);
            assert_eq!(read_at(&two, "file", 0, 2).await, [b'a', 0]);
            assert_eq!(read_at(&two, "file", 5 * MIB, 4).await, [0; 4]);
            assert_eq!(read_at(&two, "file", TIB - 1, 9).await, b"x");
        });
    });
}

/// More ranges than one call takes: none of them is lost, and the file is not sent as a whole.
#[test]
fn thousands_of_places_between_holes_are_all_stored() {
    both_caches(|cache| {
        let cell = Cell::new(3);
        let (a, b) = (cell.client_with(1, cache), cell.client(2));
        let one = a.clone();
        let place = |n: u64| n * MIB;
        cell.on(&a, async move {
            let before = one.venus.counters().bytes_stored;
            let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
            for n in 0..2500 {
                write(&one, &opened, place(n), &[n as u8 | 1]).await;
            }
            one.venus.flush(opened.handle, 0).await.unwrap();
            one.venus.release(opened.handle).await.unwrap();
            let stored = one.venus.counters().bytes_stored - before;
            assert!(stored <= 2500 * (64 << 10), "{stored} bytes");
            assert_eq!(one.stores(), 3);
        });
        let two = b.clone();
        cell.on(&b, async move {
            for n in (0..2500).step_by(83).chain([999, 1000, 1001, 2499]) {
                assert_eq!(read_at(&two, "file", place(n), 1).await, [n as u8 | 1], "{n}");
            }
        });
    });
}

/// A write through a mapping to a dirty page changes nothing but the bytes.
#[test]
fn late_writes_of_a_mapping_into_a_file_with_holes_are_stored_and_nothing_else() {
    let cell = Cell::new(4);
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (cell.client_with(1, disk(&dir)), cell.client(2));
    let one = a.clone();
    let data = pattern(20 << 20, 1);
    cell.on(&a, async move {
        let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        file.write_all_at(&data, 0).unwrap();
        file.write_all_at(b"far", TIB).unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        let before = (one.venus.counters().bytes_stored, file.metadata().unwrap().modified().unwrap());
        file.write_all_at(b"late", 7 * MIB).unwrap();
        file.write_all_at(b"FAR", TIB).unwrap();
        file.set_modified(before.1).unwrap();
        one.venus.release(opened.handle).await.unwrap();
        let stored = one.venus.counters().bytes_stored - before.0;
        assert!((7..6 * MIB).contains(&stored), "{stored} bytes");
    });
    let two = b.clone();
    cell.on(&b, async move {
        assert_eq!(read_at(&two, "file", 7 * MIB, 4).await, b"late");
        assert_eq!(read_at(&two, "file", TIB, 9).await, b"FAR");
    });
}

#[test]
fn zeros_that_are_fetched_take_no_room_in_the_cache() {
    let cell = Cell::new(5);
    let mut data = vec![0; 40 << 20];
    data[..4].copy_from_slice(b"head");
    data[30 << 20..][..4].copy_from_slice(b"data");
    let a = cell.client(1);
    let (one, put) = (a.clone(), data.clone());
    cell.on(&a, async move { one.put("file", &put).await.unwrap() });
    let dir = tempfile::tempdir().unwrap();
    let caches: [Arc<dyn CacheStore>; 2] = [disk(&dir), Arc::new(MemoryCache::new(64 << 20))];
    for (n, cache) in caches.into_iter().enumerate() {
        let b = cell.client_with(2 + n as u8, cache.clone());
        let (two, data) = (b.clone(), data.clone());
        cell.on(&b, async move {
            assert!(two.get("file").await.unwrap() == data);
            let before = two.venus.counters().bytes_fetched;
            assert!(two.get("file").await.unwrap() == data);
            assert_eq!(two.venus.counters().bytes_fetched, before, "it is all in the cache");
        });
        assert!(cache.bytes_used() < MIB, "{} bytes", cache.bytes_used());
    }
    let on_disk: u64 = walk(dir.path()).iter().map(|file| file.metadata().unwrap().blocks() * 512).sum();
    assert!(on_disk < MIB, "{on_disk} bytes on the disk");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// What an earlier version has left in the cache file must not show where the newer one has zeros.
#[test]
fn zeros_that_are_fetched_hide_what_an_older_version_had_there() {
    let cell = Cell::new(6);
    cell.set_limits(|limits| limits.chunk_bytes = 64 << 10);
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (cell.client_with(1, disk(&dir)), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("file", &vec![7; 4 << 20]).await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"ours")).await.unwrap();
        let node = one.find("file").await.unwrap().node;
        one.venus
            .setattr(node, Some(handle), SetAttr { size: Some(3 << 20), ..SetAttr::default() })
            .await
            .unwrap();
        handle
    });
    let two = b.clone();
    cell.on(&b, async move { two.put("file", &vec![0; 4 << 20]).await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        one.put("other", b"").await.unwrap();
        let mut want = vec![7; 3 << 20];
        want[..4].copy_from_slice(b"ours");
        assert!(one.get("file").await.unwrap() == want);
    });
    let two = b.clone();
    cell.on(&b, async move {
        two.put("file", &vec![0; 3 << 20]).await.unwrap();
    });
    let one = a.clone();
    cell.on(&a, async move { assert!(one.get("file").await.unwrap() == vec![0; 3 << 20]) });
}

/// A cell whose server takes one range per call.
fn old_cell() -> Fakes {
    let cell = Fakes::new(1, 1, 1);
    let image = Arc::new(Mutex::new(Image::new(100)));
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    cell
}

#[test]
fn a_server_that_takes_one_range_a_call_gets_the_data_of_each_range_and_the_length() {
    let cell = old_cell();
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        for place in [3 * MIB, 100 * MIB] {
            one.venus.write(handle, place, Bytes::from_static(b"data")).await.unwrap();
        }
        let node = one.find("file").await.unwrap().node;
        let grown = SetAttr { size: Some(200 * MIB), ..SetAttr::default() };
        one.venus.setattr(node, Some(handle), grown).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        assert_eq!(one.venus.counters().bytes_stored, 8);
    });
    assert_eq!(cell.servers[0].calls("StoreData"), 3);
    let two = b.clone();
    cell.on(&b, async move {
        assert_eq!(two.find("file").await.unwrap().attr.size, 200 * MIB);
        assert_eq!(read_at(&two, "file", 3 * MIB - 1, 6).await, b"\0data\0");
        assert_eq!(read_at(&two, "file", 100 * MIB - 1, 6).await, b"\0data\0");
    });
}

/// The server has another version than the base of the local changes: it is replaced, not mixed.
#[test]
fn a_server_that_takes_one_range_a_call_has_nothing_of_the_version_that_was_replaced() {
    let cell = old_cell();
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        for place in [0, 100 * MIB] {
            one.venus.write(handle, place, Bytes::from_static(b"data")).await.unwrap();
        }
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"DATA")).await.unwrap();
        handle
    });
    let two = b.clone();
    cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        two.venus.write(handle, 50 * MIB, Bytes::from_static(b"of b")).await.unwrap();
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
    let one = a.clone();
    cell.on(&a, async move {
        let before = one.venus.counters().bytes_stored;
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
        assert_eq!(one.venus.counters().bytes_stored - before, 8);
    });
    let two = b.clone();
    cell.on(&b, async move {
        assert_eq!(read_at(&two, "file", 0, 5).await, b"DATA\0");
        assert_eq!(read_at(&two, "file", 50 * MIB, 4).await, [0; 4]);
        assert_eq!(read_at(&two, "file", 100 * MIB, 9).await, b"data");
    });
}

/// Ranges of data of an open file, as lseek reports them.
async fn data_ranges(client: &Client, handle: HandleId) -> Vec<std::ops::Range<u64>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(start) = client.venus.seek(handle, at, Seek::Data).await.unwrap() {
        at = client.venus.seek(handle, start, Seek::Hole).await.unwrap().unwrap();
        ranges.push(start..at);
    }
    ranges
}

#[test]
fn holes_are_found_and_not_counted_while_a_file_is_open_and_afterwards() {
    both_caches(|cache| {
        let cell = Cell::new(7);
        let (a, b) = (cell.client_with(1, cache), cell.client(2));
        let one = a.clone();
        cell.on(&a, async move {
            let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
            for place in PLACES {
                write(&one, &opened, place, b"x").await;
            }
            let handle = opened.handle;
            for _ in 0..2 {
                let ranges = data_ranges(&one, handle).await;
                assert_eq!(ranges.len(), 3, "{ranges:?}");
                assert!(PLACES.iter().zip(&ranges).all(|(place, range)| range.contains(place)), "{ranges:?}");
                assert!(ranges.iter().all(|range| range.end - range.start <= 64 << 10), "{ranges:?}");
                assert_eq!(one.venus.seek(handle, TIB, Seek::Hole).await.unwrap(), None);
                assert_eq!(one.venus.seek(handle, TIB - 1, Seek::Hole).await.unwrap(), Some(TIB));
                let attr = one.venus.getattr(entry.node).await.unwrap();
                assert!((3..=LITTLE).contains(&attr.data_bytes) && attr.size == TIB, "{attr:?}");
                one.venus.flush(handle, 0).await.unwrap();
            }
            one.venus.release(handle).await.unwrap();
            let attr = one.venus.getattr(entry.node).await.unwrap();
            assert!((3..=LITTLE).contains(&attr.data_bytes), "{attr:?}");
            let again = one.open("file", OpenFlags::READ).await.unwrap();
            assert_eq!(data_ranges(&one, again).await.len(), 3);
        });
        // A client that has not fetched the file does not know its holes.
        let two = b.clone();
        cell.on(&b, async move {
            assert_eq!(two.find("file").await.unwrap().attr.data_bytes, TIB);
            let handle = two.open("file", OpenFlags::READ).await.unwrap();
            assert_eq!(data_ranges(&two, handle).await.first(), Some(&(0..TIB)));
        });
    });
}

#[test]
fn holes_are_known_after_a_restart() {
    let cell = Cell::new(8);
    let dir = tempfile::tempdir().unwrap();
    let a = cell.client_with(1, disk(&dir));
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        one.venus.write(handle, TIB, Bytes::from_static(b"x")).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    cell.sim.crash(a.node);
    drop(a);
    cell.sim.run_for(std::time::Duration::from_secs(1));
    let cache = disk(&dir);
    assert!(cache.bytes_used() < MIB, "{}", cache.bytes_used());
    let again = cell.client_with(2, cache);
    let client = again.clone();
    cell.on(&again, async move {
        assert_eq!(client.find("file").await.unwrap().attr.data_bytes, 1);
        let handle = client.open("file", OpenFlags::READ).await.unwrap();
        assert_eq!(data_ranges(&client, handle).await.first(), Some(&(TIB..TIB + 1)));
    });
}

#[test]
fn a_range_made_zeros_is_that_everywhere_and_costs_no_more_than_its_data() {
    both_caches(|cache| {
        let cell = Cell::new(9);
        let (a, b) = (cell.client_with(1, cache), cell.client(2));
        let mut data = pattern(4 << 20, 3);
        let (one, put) = (a.clone(), data.clone());
        let punch = Allocate::Zero { keep_length: true };
        cell.on(&a, async move {
            one.put("file", &put).await.unwrap();
            let entry = one.find("file").await.unwrap();
            let opened = one.venus.open(entry.node, PASSTHROUGH).await.unwrap();
            let before = one.venus.counters().bytes_stored;
            let allocate = |how, pos, len| one.venus.allocate(opened.handle, how, pos, len);
            allocate(punch, MIB, MIB).await.unwrap();
            allocate(punch, 4 * MIB - 10, TIB).await.unwrap();
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, 4 * MIB);
            allocate(Allocate::Zero { keep_length: false }, TIB, 10).await.unwrap();
            allocate(punch, 5 * MIB, TIB / 2).await.unwrap();
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, TIB + 10);
            one.venus.flush(opened.handle, 0).await.unwrap();
            one.venus.release(opened.handle).await.unwrap();
            let stored = one.venus.counters().bytes_stored - before;
            assert!(stored <= MIB + 10, "{stored} bytes");
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().data_bytes, 3 * MIB - 10);
        });
        data[1 << 20..2 << 20].fill(0);
        data[(4 << 20) - 10..].fill(0);
        for (n, client) in [(1, a), (2, b)] {
            let (reader, data) = (client.clone(), data.clone());
            cell.on(&client, async move {
                assert_eq!(reader.find("file").await.unwrap().attr.size, TIB + 10);
                assert!(read_at(&reader, "file", 0, 4 << 20).await == data, "client {n}");
                assert_eq!(read_at(&reader, "file", TIB, 99).await, [0; 10]);
            });
        }
    });
}

/// Most of the file is not cached: the range must be zeros at the server.
#[test]
fn a_range_that_is_not_in_the_cache_is_made_zeros_too() {
    let cell = Cell::new(10);
    cell.set_limits(|limits| limits.chunk_bytes = 64 << 10);
    let (a, b) = (cell.client(1), cell.client(2));
    let mut data = pattern(2 << 20, 4);
    let (one, put) = (a.clone(), data.clone());
    cell.on(&a, async move { one.put("file", &put).await.unwrap() });
    let two = b.clone();
    cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        two.venus.allocate(handle, Allocate::Zero { keep_length: true }, 500_000, 1_000_000).await.unwrap();
        assert_eq!(two.venus.read(handle, 499_999, 3).await.unwrap()[1..], [0, 0]);
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
    data[500_000..1_500_000].fill(0);
    let one = a.clone();
    cell.on(&a, async move { assert!(one.get("file").await.unwrap() == data) });
}

#[test]
fn fallocate_extends_a_file_where_the_volume_has_the_room() {
    both_caches(|cache| {
        let cell = Cell::new(11);
        let a = cell.client_with(1, cache);
        let one = a.clone();
        cell.on(&a, async move {
            let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
            let handle = opened.handle;
            write(&one, &opened, 0, b"text").await;
            let errno = async |how, pos, len| {
                one.venus.allocate(handle, how, pos, len).await.map_err(|error| error.errno())
            };
            assert_eq!(errno(Allocate::Extend, 0, 3).await, Ok(()));
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, 4);
            assert_eq!(errno(Allocate::Extend, 1000, 1000).await, Ok(()));
            assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, 2000);
            assert_eq!(errno(Allocate::Extend, 0, 0).await, Err(22));
            assert_eq!(errno(Allocate::Extend, i64::MAX as u64, 1).await, Err(27));
            assert_eq!(errno(Allocate::Extend, u64::MAX, 1).await, Err(27));
            let reader = one.open("file", OpenFlags::READ).await.unwrap();
            let refused = one.venus.allocate(reader, Allocate::Extend, 0, 9).await.unwrap_err();
            assert_eq!(refused.errno(), 9);
            one.venus.flush(handle, 0).await.unwrap();
            assert_eq!(one.get("file").await.unwrap().len(), 2000);
        });
    });
}

/// Holes need no quota; allocated space does.
#[test]
fn fallocate_of_more_than_the_quota_is_refused() {
    let cell = Cell::new(12);
    let root = afs_venus::RootKind::Volume(afs_wire::ids::VolumeName::new(SMALL).unwrap());
    let a = cell.client_at(1, Arc::new(MemoryCache::new(64 << 20)), root);
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open_new("file").await.unwrap();
        let much = u64::from(SMALL_KIB) << 10;
        let refused = one.venus.allocate(handle, Allocate::Extend, 0, much).await.unwrap_err();
        assert_eq!(refused.errno(), 122);
        one.venus.allocate(handle, Allocate::Extend, 0, much / 2).await.unwrap();
        one.venus.allocate(handle, Allocate::Zero { keep_length: false }, 0, 100 * much).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        assert_eq!(one.find("file").await.unwrap().attr.size, 100 * much);
    });
}
