//! Versions: writers, breaks, removals and servers that are away, as readers past the cache see them.

use super::*;

/// The report, 5.3.1: with a writer the file is cached, with the last one closed it is not any more.
#[test]
fn a_writer_turns_a_file_to_caching_until_its_last_close() {
    for length in [3000usize, 300_000] {
        let (cell, a, b, cache) = cell(10);
        let old = vec![b'o'; length];
        put(&cell, &a, "__film", &old);
        let reader = open(&cell, &b, "__film", OpenFlags::READ);
        assert!(read(&cell, &b, reader, 0, 2000) == old[..2000]);
        // What is fetched ahead comes before the writer does.
        cell.sim.run_for(Duration::from_secs(1));
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
fn a_file_created_under_a_bypassing_name_is_stored_and_not_cached() {
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
    // Elsewhere it is read at its drive while what the server gave for that is valid.
    let (cell, a, b, _) = with_clients(Cell::by_calls(15));
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
    cell.sim.run_for(Duration::from_secs(10));
    cell.sim.restart(cell.server);
    cell.start_server();
    cell.sim.run_for(Duration::from_secs(60));
    assert!(done.lock().unwrap().take().unwrap().unwrap() == data);
}

#[test]
fn a_file_removed_here_is_read_to_its_end_and_one_removed_elsewhere_is_stale() {
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
