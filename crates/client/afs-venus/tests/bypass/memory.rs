//! Memory of the windows, and readers at the same time.

use super::*;

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
fn read_ahead_follows_the_reader() {
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
fn a_cancelled_reader_delays_no_other() {
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
