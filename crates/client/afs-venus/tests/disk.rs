//! The disk cache: contents after crashes and restarts, and passthrough writes of the kernel.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_venus::cache::{CacheKey, CacheStore, Kept, Ranges};
use afs_venus::{DiskCache, NodeId, OpenFlags, SetAttr};
use afs_wire::ids::{CellName, DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;
use common::{Cell, Client, pattern};
use tempfile::TempDir;

const BOOT: &str = "this boot";
const ROOM: u64 = 16 << 20;
/// Larger than the contents that the cache reads at once: the holes of such a file are searched for.
const LATER: u64 = 300_000;

fn key(vnode: u32, version: u64) -> CacheKey {
    CacheKey {
        cell: CellName::new("test.cell").unwrap(),
        fid: Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1)),
        version: DataVersion(version),
    }
}

/// A cell with a machine whose cache is on a disk, in a temporary directory.
fn on_a_disk(seed: u64) -> (TempDir, Cell, Client) {
    let dir = tempfile::tempdir().unwrap();
    let cell = Cell::new(seed);
    let a = cell.client_with(1, Arc::new(DiskCache::open(dir.path(), ROOM, BOOT).unwrap()));
    (dir, cell, a)
}

/// Contents of `file` as read by another machine.
fn seen_elsewhere(cell: &Cell) -> Vec<u8> {
    let b = cell.client(2);
    let two = b.clone();
    cell.on(&b, async move { two.get("file").await.unwrap() })
}

/// Writes as a mapping does whose page was writable already: the time of the file stays.
fn write_by_mapping(file: &fs::File, data: &[u8]) {
    let before = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(data, 0).unwrap();
    file.set_modified(before).unwrap();
}

fn keep(cache: &DiskCache, key: &CacheKey, data: &[u8]) {
    let file = cache.create().unwrap();
    file.write_at(0, data).unwrap();
    let length = data.len() as u64;
    cache.keep(key, &file, &Kept { length, present: Ranges::whole(length), holes: Ranges::new() }).unwrap();
}

fn found(cache: &DiskCache, key: &CacheKey) -> Option<Vec<u8>> {
    let (file, kept) = cache.find(key)?;
    Some(file.read_at(0, kept.length as usize).unwrap().to_vec())
}

fn files_under(dir: &Path) -> usize {
    fs::read_dir(dir.join("data"))
        .unwrap()
        .map(|sub| fs::read_dir(sub.unwrap().path()).unwrap().count())
        .sum()
}

#[test]
fn kept_files_are_found_after_the_process_died() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
    keep(&cache, &key(2, 1), b"one");
    keep(&cache, &key(4, 1), b"two");
    keep(&cache, &key(4, 2), b"two again");
    keep(&cache, &key(6, 1), b"three");
    cache.forget(&key(6, 1).cell, key(6, 1).fid);
    drop(cache.create().unwrap());
    drop(cache);
    let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
    assert_eq!(found(&cache, &key(2, 1)).unwrap(), b"one");
    assert_eq!(found(&cache, &key(4, 1)), None);
    assert_eq!(found(&cache, &key(4, 2)).unwrap(), b"two again");
    assert_eq!(found(&cache, &key(6, 1)), None);
    assert_eq!(files_under(dir.path()), 2);
}

#[test]
fn after_the_machine_died_nothing_is_trusted_unless_it_was_shut_down_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
    keep(&cache, &key(2, 1), b"one");
    cache.shut_down().unwrap();
    drop(cache);
    let cache = DiskCache::open(dir.path(), ROOM, "next boot").unwrap();
    assert_eq!(found(&cache, &key(2, 1)).unwrap(), b"one");
    drop(cache);
    let cache = DiskCache::open(dir.path(), ROOM, "boot after that").unwrap();
    assert_eq!(found(&cache, &key(2, 1)), None);
    assert_eq!(files_under(dir.path()), 0);
}

#[test]
fn a_damaged_index_loses_only_what_follows() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
    for n in 0..10 {
        keep(&cache, &key(2 + 2 * n, 1), b"data");
    }
    drop(cache);
    let index = dir.path().join("index");
    let whole = fs::read(&index).unwrap();
    for cut in [0, 1, 7, 8, 9, whole.len() / 2, whole.len() - 1] {
        fs::write(&index, &whole[..cut]).unwrap();
        let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
        let here = (0..10).filter(|n| found(&cache, &key(2 + 2 * n, 1)).is_some()).count();
        assert!(here <= 10 * cut / whole.len(), "{here} after {cut} bytes");
    }
    let mut bytes = whole.clone();
    for at in (0..bytes.len()).step_by(5) {
        bytes[at] ^= 0x40;
        fs::write(&index, &bytes).unwrap();
        DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
        bytes[at] ^= 0x40;
    }
}

#[test]
fn the_oldest_file_is_evicted_first_and_no_open_one() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), 10_000, BOOT).unwrap();
    for n in 0..5 {
        keep(&cache, &key(2 + 2 * n, 1), &[n as u8; 2000]);
    }
    let open = cache.find(&key(4, 1)).unwrap();
    found(&cache, &key(2, 1)).unwrap();
    assert!(cache.make_room(3000));
    assert!(found(&cache, &key(6, 1)).is_none() && found(&cache, &key(8, 1)).is_none());
    assert!(found(&cache, &key(2, 1)).is_some() && found(&cache, &key(4, 1)).is_some());
    assert!(!cache.make_room(9_000));
    assert_eq!(open.0.read_at(0, 3).unwrap(), [1, 1, 1].as_slice());
}

#[test]
fn a_cache_has_one_user() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
    let refused = DiskCache::open(dir.path(), ROOM, BOOT).err().unwrap();
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    drop(cache);
    DiskCache::open(dir.path(), ROOM, BOOT).unwrap();
}

#[test]
fn a_restarted_client_reads_from_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let cell = Cell::new(1);
    let data = pattern(300_000, 1);
    let open = || Arc::new(DiskCache::open(dir.path(), ROOM, BOOT).unwrap());
    let a = cell.client_with(1, open());
    let (one, sent) = (a.clone(), data.clone());
    cell.on(&a, async move {
        one.put("file", &sent).await.unwrap();
        one.put("other", b"x").await.unwrap();
    });
    // Crashed, without an orderly stop.
    cell.sim.crash(a.node);
    drop(a);
    cell.sim.run_for(std::time::Duration::from_secs(1));
    let again = cell.client_with(2, open());
    let client = again.clone();
    cell.on(&again, async move {
        assert!(client.get("file").await.unwrap() == data);
        assert_eq!(client.venus.counters().bytes_fetched, 2048, "only the directory was fetched");
    });
}

const PASSTHROUGH: OpenFlags = OpenFlags { passthrough: true, ..OpenFlags::READ_WRITE };

#[test]
fn writes_by_passthrough_are_stored_at_close() {
    let (_dir, cell, a) = on_a_disk(2);
    let b = cell.client(2);
    let one = a.clone();
    let opened = cell.on(&a, async move {
        let before = one.venus.counters();
        let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let backing = opened.backing.clone().unwrap();
        backing.file.write_all_at(b"written by the kernel", 0).unwrap();
        assert_eq!(one.venus.getattr(entry.node).await.unwrap().size, 21);
        one.venus.flush(opened.handle, 0).await.unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        assert_eq!(one.calls_since(&before), ["ChangeList 1", "StoreData64 1"]);
        opened
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"written by the kernel");
    let (one, file) = (a.clone(), opened.backing.clone().unwrap().file);
    let handle = opened.handle;
    cell.on(&a, async move {
        // The same length, at once, as a mapping would after the close.
        file.write_all_at(b"WRITTEN", 0).unwrap();
        one.venus.release(handle).await.unwrap();
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"WRITTEN by the kernel");
}

/// The length known before the kernel wrote may differ from that of the file.
#[test]
fn a_cut_to_the_length_of_before_cuts_what_the_kernel_has_written_since() {
    let (_dir, cell, a) = on_a_disk(7);
    let b = cell.client(2);
    let one = a.clone();
    cell.on(&a, async move {
        let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        let cut = |length| {
            let change = SetAttr { size: Some(length), ..SetAttr::default() };
            one.venus.setattr(entry.node, Some(opened.handle), change)
        };
        for length in [0, 0, 100, 100] {
            assert_eq!(cut(length).await.unwrap().size, length);
            assert_eq!(file.metadata().unwrap().len(), length);
            file.write_all_at(b"old", 500).unwrap();
        }
        let second = one.venus.open(entry.node, OpenFlags { truncate: true, ..PASSTHROUGH }).await.unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
        file.write_all_at(b"old", 500).unwrap();
        one.venus.release(second.handle).await.unwrap();
        cut(0).await.unwrap();
        file.write_all_at(b"new", 600).unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        one.venus.release(opened.handle).await.unwrap();
    });
    let two = b.clone();
    let seen = cell.on(&b, async move { two.get("file").await.unwrap() });
    assert_eq!(seen, [&[0; 600], &b"new"[..]].concat());
}

/// The kernel releases the first handle after another program has opened, truncated and partly written the file through
/// a second one.
#[test]
fn a_late_release_does_not_store_writes_in_progress() {
    let (_dir, cell, a) = on_a_disk(6);
    let b = cell.client(2);
    let one = a.clone();
    let (second, file) = cell.on(&a, async move {
        let (entry, first) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        first.backing.clone().unwrap().file.write_all_at(b"old", 0).unwrap();
        one.venus.flush(first.handle, 0).await.unwrap();
        let second = one.venus.open(entry.node, OpenFlags { truncate: true, ..PASSTHROUGH }).await.unwrap();
        let file = second.backing.clone().unwrap().file;
        file.write_all_at(b"half of ", 0).unwrap();
        one.venus.release(first.handle).await.unwrap();
        (second.handle, file)
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"old");
    let one = a.clone();
    cell.on(&a, async move {
        file.write_all_at(b"the new", 8).unwrap();
        one.venus.flush(second, 0).await.unwrap();
        one.venus.release(second).await.unwrap();
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"half of the new");
}

/// Truncated by an open that may not even write, and not stored: the cache has nothing of the old version any more.
#[test]
fn truncated_data_is_not_found_after_the_process_died() {
    let dir = tempfile::tempdir().unwrap();
    let cell = Cell::new(7);
    let open = || Arc::new(DiskCache::open(dir.path(), ROOM, BOOT).unwrap());
    let a = cell.client_with(1, open());
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"old").await.unwrap();
        one.open("file", OpenFlags { truncate: true, ..OpenFlags::READ }).await.unwrap();
    });
    cell.sim.crash(a.node);
    drop(a);
    cell.sim.run_for(std::time::Duration::from_secs(1));
    let again = cell.client_with(2, open());
    let client = again.clone();
    assert_eq!(cell.on(&again, async move { client.get("file").await.unwrap() }), b"old");
}

/// The kernel continues to use the cache file of an open descriptor after the end of the process that mounted.
#[test]
fn cache_files_open_for_writing_at_an_orderly_stop_are_not_trusted_afterwards() {
    for dirty in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let cell = Cell::new(8);
        let open = || Arc::new(DiskCache::open(dir.path(), ROOM, BOOT).unwrap());
        let a = cell.client_with(1, open());
        let one = a.clone();
        let file = cell.on(&a, async move {
            for name in ["file", "read", "closed"] {
                one.put(name, b"OLDOLDOLD").await.unwrap();
            }
            let opened = |name: &'static str, flags| {
                let one = one.clone();
                async move { one.venus.open(one.find(name).await.unwrap().node, flags).await.unwrap() }
            };
            let closed = opened("closed", PASSTHROUGH).await;
            one.venus.release(closed.handle).await.unwrap();
            opened("read", OpenFlags { passthrough: true, ..OpenFlags::READ }).await;
            let file = opened("file", PASSTHROUGH).await.backing.unwrap().file;
            if dirty {
                file.write_all_at(b"NEWER", 0).unwrap();
            }
            assert_eq!(one.venus.open_for_writing(), [b"file"]);
            one.venus.shut_down().await.unwrap();
            let node = one.find("closed").await.unwrap().node;
            assert_eq!(one.venus.open(node, PASSTHROUGH).await.unwrap_err().errno(), 107);
            file
        });
        cell.sim.crash(a.node);
        drop(a);
        cell.sim.run_for(std::time::Duration::from_secs(1));
        file.write_all_at(b"NEW, AND LONGER", 0).unwrap();
        let again = cell.client_with(2, open());
        let client = again.clone();
        let stored: &[u8] = if dirty { b"NEWERDOLD" } else { b"OLDOLDOLD" };
        cell.on(&again, async move {
            client.names("").await.unwrap();
            let before = client.venus.counters();
            assert_eq!(client.get("read").await.unwrap(), b"OLDOLDOLD");
            assert_eq!(client.get("closed").await.unwrap(), b"OLDOLDOLD");
            assert_eq!(client.venus.counters().bytes_fetched, before.bytes_fetched, "these were kept");
            assert_eq!(client.get("file").await.unwrap(), stored);
            file.write_all_at(b"AGAIN", 0).unwrap();
            assert_eq!(client.get("file").await.unwrap(), stored);
            assert!(client.venus.open_for_writing().is_empty());
        });
    }
}

/// A write through a mapping whose page was writable already does not change the file's modification time.
#[test]
fn writes_of_a_mapping_after_the_close_are_stored_at_release() {
    let (_dir, cell, a) = on_a_disk(3);
    let one = a.clone();
    cell.on(&a, async move {
        let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        file.write_all_at(b"first", 0).unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        write_by_mapping(&file, b"later");
        one.venus.release(opened.handle).await.unwrap();
        assert_eq!(one.get("file").await.unwrap(), b"later");
    });
    assert_eq!(seen_elsewhere(&cell), b"later");
}

/// A program may request the attributes of a file between two writes through a mapping, of which the second is not
/// detected.
#[test]
fn writes_of_a_mapping_after_a_stat_are_stored_by_fsync() {
    let (_dir, cell, a) = on_a_disk(8);
    let one = a.clone();
    cell.on(&a, async move {
        let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        file.write_all_at(b"first", 0).unwrap();
        one.venus.getattr(entry.node).await.unwrap();
        write_by_mapping(&file, b"later");
        one.venus.fsync(opened.handle).await.unwrap();
    });
    assert_eq!(seen_elsewhere(&cell), b"later");
}

/// A child that ends, or any copy of a descriptor that is closed, causes a store while other programs continue to write
/// to the file.
#[test]
fn writes_of_a_mapping_after_a_close_by_another_process_are_stored_by_fsync() {
    let (_dir, cell, a) = on_a_disk(9);
    let one = a.clone();
    cell.on(&a, async move {
        let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        file.write_all_at(b"first", 0).unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        write_by_mapping(&file, b"later");
        one.venus.fsync(opened.handle).await.unwrap();
    });
    assert_eq!(seen_elsewhere(&cell), b"later");
}

/// Truncated data is not data that a mapping has changed, whatever length the file was extended to afterwards. The
/// kernel releases a file after its close: what another machine has stored by then must be kept.
#[test]
fn a_late_release_stores_nothing_of_a_file_that_was_cut_and_grown_before_its_close() {
    let (_dir, cell, a) = on_a_disk(7);
    let one = a.clone();
    let handle = cell.on(&a, async move {
        let (entry, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = opened.backing.clone().unwrap().file;
        file.write_all_at(b"first", 0).unwrap();
        one.venus.fsync(opened.handle).await.unwrap();
        for size in [0, LATER] {
            let length = SetAttr { size: Some(size), ..SetAttr::default() };
            one.venus.setattr(entry.node, Some(opened.handle), length).await.unwrap();
        }
        file.write_all_at(b"later", LATER).unwrap();
        one.venus.flush(opened.handle, 0).await.unwrap();
        opened.handle
    });
    let b = cell.client(2);
    let (one, two) = (a.clone(), b.clone());
    cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        two.venus.write(handle, LATER, Bytes::from_static(b"other")).await.unwrap();
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
    cell.on(&a, async move { one.venus.release(handle).await.unwrap() });
    let two = b.clone();
    let seen = cell.on(&b, async move { two.get("file").await.unwrap() });
    assert_eq!(&seen[LATER as usize..], b"other");
}

#[test]
fn a_large_file_is_not_opened_for_passthrough_writes() {
    let (_dir, cell, a) = on_a_disk(4);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("large", &pattern(3 << 20, 1)).await.unwrap();
        one.put("small", &pattern(3 << 10, 1)).await.unwrap();
        let large = one.find("large").await.unwrap().node;
        let small = one.find("small").await.unwrap().node;
        let reading = OpenFlags { passthrough: true, ..OpenFlags::READ };
        assert!(one.venus.open(large, PASSTHROUGH).await.unwrap().backing.is_none());
        assert!(one.venus.open(large, reading).await.unwrap().backing.is_some());
        let opened = one.venus.open(small, PASSTHROUGH).await.unwrap();
        assert!(opened.backing.is_some());
        let before = one.venus.counters();
        one.venus.flush(opened.handle, 0).await.unwrap();
        one.venus.release(opened.handle).await.unwrap();
        assert!(one.calls_since(&before).is_empty(), "nothing was written");
    });
}

/// A second handle, a truncation and writes of both kinds between them: all passthrough writes must be detected.
#[test]
fn writes_of_the_kernel_and_ours_to_one_file_are_all_stored() {
    let (_dir, cell, a) = on_a_disk(5);
    let one = a.clone();
    cell.on(&a, async move {
        let (entry, first) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        let file = first.backing.clone().unwrap().file;
        file.write_all_at(b"0123456789", 0).unwrap();
        let cut = SetAttr { size: Some(8), ..SetAttr::default() };
        one.venus.setattr(entry.node, Some(first.handle), cut).await.unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        let second = one.venus.open(entry.node, PASSTHROUGH).await.unwrap();
        one.venus.passthrough_refused(second.handle);
        one.venus.write(second.handle, 6, Bytes::from_static(b"XYZ")).await.unwrap();
        one.venus.getattr(entry.node).await.unwrap();
        file.write_all_at(b"-", 4).unwrap();
        one.venus.flush(second.handle, 0).await.unwrap();
        one.venus.flush(first.handle, 0).await.unwrap();
        one.venus.release(first.handle).await.unwrap();
        one.venus.release(second.handle).await.unwrap();
    });
    assert_eq!(seen_elsewhere(&cell), b"abc3-5XYZ");
}

/// A store that the server executed although its reply was lost, and that was retried after a restart, appears as a
/// change by another machine. The kernel continues to write to the file: what it writes and has synced must be at the
/// server.
#[test]
fn passthrough_writes_after_a_repeated_store_are_stored() {
    let (_dir, cell, a) = on_a_disk(6);
    let one = a.clone();
    let opened = cell.on(&a, async move {
        let (_, opened) = one.venus.create(NodeId::ROOT, b"file", 0o644, PASSTHROUGH).await.unwrap();
        opened.backing.clone().unwrap().file.write_all_at(b"first", 0).unwrap();
        one.venus.fsync(opened.handle).await.unwrap();
        opened
    });
    let (file, handle) = (opened.backing.clone().unwrap().file, opened.handle);
    file.write_all_at(b", second", 5).unwrap();
    cell.sim.world().cut(cell.server, a.node);
    let (one, synced) = (a.clone(), Arc::new(AtomicBool::new(false)));
    let done = synced.clone();
    a.env.spawn(Box::pin(async move {
        one.venus.fsync(handle).await.unwrap();
        done.store(true, Ordering::SeqCst);
    }));
    // The server executes the store, and the reply is lost.
    cell.sim.run_for(Duration::from_secs(1));
    cell.restart_server();
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_until(Duration::from_secs(60), || synced.load(Ordering::SeqCst)).unwrap();
    let one = a.clone();
    cell.on(&a, async move {
        file.write_all_at(b", third", 13).unwrap();
        one.venus.fsync(handle).await.unwrap();
    });
    assert_eq!(seen_elsewhere(&cell), b"first, second, third");
}

/// Descriptors above this number do not exist, until it is dropped.
struct FewDescriptors(rustix::process::Rlimit);

impl FewDescriptors {
    fn of(count: u64) -> Self {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum: before.maximum }).unwrap();
        Self(before)
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        rustix::process::setrlimit(rustix::process::Resource::Nofile, self.0).unwrap();
    }
}

/// As many files as there are descriptors may be open; those that are closed cost none when others need them.
#[test]
fn files_of_the_cache_are_open_by_need() {
    const FILES: usize = 400;
    let (_dir, cell, a) = on_a_disk(40);
    let client = a.clone();
    cell.on(&a, async move {
        let _few = FewDescriptors::of(100);
        for number in 0..FILES {
            client.put(&format!("file{number}"), &pattern(100, number as u64)).await.unwrap();
        }
        let mut open = Vec::new();
        let refused = loop {
            match client.open(&format!("file{}", open.len()), OpenFlags::READ).await {
                Ok(handle) => open.push(handle),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.errno(), 23, "{refused}");
        assert!(open.len() > 30, "only {} files are open", open.len());
        for handle in open {
            client.venus.release(handle).await.unwrap();
        }
        let before = client.venus.counters();
        for number in 0..FILES {
            let content = client.get(&format!("file{number}")).await.unwrap();
            assert_eq!(content, pattern(100, number as u64));
        }
        assert_eq!(client.calls_since(&before), [""; 0], "all of it is still in the cache");
    });
}
