//! Files that bypass the disk cache (CITI TR 01-3, section 5).

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{
    CacheStore, ErrorKind, HandleId, LockKind, LockRange, MemoryCache, NodeId, OpenFlags, SetAttr,
};
use afs_wire::ids::Mode;
use bytes::Bytes;
use common::{Cell, Client, VIDEO, pattern};

/// What is kept beside files: nothing of a file.
const LITTLE: u64 = 8 << 10;
const CHUNK: u64 = 64 << 10;
const CACHE: u64 = 4 << 20;

/// A cell with small chunks, a client that writes, and another one with its cache.
fn cell(seed: u64) -> (Cell, Client, Client, Arc<MemoryCache>) {
    let cell = Cell::new(seed);
    cell.set_limits(|limits| {
        limits.chunk_bytes = CHUNK;
        limits.read_ahead_chunks = 2;
        limits.bypass.stream_percent = Some(25);
        limits.bypass.window_bytes = 8 * CHUNK;
        limits.bypass.bytes_max = 32 * CHUNK;
    });
    let a = cell.client(1);
    let cache = Arc::new(MemoryCache::new(CACHE));
    let b = cell.client_with(2, cache.clone());
    (cell, a, b, cache)
}

fn put(cell: &Cell, a: &Client, path: &'static str, data: &[u8]) {
    let (one, data) = (a.clone(), data.to_vec());
    cell.on(a, async move { one.put(path, &data).await.unwrap() });
}

fn get(cell: &Cell, b: &Client, path: &'static str) -> Vec<u8> {
    let two = b.clone();
    cell.on(b, async move { two.get(path).await.unwrap() })
}

fn open(cell: &Cell, b: &Client, path: &'static str, flags: OpenFlags) -> HandleId {
    let two = b.clone();
    cell.on(b, async move { two.open(path, flags).await.unwrap() })
}

fn read(cell: &Cell, b: &Client, handle: HandleId, pos: u64, len: usize) -> Vec<u8> {
    try_read(cell, b, handle, pos, len).unwrap()
}

fn try_read(cell: &Cell, b: &Client, handle: HandleId, pos: u64, len: usize) -> afs_venus::Result<Vec<u8>> {
    let two = b.clone();
    cell.on(b, async move { two.venus.read(handle, pos, len).await.map(|bytes| bytes.to_vec()) })
}

/// Writes at the beginning of a file that is open for that.
fn write(cell: &Cell, b: &Client, handle: HandleId, data: &'static [u8]) {
    let two = b.clone();
    cell.on(b, async move {
        assert_eq!(two.venus.write(handle, 0, Bytes::from_static(data)).await.unwrap(), data.len())
    });
}

fn close(cell: &Cell, b: &Client, handle: HandleId) {
    let two = b.clone();
    cell.on(b, async move {
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
}

/// Looked up by its name, as a kernel does.
async fn node(client: &Client, path: &str) -> NodeId {
    if path.is_empty() { NodeId::ROOT } else { client.find(path).await.unwrap().node }
}

/// What `afs.bypass` tells, and what it is set to.
fn told(cell: &Cell, b: &Client, path: &'static str) -> String {
    let two = b.clone();
    let value = cell.on(b, async move {
        let node = node(&two, path).await;
        two.venus.getxattr(node, b"afs.bypass").await.unwrap()
    });
    String::from_utf8(value.to_vec()).unwrap()
}

fn request(cell: &Cell, b: &Client, path: &'static str, word: &'static str) -> afs_venus::Result<()> {
    let two = b.clone();
    cell.on(b, async move {
        let node = node(&two, path).await;
        two.venus.setxattr(node, b"afs.bypass", word.as_bytes()).await
    })
}

/// How many bytes of a file go through the cache, and how many past it, when it is read.
fn ways(cell: &Cell, b: &Client, path: &'static str, data: &[u8]) -> (u64, u64) {
    let before = b.venus.counters();
    assert!(get(cell, b, path) == data, "{path}");
    cell.sim.run_for(Duration::from_secs(1));
    let after = b.venus.counters();
    let past = after.bytes_bypassed - before.bytes_bypassed;
    (after.bytes_fetched - before.bytes_fetched - past, past)
}

#[test]
fn names_of_files_and_of_volumes_say_what_bypasses_the_cache() {
    for length in [3000usize, 5 * CHUNK as usize + 123] {
        let (cell, a, b, cache) = cell(1);
        let data = pattern(length, 1);
        let one = a.clone();
        cell.on(&a, async move {
            one.mount("video", &format!("#{VIDEO}.")).await.unwrap();
        });
        for path in ["film", "__DontCacheMe", "video/film", "video/++CacheThisFile", "video/__film"] {
            put(&cell, &a, path, &data);
        }
        get(&cell, &b, "film");
        for (path, is_past) in [("__DontCacheMe", true), ("video/film", true), ("video/__film", true)] {
            let used = cache.bytes_used();
            // Directories are fetched with the first look at them.
            let (_, past) = ways(&cell, &b, path, &data);
            assert_eq!((is_past, past), (true, length as u64), "{path}");
            assert!(cache.bytes_used() <= used + LITTLE, "{path} is in the cache");
            // And once more: nothing of it stayed.
            assert_eq!(ways(&cell, &b, path, &data), (0, length as u64), "{path}");
        }
        let (cached, past) = ways(&cell, &b, "video/++CacheThisFile", &data);
        assert_eq!((cached, past), (length as u64, 0));
        for path in ["video/++CacheThisFile", "film"] {
            assert_eq!(ways(&cell, &b, path, &data), (0, 0), "{path} stays in the cache");
        }
        assert_eq!(b.venus.counters().files_bypassed, 6);
        assert_eq!(b.venus.bypass_bytes(), 0, "nothing is open any more");
    }
}

#[test]
fn a_rename_changes_what_the_name_says() {
    let (cell, a, b, _) = cell(2);
    let data = pattern(3000, 2);
    put(&cell, &a, "__film", &data);
    assert_eq!(ways(&cell, &b, "__film", &data).1, 3000);
    let two = b.clone();
    cell.on(
        &b,
        async move { two.venus.rename(NodeId::ROOT, b"__film", NodeId::ROOT, b"film").await.unwrap() },
    );
    assert_eq!(ways(&cell, &b, "film", &data).1, 0);
    // By another machine, too.
    let one = a.clone();
    cell.on(
        &a,
        async move { one.venus.rename(NodeId::ROOT, b"film", NodeId::ROOT, b"__film").await.unwrap() },
    );
    let two = b.clone();
    cell.on(&b, async move { assert_eq!(two.find("film").await.unwrap_err().errno(), 2) });
    assert!(told(&cell, &b, "__film").contains("file name"));
    cell.on(&a, {
        let one = a.clone();
        async move { one.venus.rename(NodeId::ROOT, b"__film", NodeId::ROOT, b"film").await.unwrap() }
    });
    assert!(told(&cell, &b, "film").contains("none"));
}

#[test]
fn a_request_decides_for_a_file_and_is_told() {
    let (cell, a, b, cache) = cell(3);
    let data = pattern(200_000, 3);
    put(&cell, &a, "film", &data);
    put(&cell, &a, "__film", &data);
    assert_eq!(ways(&cell, &b, "film", &data).1, 0);
    assert!(cache.bytes_used() >= 200_000);
    assert_eq!(told(&cell, &b, "film"), r#"{"request":"auto","bypassed":false,"reason":"none"}"#);
    request(&cell, &b, "film", "on").unwrap();
    assert!(cache.bytes_used() <= LITTLE, "what was kept is of no use any more");
    assert_eq!(told(&cell, &b, "film"), r#"{"request":"on","bypassed":true,"reason":"request"}"#);
    assert_eq!(ways(&cell, &b, "film", &data), (0, 200_000));
    request(&cell, &b, "film", "auto").unwrap();
    assert_eq!(ways(&cell, &b, "film", &data), (200_000, 0));
    assert_eq!(told(&cell, &b, "__film"), r#"{"request":"auto","bypassed":true,"reason":"file name"}"#);
    request(&cell, &b, "__film", "off\n").unwrap();
    assert_eq!(told(&cell, &b, "__film"), r#"{"request":"off","bypassed":false,"reason":"request"}"#);
    assert_eq!(ways(&cell, &b, "__film", &data), (200_000, 0));
    // Of a directory it is told what its volume says.
    assert_eq!(told(&cell, &b, ""), r#"{"request":"auto","bypassed":false,"reason":"none"}"#);
    assert_eq!(request(&cell, &b, "", "on").unwrap_err().errno(), 22);
    assert_eq!(request(&cell, &b, "film", "maybe").unwrap_err().errno(), 22);
}

#[test]
fn a_request_needs_the_right_to_read_the_file() {
    let (cell, a, b, _) = cell(4);
    for (name, id) in [("alice", 11), ("bob", 12)] {
        cell.users.add(name, id);
    }
    let one = a.user(1);
    cell.on(&a, async move {
        one.log_in(1, "alice").await;
        one.mkdir("dir").await.unwrap();
        one.put("dir/film", b"x").await.unwrap();
        one.set_acl("dir", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        let change = SetAttr { mode: Some(Mode(0)), ..SetAttr::default() };
        one.venus.setattr(one.find("dir/film").await.unwrap().node, None, change).await.unwrap();
    });
    let two = b.user(2);
    cell.on(&b, async move {
        two.log_in(2, "bob").await;
        let node = two.find("dir/film").await.unwrap().node;
        let refused = two.venus.setxattr(node, b"afs.bypass", b"on").await.unwrap_err();
        assert_eq!(refused.errno(), 13);
    });
}

#[test]
fn files_of_a_length_bypass_the_cache_where_the_mount_says_so() {
    let (cell, a, _, _) = cell(5);
    cell.set_limits(|limits| limits.bypass.length_min = Some(100_000));
    let b = cell.client(3);
    for (path, length, past) in [("short", 99_999, 0), ("long", 100_000, 100_000), ("++long", 100_000, 0)] {
        let data = pattern(length, 5);
        put(&cell, &a, path, &data);
        assert_eq!(ways(&cell, &b, path, &data).1, past, "{path}");
    }
    assert_eq!(told(&cell, &b, "long"), r#"{"request":"auto","bypassed":true,"reason":"length"}"#);
    // The length counts that a file has when its writer closes it.
    let data = pattern(100_000, 6);
    put(&cell, &b, "written here", &data);
    assert_eq!(ways(&cell, &b, "written here", &data), (0, 100_000));
}

/// The cache is full of what is in use when something four times as long as the cache is read from one end to the other.
#[test]
fn a_stream_larger_than_the_cache_leaves_the_other_files_cached() {
    const NAMES: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];
    let (cell, a, b, cache) = cell(6);
    let stream = pattern(4 * CACHE as usize, 6);
    put(&cell, &a, "stream", &stream);
    // Their room, and some for the first chunks of the stream, with what is fetched ahead of it.
    let length = (CACHE - 12 * CHUNK) as usize / NAMES.len();
    for name in NAMES {
        put(&cell, &a, name, &pattern(length, name.len() as u64));
        get(&cell, &b, name);
    }
    let (cached, past) = ways(&cell, &b, "stream", &stream);
    assert!(cached <= 8 * CHUNK && past >= 4 * CACHE - 8 * CHUNK, "{cached} cached, {past} past");
    assert!(cache.bytes_used() <= CACHE);
    for name in NAMES {
        assert_eq!(ways(&cell, &b, name, &pattern(length, name.len() as u64)), (0, 0), "{name} was dropped");
    }
    // Nor the second time: it would take more than half of the cache.
    assert!(ways(&cell, &b, "stream", &stream).1 >= 4 * CACHE - 8 * CHUNK);
}

#[test]
fn what_is_read_from_one_end_to_the_other_again_is_cached_if_it_leaves_half_of_the_cache() {
    let (cell, a, b, _) = cell(7);
    let data = pattern(CACHE as usize * 3 / 8, 7);
    put(&cell, &a, "film", &data);
    assert!(ways(&cell, &b, "film", &data).1 >= data.len() as u64 - 8 * CHUNK);
    assert_eq!(ways(&cell, &b, "film", &data).1, 0, "it is no stream of one time");
    assert_eq!(ways(&cell, &b, "film", &data), (0, 0));
    // Another version is another stream.
    let data = pattern(CACHE as usize * 3 / 8, 8);
    put(&cell, &a, "film", &data);
    assert!(ways(&cell, &b, "film", &data).1 > 0);
}

#[test]
fn what_is_read_here_and_there_or_is_short_is_cached() {
    let (cell, a, b, _) = cell(8);
    let long = pattern(CACHE as usize * 3 / 4, 9);
    put(&cell, &a, "long", &long);
    let handle = open(&cell, &b, "long", OpenFlags::READ);
    for n in 0..40 {
        let pos = (n * 17 % 40) * long.len() as u64 / 41;
        assert!(read(&cell, &b, handle, pos, 5000) == long[pos as usize..pos as usize + 5000]);
    }
    close(&cell, &b, handle);
    let short = pattern(CACHE as usize / 5, 10);
    put(&cell, &a, "short", &short);
    ways(&cell, &b, "short", &short);
    assert_eq!(b.venus.counters().bytes_bypassed, 0);
}

#[test]
fn streams_are_cached_where_the_mount_says_so() {
    let (cell, a, _, _) = cell(9);
    cell.set_limits(|limits| limits.bypass.stream_percent = None);
    let b = cell.client_with(3, Arc::new(MemoryCache::new(CACHE)));
    let data = pattern(2 * CACHE as usize, 11);
    put(&cell, &a, "stream", &data);
    assert_eq!(ways(&cell, &b, "stream", &data).1, 0);
}

/// The report, 5.3.1: with a writer the file is cached, with the last one closed it is not any more.
#[test]
fn a_writer_turns_a_file_to_caching_until_its_last_close() {
    for length in [3000usize, 300_000] {
        let (cell, a, b, cache) = cell(10);
        let old = vec![b'o'; length];
        put(&cell, &a, "__film", &old);
        let reader = open(&cell, &b, "__film", OpenFlags::READ);
        assert!(read(&cell, &b, reader, 0, 2000) == old[..2000]);
        let writer = open(&cell, &b, "__film", OpenFlags::READ_WRITE);
        assert!(told(&cell, &b, "__film").contains("open for writing"));
        write(&cell, &b, writer, b"new");
        let past = b.venus.counters().bytes_bypassed;
        // At once on this machine, through either handle, also what the reader had read before.
        for handle in [reader, writer] {
            let seen = read(&cell, &b, handle, 0, 2000);
            assert!(seen[..3] == *b"new" && seen[3..] == old[3..2000]);
            let end = read(&cell, &b, handle, length as u64 - 1000, 2000);
            assert!(end == old[length - 1000..]);
        }
        assert_eq!(b.venus.counters().bytes_bypassed, past, "it is cached for now");
        assert!(get(&cell, &a, "__film") == old, "others see it after the close");
        close(&cell, &b, writer);
        assert!(get(&cell, &a, "__film")[..4] == *b"newo");
        assert!(read(&cell, &b, reader, 0, 4) == *b"newo");
        close(&cell, &b, reader);
        assert!(cache.bytes_used() <= LITTLE, "{} bytes stay in the cache", cache.bytes_used());
        let (cached, past) = ways(&cell, &b, "__film", &get(&cell, &a, "__film"));
        assert_eq!((cached, past), (0, length as u64));
    }
}

#[test]
fn what_is_created_and_written_under_such_a_name_is_stored_and_not_kept() {
    let (cell, a, b, cache) = cell(11);
    let data = pattern(500_000, 12);
    put(&cell, &b, "__film", &data);
    assert!(cache.bytes_used() <= LITTLE);
    assert!(get(&cell, &a, "__film") == data);
    assert_eq!(ways(&cell, &b, "__film", &data), (0, 500_000));
}

#[test]
fn an_open_file_that_bypasses_the_cache_goes_on_with_the_newest_version() {
    for length in [3000usize, 1 << 20] {
        let (cell, a, b, _) = cell(12);
        put(&cell, &a, "__film", &vec![b'o'; length]);
        let handle = open(&cell, &b, "__film", OpenFlags::READ);
        assert!(read(&cell, &b, handle, 0, 1000).iter().all(|byte| *byte == b'o'));
        put(&cell, &a, "__film", &vec![b'n'; length]);
        // Every read is of one version; what was fetched before may be read for as long as it is in memory.
        let mut is_new = false;
        for n in 0..40 {
            let pos = (n * 17 % 40) * length as u64 / 41;
            let seen = read(&cell, &b, handle, pos, 3 * CHUNK as usize);
            let new = seen.iter().filter(|byte| **byte == b'n').count();
            assert!(new == 0 || new == seen.len(), "two versions in one read at {pos}");
            assert!(new > 0 || !is_new, "the old one comes back at {pos}");
            is_new |= new > 0;
        }
        assert!(is_new || length < CHUNK as usize);
        // Whoever opens it now sees the new version from the first byte on.
        assert!(get(&cell, &b, "__film").iter().all(|byte| *byte == b'n'));
        close(&cell, &b, handle);
    }
}

#[test]
fn after_a_break_a_new_open_sees_the_new_data() {
    let (cell, a, b, _) = cell(13);
    for round in 0..5u64 {
        let data = pattern(100_000 + round as usize, round);
        put(&cell, &a, "__film", &data);
        assert!(get(&cell, &b, "__film") == data, "round {round}");
    }
    // A restart of the server, too.
    let (handle, data) = (open(&cell, &b, "__film", OpenFlags::READ), pattern(100_004, 4));
    assert!(read(&cell, &b, handle, 0, 100) == data[..100]);
    cell.restart_server();
    assert!(read(&cell, &b, handle, 90_000, 1000) == data[90_000..91_000]);
    let data = pattern(100_000, 77);
    put(&cell, &a, "__film", &data);
    cell.sim.run_for(Duration::from_secs(75));
    assert!(get(&cell, &b, "__film") == data);
}

#[test]
fn the_holder_of_a_lock_sees_the_newest_version_past_the_cache_too() {
    let (cell, a, b, _) = cell(14);
    put(&cell, &a, "__film", &[b'o'; 100_000]);
    let handle = open(&cell, &b, "__film", OpenFlags::READ);
    assert!(read(&cell, &b, handle, 0, 100).iter().all(|byte| *byte == b'o'));
    put(&cell, &a, "__film", &[b'n'; 100_000]);
    let two = b.clone();
    cell.on(&b, async move {
        two.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Read, false).await.unwrap();
    });
    assert!(read(&cell, &b, handle, 0, 100).iter().all(|byte| *byte == b'n'));
}

#[test]
fn without_its_server_a_file_that_bypasses_the_cache_is_an_error_in_bounded_time() {
    let (cell, a, b, _) = cell(15);
    let data = pattern(2 << 20, 15);
    put(&cell, &a, "__film", &data);
    put(&cell, &a, "other", b"cached");
    get(&cell, &b, "other");
    let handle = open(&cell, &b, "__film", OpenFlags::READ);
    assert!(read(&cell, &b, handle, 0, 1000) == data[..1000]);
    cell.sim.run_for(Duration::from_secs(1));
    cell.sim.crash(cell.server);
    // What was fetched can be read, and what is cached.
    assert!(read(&cell, &b, handle, 1000, 1000) == data[1000..2000]);
    assert_eq!(get(&cell, &b, "other"), b"cached");
    let before = cell.sim.now();
    let failed = try_read(&cell, &b, handle, 1 << 20, 1000).unwrap_err();
    assert_eq!(failed.kind, ErrorKind::ServerUnreachable, "{failed}");
    assert!(cell.sim.now() - before <= Duration::from_secs(61));
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(Duration::from_secs(10));
    assert!(read(&cell, &b, handle, 1 << 20, 1000) == data[1 << 20..(1 << 20) + 1000]);
}

#[test]
fn a_restart_of_the_server_is_a_pause_for_a_reader_past_the_cache() {
    let (cell, a, b, _) = cell(16);
    let data = pattern(4 << 20, 16);
    put(&cell, &a, "__film", &data);
    let two = b.clone();
    let done = Arc::new(std::sync::Mutex::new(None));
    let tell = done.clone();
    b.env.spawn(Box::pin(async move {
        let seen = two.get("__film").await;
        *tell.lock().unwrap() = Some(seen);
    }));
    cell.sim.run_for(Duration::from_millis(20));
    assert!(done.lock().unwrap().is_none(), "it is read already");
    cell.sim.crash(cell.server);
    cell.sim.run_for(Duration::from_secs(20));
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(Duration::from_secs(60));
    assert!(done.lock().unwrap().take().unwrap().unwrap() == data);
}

#[test]
fn what_is_removed_here_is_read_to_its_end_and_what_others_remove_is_stale() {
    let (cell, a, b, _) = cell(17);
    let data = pattern(1 << 20, 17);
    for path in ["__one", "__two"] {
        put(&cell, &a, path, &data);
    }
    let (one, two) = (open(&cell, &b, "__one", OpenFlags::READ), open(&cell, &b, "__two", OpenFlags::READ));
    let here = b.clone();
    cell.on(&b, async move { here.venus.unlink(NodeId::ROOT, b"__one").await.unwrap() });
    let client = b.clone();
    assert!(cell.on(&b, async move { client.read_all(one).await.unwrap() }) == data);
    close(&cell, &b, one);
    let there = a.clone();
    cell.on(&a, async move { there.venus.unlink(NodeId::ROOT, b"__two").await.unwrap() });
    assert_eq!(try_read(&cell, &b, two, 0, 1000).unwrap_err().errno(), 116);
}

#[test]
fn a_right_that_is_removed_keeps_a_user_from_opening_what_bypasses_the_cache() {
    let (cell, a, b, _) = cell(18);
    cell.users.add("alice", 11);
    let one = a.user(1);
    cell.on(&a, async move {
        one.log_in(1, "alice").await;
        one.mkdir("dir").await.unwrap();
        one.put("dir/__film", b"secret").await.unwrap();
    });
    assert_eq!(get(&cell, &b, "dir/__film"), b"secret");
    let one = a.user(1);
    cell.on(&a, async move {
        one.set_acl("dir", &[("alice", "rlidwka")]).await.unwrap();
    });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("dir/__film").await.unwrap_err().errno() }), 13);
}

/// Forty readers at a time, with memory for four windows.
#[test]
fn any_number_of_readers_past_the_cache_keep_within_the_memory_for_them() {
    let (cell, a, b, cache) = cell(19);
    let data = Arc::new(pattern(1 << 20, 19));
    put(&cell, &a, "__film", &data);
    let handles: Vec<HandleId> = (0..40).map(|_| open(&cell, &b, "__film", OpenFlags::READ)).collect();
    let left = Arc::new(std::sync::atomic::AtomicUsize::new(handles.len()));
    for (n, handle) in handles.iter().copied().enumerate() {
        let (two, data, left) = (b.clone(), data.clone(), left.clone());
        b.env.spawn(Box::pin(async move {
            let mut at = n as u64 * 1000;
            while at < data.len() as u64 {
                let seen = two.venus.read(handle, at, 30_000).await.unwrap();
                let end = (at as usize + 30_000).min(data.len());
                assert!(seen == data[at as usize..end], "reader {n} at {at}");
                at = end as u64;
                assert!(two.venus.bypass_bytes() <= 32 * CHUNK, "{} bytes", two.venus.bypass_bytes());
            }
            left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        }));
    }
    for _ in 0..3000 {
        if left.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            break;
        }
        cell.sim.run_for(Duration::from_millis(100));
        assert!(b.venus.bypass_bytes() <= 32 * CHUNK);
    }
    assert_eq!(left.load(std::sync::atomic::Ordering::SeqCst), 0, "readers wait for ever");
    handles.into_iter().for_each(|handle| close(&cell, &b, handle));
    assert_eq!((b.venus.bypass_bytes(), b.venus.counters().files_bypassed), (0, 40));
    assert!(cache.bytes_used() <= LITTLE);
}

/// A reader that jumps asks for what it wants and for nothing else; one that reads on is fetched ahead of.
#[test]
fn what_is_fetched_follows_the_reader() {
    let (cell, a, b, _) = cell(20);
    let data = pattern(4 << 20, 20);
    put(&cell, &a, "__film", &data);
    let handle = open(&cell, &b, "__film", OpenFlags::READ);
    for n in [30u64, 7, 55, 20] {
        let before = b.venus.counters().bytes_bypassed;
        assert!(read(&cell, &b, handle, n * CHUNK, 1000) == data[(n * CHUNK) as usize..][..1000]);
        cell.sim.run_for(Duration::from_secs(1));
        assert!(b.venus.counters().bytes_bypassed - before <= CHUNK, "at {n}");
    }
    let before = b.venus.counters().bytes_bypassed;
    read(&cell, &b, handle, 20 * CHUNK + 1000, 1000);
    cell.sim.run_for(Duration::from_secs(1));
    let ahead = b.venus.counters().bytes_bypassed - before;
    assert!((2 * CHUNK..=8 * CHUNK).contains(&ahead), "{ahead}");
    let calls = b.calls("FetchData64");
    read(&cell, &b, handle, 20 * CHUNK + 2000, CHUNK as usize);
    assert!(b.calls("FetchData64") <= calls + 1, "what was fetched ahead is there");
    close(&cell, &b, handle);
}

/// Two machines, one of which rewrites files of one byte value each time, and readers here and there on the other one, with a
/// writer there, too, now and then.
#[test]
fn readers_past_the_cache_see_whole_versions_and_never_older_ones() {
    for seed in 0..3 {
        let (cell, a, b, _) = cell(30 + seed);
        let length = 300_000;
        put(&cell, &a, "__film", &vec![0; length]);
        let mut handles: Vec<(HandleId, u8)> = Vec::new();
        let mut version = 0u8;
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..120 {
            match random(8) {
                0 => {
                    version += 1;
                    put(&cell, if random(3) == 0 { &b } else { &a }, "__film", &vec![version; length]);
                }
                1 if handles.len() < 5 => {
                    handles.push((open(&cell, &b, "__film", OpenFlags::READ), version));
                }
                2 if !handles.is_empty() => {
                    let (handle, _) = handles.swap_remove(random(handles.len() as u64) as usize);
                    close(&cell, &b, handle);
                }
                _ if !handles.is_empty() => {
                    let n = random(handles.len() as u64) as usize;
                    let pos = random(length as u64 - 1);
                    let seen = read(&cell, &b, handles[n].0, pos, 100_000);
                    assert!(
                        !seen.is_empty() && seen.iter().all(|byte| *byte == seen[0]),
                        "seed {seed}: mixed"
                    );
                    assert!((handles[n].1..=version).contains(&seen[0]), "seed {seed}: an older one");
                    handles[n].1 = seen[0];
                }
                _ => {}
            }
        }
        assert!(version > 5);
    }
}

/// `truncate` and writes beyond the end go through the cache, and nothing of before is read afterwards.
#[test]
fn a_file_that_bypasses_the_cache_can_be_cut_and_grown() {
    let (cell, a, b, _) = cell(21);
    put(&cell, &a, "__film", &[b'o'; 200_000]);
    let reader = open(&cell, &b, "__film", OpenFlags::READ);
    assert!(read(&cell, &b, reader, 150_000, 10) == [b'o'; 10]);
    let two = b.clone();
    cell.on(&b, async move {
        let node = two.find("__film").await.unwrap().node;
        for size in [100_000, 200_000] {
            let change = SetAttr { size: Some(size), ..SetAttr::default() };
            two.venus.setattr(node, None, change).await.unwrap();
        }
    });
    assert!(read(&cell, &b, reader, 150_000, 10) == [0; 10]);
    assert!(read(&cell, &b, reader, 99_995, 10) == [b'o', b'o', b'o', b'o', b'o', 0, 0, 0, 0, 0]);
    close(&cell, &b, reader);
    let seen = get(&cell, &a, "__film");
    assert!(seen.len() == 200_000 && seen[150_000] == 0 && seen[99_999] == b'o');
}

/// A program that is killed while it waits is not in the way of another one that reads the same.
#[test]
fn a_reader_that_is_given_up_holds_up_nobody() {
    let (cell, a, b, _) = cell(22);
    let data = pattern(1 << 20, 22);
    put(&cell, &a, "__film", &data);
    let handle = open(&cell, &b, "__film", OpenFlags::READ);
    let two = b.clone();
    cell.on(&b, async move {
        for n in 0..8u64 {
            let wait = Duration::from_micros(200 * n);
            let _ = two.env.timeout(wait, two.venus.read(handle, n * 100_000, 50_000)).await;
        }
    });
    let client = b.clone();
    assert!(cell.on(&b, async move { client.read_all(handle).await.unwrap() }) == data);
    close(&cell, &b, handle);
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(b.venus.bypass_bytes(), 0);
}
