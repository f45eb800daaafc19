//! Visibility of changes among machines.

use crate::common;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{NodeId, OpenFlags, SetAttr};
use bytes::Bytes;
use common::{Cell, Client, pattern};

#[test]
fn after_close_returns_a_new_open_anywhere_sees_the_data() {
    let cell = Cell::new(1);
    let (a, b) = (cell.client(1), cell.client(2));
    for round in 0..5u64 {
        let data = pattern(5000 + round as usize, round);
        let (writer, reader, sent) = (a.clone(), b.clone(), data.clone());
        cell.on(&a, async move { writer.put("file", &sent).await.unwrap() });
        assert_eq!(cell.on(&b, async move { reader.get("file").await.unwrap() }), data, "round {round}");
    }
}

#[test]
fn writes_are_seen_on_the_same_machine_at_once() {
    let cell = Cell::new(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        let writer = client.open_new("file").await.unwrap();
        let reader = client.open("file", OpenFlags::READ).await.unwrap();
        client.venus.write(writer, 0, Bytes::from_static(b"hello")).await.unwrap();
        assert_eq!(client.venus.read(reader, 0, 100).await.unwrap(), "hello");
        assert_eq!(client.find("file").await.unwrap().attr.size, 5);
        client.venus.write(writer, 3, Bytes::from_static(b"p!")).await.unwrap();
        assert_eq!(client.venus.read(reader, 0, 100).await.unwrap(), "help!");
    });
}

#[test]
fn before_close_other_machines_see_the_old_data() {
    let cell = Cell::new(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        one.put("file", b"old").await.unwrap();
        let handle = one.open_new("file").await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"new and longer")).await.unwrap();
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"old");
}

/// The kernel releases a file some time after close(2) has returned, perhaps after the next open.
#[test]
fn a_late_release_stores_no_data_of_a_later_opener() {
    let cell = Cell::new(12);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let second = cell.on(&a, async move {
        let first = one.open_new("file").await.unwrap();
        one.venus.write(first, 0, Bytes::from_static(b"old")).await.unwrap();
        one.venus.flush(first, 0).await.unwrap();
        let second = one.open_new("file").await.unwrap();
        one.venus.write(second, 0, Bytes::from_static(b"half of ")).await.unwrap();
        one.venus.release(first).await.unwrap();
        second
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"old");
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        one.venus.write(second, 8, Bytes::from_static(b"the new")).await.unwrap();
        one.venus.flush(second, 0).await.unwrap();
        one.venus.release(second).await.unwrap();
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"half of the new");
}

/// The same, with a store of another machine in between.
#[test]
fn a_late_release_hides_nothing_that_others_have_stored_since() {
    let cell = Cell::new(13);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let closed = cell.on(&a, async move {
        let closed = one.open_new("file").await.unwrap();
        one.venus.write(closed, 0, Bytes::from_static(b"of one")).await.unwrap();
        one.venus.flush(closed, 0).await.unwrap();
        closed
    });
    cell.on(&b, async move { two.put("file", b"of two").await.unwrap() });
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        let (env, late) = (one.env.clone(), one.venus.clone());
        let pause = env.clone();
        env.spawn(Box::pin(async move {
            pause.sleep(Duration::from_millis(50)).await;
            late.release(closed).await.unwrap();
        }));
        assert_eq!(one.get("file").await.unwrap(), b"of two");
    });
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"of two");
}

#[test]
fn other_changes_are_seen_everywhere_when_the_call_returns() {
    let cell = Cell::new(4);
    let (a, b) = (cell.client(1), cell.client(2));
    let on = |client: &common::Client, work: fn(common::Client) -> common::Work| {
        let mine = client.clone();
        cell.on(client, async move { work(mine).await })
    };
    on(&b, |b| Box::pin(async move { assert_eq!(b.names("").await.unwrap(), [".", ".."]) }));
    on(&a, |a| Box::pin(async move { a.mkdir("dir").await.unwrap() }));
    on(&b, |b| Box::pin(async move { assert_eq!(b.names("").await.unwrap(), [".", "..", "dir"]) }));
    on(&a, |a| {
        Box::pin(async move {
            a.venus.create(NodeId::ROOT, b"x", 0o600, OpenFlags::WRITE).await.unwrap();
        })
    });
    on(&b, |b| Box::pin(async move { assert_eq!(b.find("x").await.unwrap().attr.mode.0, 0o600) }));
    on(&a, |a| {
        Box::pin(async move {
            let node = a.find("x").await.unwrap().node;
            let change = SetAttr { mode: Some(afs_wire::ids::Mode(0o640)), ..SetAttr::default() };
            a.venus.setattr(node, None, change).await.unwrap();
        })
    });
    on(&b, |b| Box::pin(async move { assert_eq!(b.find("x").await.unwrap().attr.mode.0, 0o640) }));
    on(&a, |a| {
        Box::pin(async move {
            let dir = a.find("dir").await.unwrap().node;
            a.venus.rename(NodeId::ROOT, b"x", dir, b"y").await.unwrap();
        })
    });
    on(&b, |b| {
        Box::pin(async move {
            assert_eq!(b.find("x").await.unwrap_err().errno(), 2);
            assert_eq!(b.find("dir/y").await.unwrap().attr.mode.0, 0o640);
        })
    });
    on(&a, |a| {
        Box::pin(async move {
            let dir = a.find("dir").await.unwrap().node;
            assert_eq!(a.venus.rmdir(NodeId::ROOT, b"dir").await.unwrap_err().errno(), 39);
            a.venus.unlink(dir, b"y").await.unwrap();
            a.venus.rmdir(NodeId::ROOT, b"dir").await.unwrap();
        })
    });
    on(&b, |b| Box::pin(async move { assert_eq!(b.names("").await.unwrap(), [".", ".."]) }));
}

#[test]
fn an_open_file_keeps_its_version() {
    let cell = Cell::new(5);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let first = cell.on(&a, async move {
        one.put("file", b"first version").await.unwrap();
        let entry = one.find("file").await.unwrap();
        one.venus.open(entry.node, OpenFlags::READ).await.unwrap()
    });
    cell.on(&b, async move { two.put("file", b"second").await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move {
        assert_eq!(one.read_all(first.handle).await.unwrap(), b"first version");
        assert_eq!(one.get("file").await.unwrap(), b"second");
        let entry = one.find("file").await.unwrap();
        let second = one.venus.open(entry.node, OpenFlags::READ).await.unwrap();
        assert!(
            second.data != first.data && !second.keep_cache,
            "two versions cannot share the kernel's pages"
        );
        assert_eq!(one.read_all(first.handle).await.unwrap(), b"first version");
    });
}

/// The kernel may take note of the second open first, or of one of them only.
#[test]
fn the_pages_of_an_older_version_are_dropped_by_each_open_until_the_kernel_has_dropped_them() {
    let cell = Cell::new(8);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"bytes").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        one.venus.set_property(node, b"afs.flush", b"file").await.unwrap();
        let open = async || one.venus.open(node, OpenFlags::READ).await.unwrap();
        let refused = open().await;
        one.venus.cancel_open(refused.handle).await;
        let (first, second) = (open().await, open().await);
        assert!(!refused.keep_cache && !first.keep_cache && !second.keep_cache);
        assert_eq!(one.read_all(second.handle).await.unwrap(), b"bytes");
        assert!(open().await.keep_cache);
        one.venus.release(first.handle).await.unwrap();
        assert!(open().await.keep_cache);
    });
}

/// Replies to the first reader may reach the kernel after the directory has changed.
#[test]
fn a_kernel_keeps_no_listing_of_a_directory_that_is_open_in_an_older_version() {
    let cell = Cell::new(7);
    let (a, b) = (cell.client(1), cell.client(2));
    let opened = |a: &Client| {
        let one = a.clone();
        cell.on(a, async move { one.venus.opendir(NodeId::ROOT).await.unwrap() })
    };
    let opens_are_anew_until_one_is_closed = || {
        let (first, second) = (opened(&a), opened(&a));
        assert!(first.caches && !first.keep_cache && second.caches && !second.keep_cache);
        a.venus.closedir(NodeId::ROOT);
        let kept = opened(&a);
        assert!(kept.caches && kept.keep_cache);
    };
    opens_are_anew_until_one_is_closed();
    let two = b.clone();
    cell.on(&b, async move { two.put("new", b"").await.unwrap() });
    assert!(!opened(&a).caches && !opened(&a).caches);
    (0..2).for_each(|_| a.venus.closedir(NodeId::ROOT));
    opens_are_anew_until_one_is_closed();
}

#[test]
fn of_two_writers_the_last_to_close_wins_as_a_whole() {
    let cell = Cell::new(6);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let mine = cell.on(&a, async move {
        one.put("file", b"................").await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"aaaa")).await.unwrap();
        handle
    });
    cell.on(&b, async move { two.put("file", b"bbbbbbbbbbbbbbbbbbbbbbbbbbbb").await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(mine, 0).await.unwrap() });
    let two = b.clone();
    assert_eq!(cell.on(&b, async move { two.get("file").await.unwrap() }), b"aaaa............");
}

#[test]
fn an_object_held_by_the_kernel_is_invalidated_when_it_becomes_stale() {
    let cell = Cell::new(7);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let (file, dir) = cell.on(&a, async move {
        one.mkdir("dir").await.unwrap();
        one.put("dir/file", b"x").await.unwrap();
        (one.find("dir/file").await.unwrap().node, one.find("dir").await.unwrap().node)
    });
    a.invalidated.take();
    cell.on(&b, async move { two.put("dir/file", b"changed").await.unwrap() });
    assert_eq!(a.invalidated.take(), [format!("attributes {:x}", file.0)]);
    let two = b.clone();
    cell.on(&b, async move { two.put("dir/more", b"").await.unwrap() });
    assert_eq!(a.invalidated.take(), [format!("attributes {:x}", dir.0), format!("entry {:x} file", dir.0)]);
}

/// A reply about it may be in transit to a caller that will cache it.
#[test]
fn a_stale_object_that_is_not_held_is_counted_too() {
    let cell = Cell::new(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let node = cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        one.find("file").await.unwrap().node
    });
    a.venus.forget(node, a.venus.lookups(node));
    assert_eq!(a.venus.lookups(node), 0);
    a.invalidated.take();
    let before = a.venus.invalidations();
    cell.on(&b, async move { two.put("file", b"changed").await.unwrap() });
    assert!(a.invalidated.take().is_empty());
    assert!(a.venus.invalidations() > before);
}

/// Before it is passed on, another request may have obtained a promise for a newer state.
#[test]
fn a_reply_without_a_promise_is_stale_at_once() {
    let cell = Cell::new(11);
    cell.set_limits(|limits| limits.promise_margin = std::time::Duration::from_secs(1 << 30));
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        let before = one.venus.invalidations();
        one.venus.access(node, afs_venus::Access { read: true, ..Default::default() }).await.unwrap();
        assert!(one.venus.invalidations() > before);
    });
}

#[test]
fn a_lock_on_a_whole_file_holds_on_other_machines() {
    use afs_venus::{LockKind, LockRange};
    let cell = Cell::new(8);
    let (a, b) = (cell.client(1), cell.client(2));
    let (one, two) = (a.clone(), b.clone());
    let mine = cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
        handle
    });
    let theirs = cell.on(&b, async move {
        let handle = two.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let refused =
            two.venus.lock(handle, 9, 2, LockRange::WHOLE, LockKind::Read, false).await.unwrap_err();
        assert_eq!(refused.errno(), 11);
        let holder = two.venus.test_lock(handle, 9, LockRange::WHOLE, LockKind::Read).await.unwrap().unwrap();
        assert_eq!(holder.kind, LockKind::Write);
        handle
    });
    // Longer than a lock lasts by itself at the server: the client extends it.
    cell.sim.run_for(std::time::Duration::from_secs(900));
    let two = b.clone();
    cell.on(&b, async move {
        let refused =
            two.venus.lock(theirs, 9, 2, LockRange::WHOLE, LockKind::Write, false).await.unwrap_err();
        assert_eq!(refused.errno(), 11);
    });
    let one = a.clone();
    cell.on(&a, async move { one.venus.flush(mine, 7).await.unwrap() });
    let two = b.clone();
    cell.on(&b, async move {
        two.venus.lock(theirs, 9, 2, LockRange::WHOLE, LockKind::Write, true).await.unwrap();
        two.venus.unlock(theirs, 9, LockRange::WHOLE).await.unwrap();
    });
}

#[test]
fn a_large_file_that_is_replaced_while_it_is_read_goes_on_with_the_new_version() {
    let cell = Cell::new(9);
    cell.set_limits(|limits| {
        limits.chunk_bytes = 64 << 10;
        limits.read_ahead_chunks = 1;
    });
    let (a, b) = (cell.client(1), cell.client(2));
    let (old, new) = (vec![b'o'; 400_000], vec![b'n'; 400_000]);
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("file", &old).await.unwrap();
        one.venus.set_property(one.find("file").await.unwrap().node, b"afs.flush", b"").await.unwrap();
        let handle = one.open("file", OpenFlags::READ).await.unwrap();
        assert!(one.venus.read(handle, 0, 1000).await.unwrap().iter().all(|byte| *byte == b'o'));
        handle
    });
    let two = b.clone();
    cell.on(&b, async move { two.put("file", &new).await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move {
        for pos in [300_000, 0, 60_000, 390_000] {
            let piece = one.venus.read(handle, pos, 20_000).await.unwrap();
            assert!(piece.iter().all(|byte| *byte == b'n'), "at {pos}");
        }
    });
}

#[test]
fn all_of_this_holds_with_data_on_drives_of_other_kinds() {
    afs_testkit::run_again_over(&["copies/nasd", "round/netscsi"], module_path!(), &[]);
}
