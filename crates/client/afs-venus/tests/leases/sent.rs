//! What sends the changes that were decided: fsync, long files, an orderly stop, locks; and what exceeds the quota.

use afs_venus::OpenFlags;

use super::*;

#[test]
fn what_was_decided_is_at_the_server_after_fsync() {
    let cell = cell(4);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.put("dir/before", b"before").await.unwrap();
        let closed = client.open("dir/before", OpenFlags::READ_WRITE).await.unwrap();
        let lists = client.calls("ChangeList");
        client.venus.fsync(closed).await.unwrap();
        assert_eq!(client.calls("ChangeList"), lists + 1);
        let synced = client.venus.counters();
        client.put("dir/sent", b"sent").await.unwrap();
        assert_eq!(client.calls_since(&synced), [""; 0]);
        let handle = client.open_new("dir/file").await.unwrap();
        client.write_all(handle, b"synced").await.unwrap();
        let written = client.venus.counters();
        client.venus.fsync(handle).await.unwrap();
        assert_eq!(client.calls_since(&written), ["ChangeList 1"], "the data goes with the name");
        client.put("dir/after", b"after").await.unwrap();
        let dir = client.find("dir").await.unwrap().node;
        client.venus.fsync_directory(dir).await.unwrap();
        client.put("dir/lost", b"lost").await.unwrap();
    });
    cell.sim.crash(a.node);
    let b = cell.client(2);
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        assert_eq!(all["file"], b"synced");
        assert_eq!((&all["before"][..], &all["after"][..]), (&b"before"[..], &b"after"[..]));
        assert!(!all.contains_key("lost"), "this test would notice nothing");
    });
}

#[test]
fn larger_files_are_sent_in_their_place_and_long_or_open_ones_stored_as_ever() {
    let cell = cell(5);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
        let before = client.venus.counters();
        for n in 0..20 {
            client.put(&format!("dir/large{n}"), &pattern(17_000 + 6000 * n, n as u64)).await.unwrap();
        }
        client.put("dir/small", b"small").await.unwrap();
        assert!(
            client.venus.activity().leases.waiting_changes > 20,
            "a close waits for what was closed before"
        );
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls_since(&before), ["ChangeList 21", "StoreRanges 20"]);
        let (before, stores) = (client.venus.counters(), client.stores());
        client.put("dir/long", &pattern(600_000, 1)).await.unwrap();
        let calls = client.calls_since(&before);
        assert!(calls.contains(&"ChangeList 1".into()) && client.stores() == stores + 1, "{calls:?}");
        let handle = client.open_new("dir/open").await.unwrap();
        client.write_all(handle, b"not closed").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
    });
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        for n in 0..20 {
            assert_eq!(all[&format!("large{n}")], pattern(17_000 + 6000 * n, n as u64));
        }
        assert_eq!(all["long"], pattern(600_000, 1));
        assert_eq!((&all["small"][..], &all["open"][..]), (&b"small"[..], &b""[..]));
    });
}

#[test]
fn an_orderly_stop_sends_what_was_decided() {
    let cell = cell(7);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.put("dir/last", b"last").await.unwrap();
        client.venus.shut_down().await.unwrap();
    });
    cell.sim.crash(a.node);
    let other = b.clone();
    cell.on(&b, async move { assert_eq!(other.get("dir/last").await.unwrap(), b"last") });
}

#[test]
fn the_quota_is_reported_where_it_is_exceeded() {
    let cell = cell(8);
    let a = cell.client(1);
    let client = a.clone();
    let (made, kinds) = cell.on(&a, async move {
        client.mount("small", &format!("%{}.", common::SMALL)).await.unwrap();
        let (mut made, mut kinds) = (Vec::new(), Vec::new());
        for n in 0..60 {
            match client.put(&format!("small/file{n}"), &[7; 1000]).await {
                Ok(()) => made.push(n),
                Err(error) => kinds.push(error.kind),
            }
        }
        client.env.sleep(Duration::from_secs(3)).await;
        assert_eq!(client.venus.counters().leases_lost, 0);
        (made, kinds)
    });
    assert!(
        made.len() > 5 && !kinds.is_empty() && kinds.iter().all(|kind| *kind == ErrorKind::OverQuota),
        "{made:?} {kinds:?}"
    );
    let b = cell.client(2);
    let other = b.clone();
    cell.on(&b, async move {
        for n in made {
            assert_eq!(other.get(&format!("small/file{n}")).await.unwrap(), [7; 1000], "{n}");
        }
    });
}

#[test]
fn a_lock_comes_after_what_was_decided() {
    let cell = cell(9);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.put("dir/file", b"first").await.unwrap();
        let handle = client.open("dir/file", OpenFlags::READ_WRITE).await.unwrap();
        let (kind, range) = (afs_venus::LockKind::Write, afs_venus::LockRange::WHOLE);
        client.venus.lock(handle, 1, 1, range, kind, false).await.unwrap();
        client.write_all(handle, b"other").await.unwrap();
        client.venus.flush(handle, 1).await.unwrap();
        client.venus.release(handle).await.unwrap();
    });
    cell.sim.crash(a.node);
    let other = b.clone();
    cell.on(&b, async move { assert_eq!(other.get("dir/file").await.unwrap(), b"other") });
}
