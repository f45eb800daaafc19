//! Explanations of paths: what a machine knows of a file and its server, told without a call.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_venus::{Explanation, LockKind, LockRange, OpenFlags, TokenOwner};
use afs_wire::vl::SiteFlags;
use bytes::Bytes;
use common::fakes::{Fakes, Image, RO, RW};
use common::{Cell, Client, PROJ, VIDEO, pattern};

/// What the machine tells one of its users. Not a call is made for it.
fn told_to(uid: u32, client: &Client, path: &str) -> Explanation {
    let before = client.venus.counters();
    let told = client.venus.explain(TokenOwner::Uid(uid), path.as_bytes());
    assert_eq!(client.calls_since(&before), [""; 0], "{path}");
    told
}

fn told(client: &Client, path: &str) -> Explanation {
    told_to(0, client, path)
}

fn promise(told: &Explanation) -> &str {
    told.promise.as_ref().map_or("", |promise| promise.state.as_str())
}

/// A cell, a client that wrote a file, and another one that has read it.
fn read_by_other(seed: u64) -> (Cell, Client, Client) {
    let cell = Cell::new(seed);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move { one.put("file", &pattern(5000, 1)).await.unwrap() });
    get(&cell, &b, "file");
    (cell, a, b)
}

fn get(cell: &Cell, client: &Client, path: &'static str) {
    let one = client.clone();
    cell.on(client, async move { drop(one.get(path).await.unwrap()) });
}

#[test]
fn a_file_that_was_read_is_told_with_its_volume_server_promise_data_and_rights() {
    let (cell, _, b) = read_by_other(1);
    let told = told(&b, "file");
    assert_eq!((told.known_path.as_str(), told.unknown.as_ref()), ("file", None));
    assert_eq!((told.kind.as_deref(), told.cell.as_deref()), (Some("file"), Some("test.cell")));
    let volume = told.volume.as_ref().unwrap();
    assert_eq!((volume.id, volume.kind.as_str()), (cell.volume("root.cell").0, "read-write"));
    assert_eq!(told.fid.unwrap().volume, volume.id);
    let [server] = &told.servers[..] else { panic!("{:?}", told.servers) };
    assert_eq!((server.is_used, server.reason.as_str()), (true, "the only one"));
    assert_eq!(server.addresses, ["10.0.0.1:7000"]);
    assert_eq!((server.unreachable_seconds, server.errors.len()), (None, 0));
    assert!(server.last_reply_seconds_ago.is_some());
    assert!(promise(&told) == "held" && told.promise.as_ref().unwrap().seconds_left > Some(60));
    let status = told.status.as_ref().unwrap();
    assert_eq!((status.is_current, status.length_bytes), (true, 5000));
    let data = told.data.as_ref().unwrap();
    assert_eq!((data.cached_bytes, data.dirty_bytes, data.open_handles), (Some(5000), 0, 0));
    let rights = told.rights.as_ref().unwrap();
    assert_eq!((rights.rights.as_deref(), rights.source.as_str()), (Some("rlidwka"), "anonymous"));
    assert!(told.locks.as_ref().unwrap().here.is_empty());
}

#[test]
fn what_is_dirty_or_locked_is_told() {
    let (cell, a, _) = read_by_other(2);
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        one.venus.write(handle, 100, Bytes::from_static(b"dirty")).await.unwrap();
        one.venus.lock(handle, 7, 71, LockRange::WHOLE, LockKind::Write, false).await.unwrap();
    });
    let told = told(&a, "file");
    let data = told.data.unwrap();
    assert_eq!((data.dirty_bytes, data.open_handles), (5, 1));
    let locks = told.locks.unwrap();
    assert_eq!(locks.at_server.as_deref(), Some("write"));
    assert_eq!((locks.here.len(), locks.here[0].pid, locks.here[0].last), (1, 71, None));
}

#[test]
fn a_break_and_the_end_of_a_promise_are_told_apart() {
    let (cell, a, b) = read_by_other(3);
    let one = a.clone();
    cell.on(&a, async move { one.put("file", b"newer").await.unwrap() });
    let seen = told(&b, "file");
    assert_eq!((promise(&seen), seen.status.as_ref().unwrap().is_current), ("broken", false));
    get(&cell, &b, "file");
    assert_eq!(promise(&told(&b, "file")), "held");
    cell.sim.crash(cell.server);
    cell.sim.run_for(Duration::from_secs(5 * 3600));
    assert_ne!(promise(&told(&b, "file")), "held");
}

#[test]
fn a_server_that_does_not_answer_is_told_with_its_errors() {
    let (cell, a, b) = read_by_other(4);
    let one = a.clone();
    cell.on(&a, async move { one.put("other", &pattern(5000, 2)).await.unwrap() });
    cell.sim.crash(cell.server);
    let two = b.clone();
    cell.on(&b, async move { drop(two.get("other").await.unwrap_err()) });
    let told = told(&b, "file");
    let server = &told.servers[0];
    assert!(server.is_used && server.unreachable_seconds > Some(5), "{server:?}");
    assert!(!server.errors.is_empty() && server.errors[0].operation.starts_with("Fetch"), "{server:?}");
    // What is cached is told all the same.
    assert_eq!((promise(&told), told.data.as_ref().unwrap().cached_bytes), ("held", Some(5000)));
}

#[test]
fn of_replicas_the_one_in_use_and_the_reason_are_told() {
    const REPLICA: SiteFlags = SiteFlags::RO_VOLUME;
    let cell = Fakes::new(5, 2, 1);
    let image = Arc::new(Mutex::new(Image::new(100).with("file", &[7; 3000])));
    cell.servers.iter().for_each(|server| server.host(RO, &image, false));
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME), (0, REPLICA), (1, REPLICA)]);
    let client = cell.client(0);
    let read = |path: &'static str| {
        let one = client.clone();
        cell.on(&client, async move { one.get(path).await.unwrap().len() })
    };
    assert_eq!(read("file"), 3000);
    let before = told(&client, "file");
    assert_eq!(before.volume.as_ref().unwrap().kind, "read-only");
    assert!(before.promise.as_ref().unwrap().is_of_volume && promise(&before) == "held");
    let used: Vec<bool> = before.servers.iter().map(|server| server.is_used).collect();
    assert_eq!(used, [true, false], "{before:?}");
    let address = before.servers[0].addresses[0].clone();
    let index = cell.servers.iter().position(|it| address.starts_with(&format!("{}:", it.address))).unwrap();
    cell.sim.crash(cell.servers[index].node);
    let one = client.clone();
    cell.on(&client, async move {
        let entry = one.find("file").await.unwrap();
        one.venus.set_property(entry.node, b"afs.flush", b"volume").await.unwrap();
        assert_eq!(one.get("file").await.unwrap().len(), 3000);
    });
    let after = told(&client, "file");
    assert_eq!(after.servers[0].reason, "the only one that answers", "{after:?}");
    assert_ne!(after.servers[0].addresses[0], address);
    assert!(after.servers[1].unreachable_seconds.is_some() && !after.servers[1].errors.is_empty());
}

#[test]
fn nothing_is_told_of_what_a_user_may_not_see() {
    let cell = Cell::new(6);
    cell.users.add("alice", 11);
    cell.users.add("bob", 12);
    let machine = cell.client(1);
    let (alice, bob) = (machine.user(1), machine.user(2));
    let one = alice.clone();
    cell.on(&machine, async move {
        one.log_in(1, "alice").await;
        one.log_in(2, "bob").await;
        one.mkdir("closed").await.unwrap();
        one.mkdir("listed").await.unwrap();
        for dir in ["closed", "listed"] {
            one.put(&format!("{dir}/file"), b"secret").await.unwrap();
        }
        one.set_acl("closed", &[("alice", "rlidwka")]).await.unwrap();
        one.set_acl("listed", &[("alice", "rlidwka"), ("bob", "l")]).await.unwrap();
        for dir in ["closed", "listed"] {
            one.get(&format!("{dir}/file")).await.unwrap();
        }
    });
    let told_alice = told_to(1, &machine, "closed/file");
    assert_eq!(told_alice.data.as_ref().unwrap().cached_bytes, Some(6));
    let rights = told_alice.rights.unwrap();
    assert_eq!((rights.source.as_str(), rights.user.as_deref()), ("token", Some("alice")));
    let unknown = |path: &str| told_to(2, &machine, path).unknown.unwrap();
    assert!(unknown("closed/file").contains("rights of this user"), "{}", unknown("closed/file"));
    cell.on(&machine, async move {
        assert_eq!(bob.get("closed/file").await.unwrap_err().errno(), 13);
        assert_eq!(bob.get("listed/file").await.unwrap_err().errno(), 13);
    });
    let closed = told_to(2, &machine, "closed/file");
    assert!(closed.unknown.unwrap().contains("no right to look up"));
    assert_eq!((closed.known_path.as_str(), closed.data), ("closed", None));
    let listed = told_to(2, &machine, "listed/file");
    assert_eq!(listed.rights.unwrap().rights.as_deref(), Some("l"));
    assert_eq!((listed.unknown, listed.status, listed.data, listed.locks), (None, None, None, None));
}

#[test]
fn a_path_is_followed_as_far_as_it_is_cached() {
    let cell = Cell::new(7);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move {
        one.mount("video", &format!("#{VIDEO}.")).await.unwrap();
        one.mount("proj", &format!("#{PROJ}.")).await.unwrap();
        one.put("video/film", &pattern(3000, 1)).await.unwrap();
        let (dir, name) = one.split("link").await.unwrap();
        one.venus.symlink(dir, name, b"video/../video").await.unwrap();
        one.venus.symlink(dir, b"far", b"/etc/passwd").await.unwrap();
        assert_eq!(one.get("link/film").await.unwrap().len(), 3000);
        one.venus.readlink(one.find("far").await.unwrap().node).await.unwrap();
        one.find("video/film").await.unwrap();
    });
    let film = told(&a, "link/film");
    assert_eq!((film.known_path.as_str(), film.unknown.as_ref()), ("video/film", None));
    assert_eq!(film.volume.unwrap().name, VIDEO);
    let bypass = film.bypass.unwrap();
    assert_eq!((bypass.is_bypassed, bypass.reason.as_str()), (true, "volume name"));
    assert!(told(&a, "far").unknown.unwrap().contains("/etc/passwd"));
    assert!(told(&a, "video/none").unknown.unwrap().contains("no such name"));
    assert_eq!(told(&a, "video/../video/.").known_path, "video");
    // Another machine knows the root and no more; it tells what it knows, of the directory that it knows.
    let other = told(&b, "video/film");
    assert!(other.unknown.is_some() && other.data.is_none(), "{other:?}");
    assert_eq!((other.known_path.as_str(), other.kind.as_deref()), ("", Some("directory")));
    assert_eq!(told(&b, "").unknown, None);
    assert!(told(&a, &"a/".repeat(5000)).unknown.is_some());
}

#[test]
fn the_state_of_the_data_path_is_told() {
    let cell = Cell::with_data_path(8, true);
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    cell.on(&a, async move { one.put("file", &pattern(50_000, 1)).await.unwrap() });
    get(&cell, &b, "file");
    cell.sim.run_for(Duration::from_secs(20));
    assert_eq!(told(&b, "file").servers[0].data_path, "in use");
    assert_eq!(told(&cell.client(3), "").servers[0].data_path, "not asked for");
}
