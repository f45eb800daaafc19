//! Rules: which files bypass the disk cache.

use super::*;

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
fn a_rename_changes_the_rule_of_the_name() {
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
        let refused = two.venus.set_property(node, b"afs.bypass", b"on").await.unwrap_err();
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
fn a_file_streamed_again_is_cached_if_half_of_the_cache_stays_free() {
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
fn short_files_and_random_reads_are_cached() {
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
