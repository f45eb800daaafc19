//! Pins for reading without a server: what is shown, to whom, and until when.

use std::sync::Arc;
use std::time::Duration;

use afs_server::VolumeState;
use afs_venus::{
    CacheStore, DiskCache, ErrorKind, MemoryCache, OpenFlags, PinOptions, PinState, Pinned, RootKind,
    TokenOwner, Unpromised,
};
use afs_wire::ids::VolumeName;

use super::common::{Cell, Client, PROJ, SUCCESSOR, pattern};
use super::{ROOT, USER, cell_with_tree, cut, get, pin, settled, unpin};

/// Pins with all that is below, for reading while no server replies; returns when all is there.
fn pin_offline(cell: &Cell, client: &Client, owner: TokenOwner, path: &'static str) {
    let venus = client.venus.clone();
    let options = PinOptions { is_recursive: true, is_offline: true };
    cell.on(client, async move { venus.pin(owner, path.as_bytes(), options).await }).unwrap();
    let pinned = settled(cell, client);
    assert_eq!(
        (pinned.state, pinned.is_offline, pinned.unpromised),
        (PinState::Complete, true, None),
        "{pinned:?}"
    );
}

/// Ends a mount, in order or not, and starts its successor with the same cache while no server can be reached.
fn restarted_without_server(
    cell: &Cell,
    client: &Client,
    number: u8,
    cache: Arc<dyn CacheStore>,
    in_order: bool,
) -> Client {
    if in_order {
        let old = client.venus.clone();
        cell.on(client, async move { old.shut_down().await.unwrap() });
    }
    cell.sim.world().crash(client.node);
    cell.sim.world().crash(cell.server);
    cell.client_with(number + SUCCESSOR, cache)
}

/// The property `afs.unpromised` of an object, as a tool reads it.
fn told_of(cell: &Cell, client: &Client, path: &'static str) -> Option<String> {
    let one = client.clone();
    cell.on(client, async move {
        let node = one.find(path).await.unwrap().node;
        let told = one.venus.property(node, b"afs.unpromised").await.ok();
        told.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    })
}

#[test]
fn what_is_pinned_for_that_is_read_after_a_restart_without_any_server() {
    for seed in 110..114 {
        let (cell, _) = cell_with_tree(seed);
        let cache = Arc::new(MemoryCache::new(64 << 20));
        let b = cell.client_with(2, cache.clone());
        pin_offline(&cell, &b, USER, "tree");
        let next = restarted_without_server(&cell, &b, 2, cache, seed % 2 == 0);
        let two = next.user(1);
        let one = two.clone();
        cell.on(&next, async move {
            assert_eq!(one.names("tree").await.unwrap().len(), 6);
            assert_eq!(one.get("tree/large").await.unwrap(), pattern(1_500_000, 1));
            assert_eq!(one.get("tree/empty").await.unwrap(), b"");
            assert_eq!(one.venus.walk(b"tree/link", true).await.unwrap().attr.size, 3000);
            assert_eq!(one.get("tree/below/small").await.unwrap(), pattern(3000, 2));
            // What is not pinned is not there, and nothing is written.
            one.get("other").await.unwrap_err();
            one.names("").await.unwrap();
            let refused = one.open("tree/large", OpenFlags::READ_WRITE).await.unwrap_err();
            assert_eq!(refused.errno(), 110);
            one.put("tree/below/small", b"new").await.unwrap_err();
            one.put("tree/new", b"new").await.unwrap_err();
            one.mkdir("tree/dir").await.unwrap_err();
            let tree = one.find("tree").await.unwrap().node;
            one.venus.unlink(tree, b"empty").await.unwrap_err();
            assert_eq!(one.get("tree/below/small").await.unwrap(), pattern(3000, 2));
        });
        // It is said to be so.
        let told = told_of(&cell, &two, "tree/large").unwrap();
        assert!(told.starts_with("{\"since_seconds_ago\":"), "{told}");
        let explained = two.venus.explain(USER, b"tree/below/small");
        assert_eq!(explained.unknown, None);
        assert!(explained.promise.unwrap().unpromised.is_some());
        cell.sim.run_for(Duration::from_secs(60));
        let [pinned]: [Pinned; 1] = next.venus.pins(ROOT, 0).try_into().unwrap();
        assert!(pinned.unpromised.is_some() && pinned.state == PinState::Waiting, "{pinned:?}");
        assert_eq!(next.venus.counters().volumes_unpromised, 1);
    }
}

#[test]
fn when_the_server_is_back_everything_is_asked_for_again_first() {
    for seed in 120..123 {
        let (cell, a) = cell_with_tree(seed);
        let cache = Arc::new(MemoryCache::new(64 << 20));
        let b = cell.client_with(2, cache.clone());
        pin_offline(&cell, &b, USER, "tree");
        let old = b.venus.clone();
        cell.on(&b, async move { old.shut_down().await.unwrap() });
        let one = a.clone();
        cell.on(&a, async move {
            one.put("tree/below/small", &pattern(9000, 9)).await.unwrap();
            let tree = one.find("tree").await.unwrap().node;
            one.venus.unlink(tree, b"empty").await.unwrap();
        });
        cell.sim.world().crash(cell.server);
        let next = cell.client_with(2 + SUCCESSOR, cache);
        let two = next.user(1);
        assert_eq!(get(&cell, &two, "tree/below/small").unwrap(), pattern(3000, 2));
        assert_eq!(get(&cell, &two, "tree/empty").unwrap(), b"");
        cell.restart_server();
        // The client finds out within ten seconds; no read after that is of before.
        cell.sim.run_for(Duration::from_secs(30));
        assert_eq!(get(&cell, &two, "tree/below/small").unwrap(), pattern(9000, 9));
        assert!(get(&cell, &two, "tree/empty").is_err());
        assert_eq!(told_of(&cell, &two, "tree/below/small"), None);
        cell.sim.run_for(Duration::from_secs(30));
        let pinned = settled(&cell, &next);
        assert_eq!(
            (pinned.state, pinned.objects, pinned.unpromised),
            (PinState::Complete, 5, None),
            "{pinned:?}"
        );
        assert_eq!(next.venus.counters().volumes_unpromised, 0);
    }
}

#[test]
fn without_a_server_the_rights_decide_that_were_known_last() {
    let (cell, a) = cell_with_tree(130);
    cell.users.add("alice", 1000);
    let one = a.clone();
    cell.on(&a, async move {
        one.set_acl("tree/below", &[("alice", "rl"), ("system:anyuser", "a")]).await.unwrap();
    });
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let b = cell.client_with(2, cache.clone());
    let two = b.clone();
    cell.on(&b, async move { two.log_in(1, "alice").await });
    pin_offline(&cell, &b, USER, "tree");
    let next = restarted_without_server(&cell, &b, 2, cache, true);
    // Without a token: there is no server to get one from.
    assert_eq!(get(&cell, &next.user(1), "tree/below/small").unwrap(), pattern(3000, 2));
    let other = next.user(7);
    assert!(get(&cell, &other, "tree/below/small").is_err());
    assert!(get(&cell, &next.user(0), "tree/below/small").is_err());
    assert_eq!(get(&cell, &other, "tree/large").unwrap(), pattern(1_500_000, 1), "that everybody may read");
    let two = other.clone();
    cell.on(&other, async move {
        two.names("tree/below").await.unwrap_err();
    });
    // A server that replies to nobody's token says nothing of the user's rights.
    cell.restart_server();
    cell.sim.run_for(Duration::from_secs(60));
    assert!(get(&cell, &next.user(1), "tree/below/small").is_err());
    cell.sim.world().crash(cell.server);
    cell.sim.run_for(Duration::from_secs(5 * 3600));
    assert_eq!(get(&cell, &next.user(1), "tree/below/small").unwrap(), pattern(3000, 2));
    // The right is taken away while the client is away: it is gone with the first reply.
    cell.restart_server();
    let c = cell.client(3);
    let three = c.clone();
    cell.on(&c, async move { three.set_acl("tree/below", &[("system:anyuser", "a")]).await.unwrap() });
    cell.sim.run_for(Duration::from_secs(60));
    let two = next.clone();
    cell.on(&next, async move { two.log_in(1, "alice").await });
    assert!(get(&cell, &next.user(1), "tree/below/small").is_err());
    cell.sim.run_for(Duration::from_secs(120));
    // And is not what was known last any more.
    cut(&cell, &next);
    assert!(get(&cell, &next.user(1), "tree/below/small").is_err());
}

/// A cell with a file in a volume behind a mount point, which a client has pinned; that client's mount has ended.
fn pinned_behind_a_mount_point(seed: u64) -> (Cell, Client, Arc<MemoryCache>) {
    let cell = Cell::new(seed);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        one.mount("proj", "#proj.").await.unwrap();
        one.mkdir("proj/dir").await.unwrap();
        one.put("proj/dir/file", b"of last time").await.unwrap();
    });
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let b = cell.client_with(2, cache.clone());
    pin_offline(&cell, &b, USER, "proj/dir");
    let old = b.venus.clone();
    cell.on(&b, async move { old.shut_down().await.unwrap() });
    (cell, b, cache)
}

#[test]
fn what_is_behind_a_mount_point_is_found_without_any_server() {
    let (cell, b, cache) = pinned_behind_a_mount_point(140);
    let next = restarted_without_server(&cell, &b, 2, cache, false);
    assert_eq!(get(&cell, &next.user(1), "proj/dir/file").unwrap(), b"of last time");
    let explained = next.venus.explain(USER, b"proj/dir/file");
    assert_eq!((explained.unknown, explained.rights.unwrap().rights.is_some()), (None, true));
    // Both volumes on the way.
    assert_eq!(next.venus.counters().volumes_unpromised, 2);
}

#[test]
fn a_server_that_refuses_is_not_away() {
    let (cell, _, cache) = pinned_behind_a_mount_point(141);
    cell.states.set(cell.volume(PROJ), Some(VolumeState::Offline));
    let next = cell.client_with(2 + SUCCESSOR, cache);
    let error = get(&cell, &next.user(1), "proj/dir/file").err().map(|error| error.kind);
    assert_eq!(error, Some(ErrorKind::VolumeOffline));
    assert_eq!(next.venus.counters().volumes_unpromised, 0);
}

#[test]
fn what_is_not_pinned_any_more_is_not_read_without_its_server() {
    let (cell, _) = cell_with_tree(150);
    let cache = Arc::new(MemoryCache::new(64 << 20));
    let b = cell.client_with(2, cache.clone());
    pin_offline(&cell, &b, USER, "tree");
    let names = || CacheStore::offline_names(&*cache).len();
    assert_eq!(names(), 6 + 1 + 1, "the tree, the root above it, and the volume");
    // What is removed leaves no record.
    let two = b.clone();
    cell.on(&b, async move {
        let tree = two.find("tree").await.unwrap().node;
        two.venus.unlink(tree, b"empty").await.unwrap();
    });
    assert_eq!(settled(&cell, &b).objects, 5);
    assert_eq!(names(), 5 + 1 + 1);
    unpin(&cell, &b, USER, "tree").unwrap();
    assert_eq!(names(), 0);
    pin(&cell, &b, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &b).state, PinState::Complete);
    assert_eq!(names(), 0, "a pin without the option keeps none");
    cell.sim.world().crash(b.node);
    cell.sim.world().crash(cell.server);
    let root = RootKind::Volume(VolumeName::new(super::common::ROOT).unwrap());
    assert!(cell.try_client(2 + SUCCESSOR, cache, root).is_err());
}

#[test]
fn the_records_of_pins_are_in_the_cache_directory() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Arc::new(DiskCache::open(directory.path(), 64 << 20, "boot").unwrap());
    let (cell, _) = cell_with_tree(160);
    let b = cell.client_with(2, open());
    pin_offline(&cell, &b, USER, "tree");
    let old = b.venus.clone();
    cell.on(&b, async move { old.shut_down().await.unwrap() });
    cell.sim.world().crash(b.node);
    drop(b);
    cell.sim.world().crash(cell.server);
    let next = cell.client_with(2 + SUCCESSOR, open());
    let two = next.user(1);
    assert_eq!(get(&cell, &two, "tree/large").unwrap(), pattern(1_500_000, 1));
    assert_eq!(get(&cell, &two, "tree/below/small").unwrap(), pattern(3000, 2));
    let one = two.clone();
    cell.on(&next, async move { assert_eq!(one.names("tree").await.unwrap().len(), 6) });
}

#[test]
fn a_promise_that_ended_while_the_server_is_away_ends_no_reading_of_what_is_pinned_for_that() {
    let (cell, _) = cell_with_tree(170);
    let b = cell.client(2);
    pin_offline(&cell, &b, USER, "tree");
    let c = cell.client(3);
    pin(&cell, &c, USER, "tree", true).unwrap();
    assert_eq!(settled(&cell, &c).state, PinState::Complete);
    cell.sim.world().crash(cell.server);
    cell.sim.run_for(Duration::from_secs(5 * 3600));
    assert_eq!(get(&cell, &b.user(1), "tree/large").unwrap(), pattern(1_500_000, 1));
    let told = b.venus.explain(USER, b"tree/large").promise.unwrap().unpromised.unwrap();
    let Unpromised { as_of_seconds_ago, .. } = told;
    assert!(as_of_seconds_ago >= 5 * 3600 - 60, "{told:?}");
    assert!(get(&cell, &c.user(1), "tree/large").is_err());
}
