//! Pins: trees that are complete in the cache, whatever is read, changed or cut off.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;
mod offline;

use std::sync::Arc;
use std::time::Duration;

use afs_venus::{MemoryCache, NodeId, OpenFlags, PinOptions, PinState, Pinned, TokenOwner, Unpinned};
use common::{Cell, Client, SUCCESSOR, pattern};

const USER: TokenOwner = TokenOwner::Uid(1);
const ROOT: TokenOwner = TokenOwner::Uid(0);

/// A cell with a tree that client 1 has made: two directories, a file of two chunks, an empty one, a link.
fn cell_with_tree(seed: u64) -> (Cell, Client) {
    let cell = Cell::new(seed);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mkdir("tree").await.unwrap();
        one.mkdir("tree/below").await.unwrap();
        one.put("tree/large", &pattern(1_500_000, 1)).await.unwrap();
        one.put("tree/empty", b"").await.unwrap();
        one.put("tree/below/small", &pattern(3000, 2)).await.unwrap();
        let tree = one.find("tree").await.unwrap().node;
        one.venus.symlink(tree, b"link", b"below/small").await.unwrap();
        one.put("other", &pattern(3000, 3)).await.unwrap();
    });
    (cell, a)
}

fn pin(
    cell: &Cell,
    client: &Client,
    owner: TokenOwner,
    path: &'static str,
    all: bool,
) -> Result<u64, Unpinned> {
    let venus = client.venus.clone();
    let options = PinOptions { is_recursive: all, is_offline: false };
    cell.on(client, async move { venus.pin(owner, path.as_bytes(), options).await })
}

fn unpin(cell: &Cell, client: &Client, owner: TokenOwner, path: &'static str) -> Result<(), Unpinned> {
    let venus = client.venus.clone();
    cell.on(client, async move { venus.unpin(owner, path.as_bytes()).await })
}

/// The only pin, when nothing is being fetched for it any more.
fn settled(cell: &Cell, client: &Client) -> Pinned {
    for _ in 0..100 {
        cell.sim.run_for(Duration::from_secs(2));
        let [pin]: [Pinned; 1] = client.venus.pins(ROOT, 0).try_into().unwrap();
        if pin.state != PinState::Fetching {
            return pin;
        }
    }
    panic!("it is never done: {:?}", client.venus.pins(ROOT, 0));
}

fn cut(cell: &Cell, client: &Client) {
    cell.sim.world().cut(client.node, cell.server);
    cell.sim.world().cut(cell.server, client.node);
}

fn get(cell: &Cell, client: &Client, path: &'static str) -> afs_venus::Result<Vec<u8>> {
    let client = client.clone();
    cell.on(&client.clone(), async move { client.get(path).await })
}

#[test]
fn a_pinned_tree_is_complete_and_read_without_its_server() {
    for seed in 0..8 {
        let (cell, _) = cell_with_tree(seed);
        let b = cell.client(2);
        pin(&cell, &b, USER, "/tree/", true).unwrap();
        let pinned = settled(&cell, &b);
        assert_eq!((pinned.state, pinned.reason.as_deref()), (PinState::Complete, None));
        assert_eq!((pinned.objects, pinned.missing_objects), (6, 0));
        assert_eq!((pinned.bytes, pinned.missing_bytes), (1_503_000, 0));
        assert_eq!((&*pinned.path, pinned.uid, pinned.is_recursive), ("tree", Some(1), true));
        cut(&cell, &b);
        let two = b.clone();
        cell.on(&b, async move {
            assert_eq!(two.names("tree").await.unwrap().len(), 6);
            assert_eq!(two.get("tree/large").await.unwrap(), pattern(1_500_000, 1));
            assert_eq!(two.get("tree/empty").await.unwrap(), b"");
            assert_eq!(two.venus.walk(b"tree/link", true).await.unwrap().attr.size, 3000);
            assert_eq!(two.get("tree/below/small").await.unwrap(), pattern(3000, 2));
            two.get("other").await.unwrap_err();
        });
    }
}

#[test]
fn what_is_pinned_stays_whatever_else_is_read() {
    let (cell, a) = cell_with_tree(20);
    let one = a.clone();
    cell.on(&a, async move {
        for (n, name) in ["x1", "x2", "x3", "x4", "x5", "x6"].into_iter().enumerate() {
            one.put(name, &pattern(1_000_000, n as u64)).await.unwrap();
        }
    });
    let b = cell.client_with(2, Arc::new(MemoryCache::new(4 << 20)));
    let read_others = || {
        ["x1", "x2", "x3", "x4", "x5", "x6"].iter().for_each(|name| drop(get(&cell, &b, name).unwrap()));
    };
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    read_others();
    let before = b.venus.counters().bytes_fetched;
    assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(1_500_000, 1));
    assert_eq!(b.venus.counters().bytes_fetched, before);
    // Without the pin it goes as other files do.
    unpin(&cell, &b, USER, "tree").unwrap();
    assert!(b.venus.pins(ROOT, 0).is_empty());
    read_others();
    let before = b.venus.counters().bytes_fetched;
    assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(1_500_000, 1));
    assert!(b.venus.counters().bytes_fetched > before);
}

#[test]
fn a_pin_outweighs_the_rules_by_which_files_bypass_the_cache() {
    let (cell, a) = cell_with_tree(25);
    let one = a.clone();
    cell.on(&a, async move { one.put("tree/__film", &pattern(3_000_000, 5)).await.unwrap() });
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let two = b.clone();
    cell.on(&b, async move {
        for path in ["tree/__film", "tree/large"] {
            let node = two.find(path).await.unwrap().node;
            two.venus.set_property(node, b"afs.bypass", b"on").await.unwrap();
        }
    });
    cut(&cell, &b);
    assert_eq!(get(&cell, &b, "tree/__film").unwrap(), pattern(3_000_000, 5));
    assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(1_500_000, 1));
}

#[test]
fn what_was_read_past_the_cache_stays_in_it_once_it_is_pinned() {
    let (cell, a) = cell_with_tree(26);
    let one = a.clone();
    cell.on(&a, async move { one.put("tree/__film", &pattern(3_000_000, 5)).await.unwrap() });
    let b = cell.client(2);
    assert_eq!(get(&cell, &b, "tree/__film").unwrap(), pattern(3_000_000, 5));
    assert_eq!(b.venus.counters().bytes_bypassed, 3_000_000);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    cut(&cell, &b);
    assert_eq!(get(&cell, &b, "tree/__film").unwrap(), pattern(3_000_000, 5));
}

#[test]
fn what_another_client_changes_is_fetched_again_without_being_used() {
    for seed in 30..36 {
        let (cell, a) = cell_with_tree(seed);
        let b = cell.client(2);
        pin(&cell, &b, USER, "tree", true).unwrap();
        assert_eq!(settled(&cell, &b).state, PinState::Complete);
        let one = a.clone();
        cell.on(&a, async move {
            one.put("tree/large", &pattern(2_500_000, 7)).await.unwrap();
            one.mkdir("tree/below/new").await.unwrap();
            one.put("tree/below/new/file", &pattern(5000, 8)).await.unwrap();
            let tree = one.find("tree").await.unwrap().node;
            one.venus.unlink(tree, b"empty").await.unwrap();
        });
        let pinned = settled(&cell, &b);
        assert_eq!(
            (pinned.state, pinned.objects, pinned.bytes),
            (PinState::Complete, 7, 2_508_000),
            "{pinned:?}"
        );
        cut(&cell, &b);
        assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(2_500_000, 7));
        assert_eq!(get(&cell, &b, "tree/below/new/file").unwrap(), pattern(5000, 8));
        assert!(get(&cell, &b, "tree/empty").is_err());
    }
}

#[test]
fn what_this_client_changes_stays_complete() {
    let (cell, _) = cell_with_tree(40);
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let two = b.clone();
    cell.on(&b, async move {
        two.put("tree/made", &pattern(4000, 4)).await.unwrap();
        let handle = two.open("tree/large", OpenFlags::READ_WRITE).await.unwrap();
        two.venus.write(handle, 1_600_000, bytes::Bytes::from_static(b"end")).await.unwrap();
        two.venus.flush(handle, 0).await.unwrap();
        two.venus.release(handle).await.unwrap();
    });
    let pinned = settled(&cell, &b);
    assert_eq!(
        (pinned.state, pinned.objects, pinned.bytes),
        (PinState::Complete, 7, 1_607_003),
        "{pinned:?}"
    );
    cut(&cell, &b);
    assert!(get(&cell, &b, "tree/large").unwrap().ends_with(b"\0end"));
    assert_eq!(get(&cell, &b, "tree/made").unwrap(), pattern(4000, 4));
}

#[test]
fn a_pin_is_of_a_directory_wherever_it_is_moved_and_follows_no_mount_point() {
    let (cell, a) = cell_with_tree(45);
    let one = a.clone();
    cell.on(&a, async move {
        one.mount("tree/proj", "#proj.").await.unwrap();
        one.put("tree/proj/far", b"behind the mount point").await.unwrap();
    });
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!(
        (pinned.state, pinned.objects, pinned.bytes),
        (PinState::Complete, 7, 1_503_000),
        "{pinned:?}"
    );
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.rename(NodeId::ROOT, b"tree", NodeId::ROOT, b"moved").await.unwrap();
        one.put("moved/large", b"changed after the move").await.unwrap();
    });
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let two = b.clone();
    cell.on(&b, async move {
        two.find("moved").await.unwrap();
    });
    cut(&cell, &b);
    assert_eq!(get(&cell, &b, "moved/large").unwrap(), b"changed after the move");
    get(&cell, &b, "moved/proj/far").unwrap_err();
}

#[test]
fn without_what_is_below_a_pin_of_a_directory_is_of_its_names() {
    let (cell, _) = cell_with_tree(46);
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", false).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!((pinned.state, pinned.objects, pinned.bytes), (PinState::Complete, 1, 0), "{pinned:?}");
    cut(&cell, &b);
    let two = b.clone();
    let mut names = cell.on(&b, async move { two.names("tree").await.unwrap() });
    names.sort_unstable();
    assert_eq!(names, [".", "..", "below", "empty", "large", "link"]);
    get(&cell, &b, "tree/large").unwrap_err();
}

#[test]
fn pins_hold_over_a_restart_of_the_mount() {
    let (cell, a) = cell_with_tree(50);
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let b = cell.client_with(2, cache.clone());
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let old = b.venus.clone();
    cell.on(&b, async move { old.shut_down().await.unwrap() });
    let one = a.clone();
    cell.on(&a, async move { one.put("tree/below/small", &pattern(9000, 9)).await.unwrap() });
    let next = cell.client_with(2 + SUCCESSOR, cache);
    let pinned = settled(&cell, &next);
    assert_eq!((pinned.state, pinned.bytes, &*pinned.path), (PinState::Complete, 1_509_000, "tree"));
    let fetched = next.venus.counters().bytes_fetched;
    assert!((9000..200_000).contains(&fetched), "{fetched}: only what is not there is fetched");
    cut(&cell, &next);
    assert_eq!(get(&cell, &next, "tree/below/small").unwrap(), pattern(9000, 9));
    assert_eq!(get(&cell, &next, "tree/large").unwrap(), pattern(1_500_000, 1));
}

#[test]
fn a_pin_waits_for_a_server_that_is_away_and_says_so() {
    let (cell, _) = cell_with_tree(60);
    let b = cell.client(2);
    let two = b.clone();
    cell.on(&b, async move { drop(two.names("tree").await.unwrap()) });
    cut(&cell, &b);
    pin(&cell, &b, USER, "tree", true).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!(pinned.state, PinState::Waiting);
    assert!(pinned.reason.unwrap().contains("10.0.0.1:7000"));
    assert!(pinned.missing_objects > 0);
    cell.sim.world().mend(b.node, cell.server);
    cell.sim.world().mend(cell.server, b.node);
    cell.sim.run_for(Duration::from_secs(120));
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
}

#[test]
fn only_what_its_user_may_read_comes_and_the_rest_with_the_login() {
    let (cell, a) = cell_with_tree(70);
    cell.users.add("alice", 1000);
    let one = a.clone();
    cell.on(&a, async move {
        one.set_acl("tree/below", &[("alice", "rl"), ("system:anyuser", "l")]).await.unwrap();
    });
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!((pinned.state, pinned.missing_objects), (PinState::Partial, 1), "{pinned:?}");
    assert!(b.venus.counters().bytes_fetched >= 1_500_000);
    let two = b.clone();
    cell.on(&b, async move { two.log_in(1, "alice").await });
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    // Others do not read it for that.
    let other = b.user(7);
    assert!(get(&cell, &other, "tree/below/small").is_err());
    cut(&cell, &b);
    assert_eq!(get(&cell, &b.user(1), "tree/below/small").unwrap(), pattern(3000, 2));
    assert!(get(&cell, &other, "tree/below/small").is_err());
}

#[test]
fn a_pin_that_is_too_large_is_refused_or_partial() {
    let (cell, _) = cell_with_tree(80);
    let b = cell.client_with(2, Arc::new(MemoryCache::new(2 << 20)));
    assert_eq!(pin(&cell, &b, USER, "tree/large", false), Err(Unpinned::TooLarge(1_500_000, 1 << 20)));
    assert_eq!(pin(&cell, &b, USER, "nowhere", false).unwrap_err().to_string().split(':').count(), 2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(pin(&cell, &b, USER, "tree", true), Err(Unpinned::Twice));
    let pinned = settled(&cell, &b);
    assert_eq!((pinned.state, pinned.missing_objects), (PinState::Partial, 1));
    assert_eq!((pinned.bytes, pinned.missing_bytes), (1_503_000, 1_500_000));
    assert_eq!(pinned.reason.as_deref(), Some("pins may take 1048576 bytes, half of the cache"));
    // It can be read as any file.
    assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(1_500_000, 1));
}

#[test]
fn what_is_pinned_is_found_whatever_else_is_looked_up() {
    let (cell, a) = cell_with_tree(85);
    let one = a.clone();
    cell.on(&a, async move {
        one.mkdir("others").await.unwrap();
        for n in 0..300 {
            one.put(&format!("others/f{n}"), b"x").await.unwrap();
        }
    });
    cell.set_limits(|limits| (limits.statuses_max, limits.directory_bytes_max) = (100, 24 << 10));
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let two = b.clone();
    cell.on(&b, async move {
        for n in 0..300 {
            two.find(&format!("others/f{n}")).await.unwrap();
        }
    });
    cut(&cell, &b);
    assert_eq!(get(&cell, &b, "tree/below/small").unwrap(), pattern(3000, 2));
    assert_eq!(get(&cell, &b, "tree/large").unwrap(), pattern(1_500_000, 1));
}

#[test]
fn after_a_restart_a_pin_of_a_user_waits_for_the_login() {
    let (cell, a) = cell_with_tree(75);
    cell.users.add("alice", 1000);
    let one = a.clone();
    cell.on(&a, async move {
        one.set_acl("tree/below", &[("alice", "rl")]).await.unwrap();
        one.set_acl("tree", &[("alice", "rl")]).await.unwrap();
    });
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let log_in = |client: &Client| {
        let one = client.clone();
        cell.on(client, async move { one.log_in(1, "alice").await });
    };
    let b = cell.client_with(2, cache.clone());
    assert!(matches!(pin(&cell, &b, USER, "tree/below", true), Err(Unpinned::Failed(_))));
    log_in(&b);
    pin(&cell, &b, USER, "tree/below", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    let old = b.venus.clone();
    cell.on(&b, async move { old.shut_down().await.unwrap() });
    let next = cell.client_with(2 + SUCCESSOR, cache);
    assert_eq!(settled(&cell, &next).state, PinState::Waiting);
    log_in(&next);
    cell.sim.run_for(Duration::from_secs(20));
    assert_eq!(settled(&cell, &next).state, PinState::Complete);
    cut(&cell, &next);
    assert_eq!(get(&cell, &next.user(1), "tree/below/small").unwrap(), pattern(3000, 2));
}

#[test]
fn more_objects_than_the_status_cache_may_hold_are_left_out_and_the_mount_goes_on() {
    let (cell, a) = cell_with_tree(90);
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..120 {
            one.put(&format!("tree/below/f{n}"), b"x").await.unwrap();
        }
    });
    cell.set_limits(|limits| limits.statuses_max = 100);
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!(
        (pinned.state, pinned.objects),
        (PinState::Partial, 49),
        "with the directory above it: {pinned:?}"
    );
    assert!(pinned.reason.unwrap().contains("names of a directory are left out"));
    let two = b.clone();
    cell.on(&b, async move {
        for n in 0..120 {
            assert_eq!(two.get(&format!("tree/below/f{n}")).await.unwrap(), b"x");
        }
    });
    assert!(b.venus.statuses() < 200, "{}", b.venus.statuses());
}

#[test]
fn more_names_than_memory_may_hold_are_left_out() {
    let (cell, _) = cell_with_tree(95);
    cell.set_limits(|limits| limits.directory_bytes_max = 3 * 2048 * 2);
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", true).unwrap();
    let complete = settled(&cell, &b);
    assert_eq!(complete.state, PinState::Complete, "three directories: {complete:?}");
    cell.set_limits(|limits| limits.directory_bytes_max = 2 * 2048 * 2);
    let c = cell.client(3);
    pin(&cell, &c, USER, "tree", true).unwrap();
    let pinned = settled(&cell, &c);
    assert_eq!((pinned.state, pinned.missing_objects), (PinState::Partial, 1), "{pinned:?}");
    assert_eq!(get(&cell, &c, "tree/below/small").unwrap(), pattern(3000, 2));
}

#[test]
fn a_user_has_so_many_pins_and_all_users_together_have_so_many() {
    let (cell, a) = cell_with_tree(101);
    let one = a.clone();
    cell.on(&a, async move {
        for n in 0..17 {
            one.put(&format!("f{n}"), b"x").await.unwrap();
        }
    });
    let b = cell.client(2);
    let path = |n: u32| -> &'static str { format!("f{n}").leak() };
    for uid in 1..=4 {
        for n in 0..16 {
            pin(&cell, &b, TokenOwner::Uid(uid), path(n), false).unwrap();
        }
        let most = if uid < 4 { 16 } else { 64 };
        assert_eq!(pin(&cell, &b, TokenOwner::Uid(uid), path(16), false), Err(Unpinned::TooMany(most)));
    }
    assert_eq!(pin(&cell, &b, ROOT, path(16), false), Err(Unpinned::TooMany(64)));
    unpin(&cell, &b, USER, path(0)).unwrap();
    pin(&cell, &b, ROOT, path(16), false).unwrap();
}

#[test]
fn pins_are_known_to_their_user_and_to_root() {
    let (cell, _) = cell_with_tree(100);
    let b = cell.client(2);
    pin(&cell, &b, USER, "tree", false).unwrap();
    let pinned = settled(&cell, &b);
    assert_eq!((pinned.objects, pinned.state), (1, PinState::Complete), "its names alone");
    assert!(b.venus.pins(TokenOwner::Uid(2), 0).is_empty());
    assert_eq!(b.venus.pins(USER, 0).len(), 1);
    assert!(b.venus.pins(USER, pinned.number).is_empty());
    assert_eq!(unpin(&cell, &b, TokenOwner::Uid(2), "tree"), Err(Unpinned::None));
    assert_eq!(unpin(&cell, &b, USER, "tree/below"), Err(Unpinned::None));
    unpin(&cell, &b, ROOT, "/tree").unwrap();
    assert_eq!(unpin(&cell, &b, USER, "tree"), Err(Unpinned::None));
    // A user has few, so that others find room.
    let tree =
        ["tree", "tree/below", "tree/large", "tree/empty", "tree/link", "tree/below/small", "other", ""];
    tree.iter().for_each(|path| drop(pin(&cell, &b, USER, path, false)));
    assert!(b.venus.pins(USER, 0).len() >= 6);
}
