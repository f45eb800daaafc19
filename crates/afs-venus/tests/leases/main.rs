//! Leases of directories: changes that this client decides and sends later, and that nobody else ever misses.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod full_disk;
mod liars;
mod losses;
mod made_good;
mod names;

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{Attr, ErrorKind, NewTime, OpenFlags, Result, SetAttr};
use afs_wire::fs;
use afs_wire::ids::{Mode, UnixSeconds};
use afs_wire::rpc::Request;
use common::{Cell, Client, LIMIT, pattern};

/// A cell whose clients take leases.
fn cell(seed: u64) -> Cell {
    let cell = Cell::new(seed);
    cell.set_limits(|limits| limits.leases = true);
    cell
}

/// Makes the changes after which a lease is asked for, and one more, so that it is taken.
async fn lease(client: &Client, dir: &str) {
    client.mkdir(dir).await.unwrap();
    let taken = client.venus.counters().leases_taken;
    for n in 0..4 {
        client.put(&format!("{dir}/first{n}"), b"x").await.unwrap();
    }
    assert_eq!(client.venus.counters().leases_taken, taken + 1);
}

/// Names and contents of a directory with files alone, as a machine sees them.
async fn contents(client: &Client, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in client.names(dir).await.unwrap() {
        if !matches!(name.as_str(), "." | "..") {
            let data = client.get(&format!("{dir}/{name}")).await;
            all.insert(name.clone(), data.unwrap_or_else(|error| panic!("{name}: {error}")));
        }
    }
    all
}

#[test]
fn a_hundred_small_files_cost_few_calls_and_the_others_see_each_of_them() {
    let cell = cell(1);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    let (calls, before) = cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        for n in 0..100 {
            client.put(&format!("dir/file{n}"), format!("data {n}").as_bytes()).await.unwrap();
        }
        (client.calls_since(&before), before)
    });
    assert_eq!(calls, ["TakeLease 1"]);
    let told = a.venus.activity().leases;
    assert_eq!((told.held, told.taken, told.recalled, told.lost), (1, 1, 0, 0));
    assert_eq!((told.waiting_changes, told.decided_changes), (100, 100));
    // The other machine opens each of them: the recall comes before its first reply.
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..100 {
            assert_eq!(other.get(&format!("dir/file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
    });
    let client = a.clone();
    cell.on(&a, async move {
        let counters = client.venus.counters();
        assert_eq!((counters.leases_recalled, counters.leases_lost), (1, 0));
        let told = client.venus.activity().leases;
        assert_eq!((told.held, told.waiting_changes, told.recalled), (0, 0, 1));
        assert_eq!(client.calls_since(&before), ["LeaseList 2", "TakeLease 1"]);
        // What was made is promised: nothing is asked again.
        for n in 0..100 {
            assert_eq!(client.get(&format!("dir/file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
        assert_eq!(client.calls_since(&before), ["LeaseList 2", "TakeLease 1"]);
    });
}

/// A tree of 13 directories, and 72 files in the lowest eight.
async fn make_tree(client: &Client, root: &str) {
    client.mkdir(root).await.unwrap();
    for n in 0..4 {
        client.mkdir(&format!("{root}/dir{n}")).await.unwrap();
        for m in 0..2 {
            client.mkdir(&format!("{root}/dir{n}/sub{m}")).await.unwrap();
        }
    }
    for n in 0..72 {
        client
            .put(&format!("{root}/dir{}/sub{}/file{n}", n % 4, n / 4 % 2), &pattern(4000, n as u64))
            .await
            .unwrap();
    }
}

#[test]
fn a_new_tree_is_made_under_the_lease_of_its_top() {
    let cell = cell(16);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        client.names("").await.unwrap();
        let before = client.venus.counters();
        make_tree(&client, "top").await;
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls_since(&before), ["LeaseList 5", "MakeDir 1", "TakeLease 1"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..72 {
            let path = format!("top/dir{}/sub{}/file{n}", n % 4, n / 4 % 2);
            assert_eq!(other.get(&path).await.unwrap(), pattern(4000, n as u64));
        }
    });
}

#[test]
fn the_removal_of_small_directories_takes_no_lease() {
    let cell = cell(17);
    let (a, b) = (cell.client(1), cell.client(2));
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..10 {
            other.mkdir(&format!("small{n}")).await.unwrap();
            put_all(&other, &format!("small{n}"), 0..5).await;
        }
        other.mkdir("large").await.unwrap();
        put_all(&other, "large", 0..40).await;
        other.env.sleep(Duration::from_secs(2)).await;
    });
    let client = a.clone();
    cell.on(&a, async move {
        let root = afs_venus::NodeId::ROOT;
        let before = client.venus.counters();
        for n in 0..10 {
            let dir = client.find(&format!("small{n}")).await.unwrap().node;
            for file in 0..5 {
                client.venus.unlink(dir, format!("file{file}").as_bytes()).await.unwrap();
            }
            client.venus.rmdir(root, format!("small{n}").as_bytes()).await.unwrap();
        }
        let after = client.venus.counters();
        assert_eq!(
            (after.leases_taken, after.changes_decided),
            (before.leases_taken, before.changes_decided)
        );
        let dir = client.find("large").await.unwrap().node;
        for file in 0..40 {
            client.venus.unlink(dir, format!("file{file}").as_bytes()).await.unwrap();
        }
        client.venus.rmdir(root, b"large").await.unwrap();
        let after = client.venus.counters();
        assert_eq!(
            (after.leases_taken, after.changes_decided),
            (before.leases_taken + 1, before.changes_decided + 37)
        );
    });
}

#[test]
fn a_volume_that_forbids_leases_gets_single_calls_and_close_is_durable_there() {
    let cell = cell(14);
    let a = cell.client(1);
    let volume = cell.partitions().volume(cell.volume("root.cell")).unwrap();
    let setting = async move {
        let set = volume.edit(|tx| {
            tx.edit_header().lending = afs_volume::Lending::Off;
            Ok(())
        });
        set.await.unwrap();
    };
    cell.on(&a, setting);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        put_all(&client, "dir", 0..100).await;
        assert_eq!(client.venus.counters().leases_taken, 0);
        let calls = client.calls_since(&before);
        assert!(calls.contains(&"CreateFile 100".to_owned()), "{calls:?}");
        assert!(calls.contains(&"StoreData64 100".to_owned()), "{calls:?}");
        let asked = calls.iter().find_map(|call| call.strip_prefix("TakeLease ")?.parse::<u32>().ok());
        assert!((1..=20).contains(&asked.unwrap_or(0)), "it asks again now and then: {calls:?}");
    });
}

/// Small files, each at most once.
async fn put_all(client: &Client, dir: &str, files: std::ops::Range<u32>) {
    for n in files {
        client.put(&format!("{dir}/file{n}"), b"data").await.unwrap();
    }
}

#[test]
fn a_lease_that_is_used_up_is_followed_by_the_next_without_single_calls() {
    let cell = Cell::with_older_server(12, true, &[fs::LendMore::OPCODE]);
    cell.set_limits(|limits| limits.leases = true);
    // In the directory, then in the one that was made under its lease, then in the first again. It is asked once whether it lends more.
    makes_five_hundred_files(&cell, &["LeaseList 10", "LendMore 1", "ReturnLease 2", "TakeLease 3"]);
}

#[test]
fn more_is_lent_with_a_lease_that_is_used_up() {
    makes_five_hundred_files(&cell(12), &["LeaseList 8", "LendMore 2"]);
}

fn makes_five_hundred_files(cell: &Cell, want: &'static [&'static str]) {
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        let before = client.venus.counters();
        put_all(&client, "dir", 0..300).await;
        client.mkdir("dir/sub").await.unwrap();
        put_all(&client, "dir/sub", 0..200).await;
        client.mkdir("dir/other").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls_since(&before), want);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        assert_eq!(contents(&other, "dir/sub").await.len(), 200);
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 4 + 300 + 3);
    });
}

#[test]
fn what_is_lent_later_is_split_as_it_was_used() {
    let cell = cell(15);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        let before = client.venus.counters();
        // As many objects as `git add` makes of 500 files.
        for n in 0..500 {
            let dir = format!("dir/{:02x}", n * 37 % 256);
            if n < 256 {
                client.mkdir(&dir).await.unwrap();
            }
            put_by_link(&client, &dir, &format!("object{n}"), b"object").await.unwrap();
        }
        client.env.sleep(Duration::from_secs(2)).await;
        let calls = client.calls_since(&before);
        assert_eq!(calls, ["LeaseList 28", "LendMore 4"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in (0..500).step_by(23) {
            let path = format!("dir/{:02x}/object{n}", n * 37 % 256);
            assert_eq!(other.get(&path).await.unwrap(), b"object");
        }
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 4 + 1 + 256);
    });
}

/// Makes a file as git makes an object: under another name, with a second one, without the first.
async fn put_by_link(client: &Client, dir: &str, name: &str, data: &[u8]) -> Result<()> {
    client.put(&format!("{dir}/tmp"), data).await?;
    let file = client.find(&format!("{dir}/tmp")).await?;
    let at = client.find(dir).await?.node;
    client.venus.link(file.node, at, name.as_bytes()).await?;
    client.venus.unlink(at, b"tmp").await
}

#[test]
fn names_of_files_that_were_made_under_the_lease_are_decided_too() {
    let cell = cell(14);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        let before = client.venus.counters();
        client.mkdir("dir/sub").await.unwrap();
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            put_by_link(&client, dir, &format!("object{n}"), format!("data {n}").as_bytes()).await.unwrap();
            let file = client.find(&format!("{dir}/object{n}")).await.unwrap();
            assert_eq!(file.attr.nlink, 1);
            let at = client.find(dir).await.unwrap().node;
            let linked = client.venus.link(file.node, at, format!("other{n}").as_bytes()).await.unwrap();
            assert_eq!((linked.node, linked.attr.nlink), (file.node, 2));
        }
        let [dir, sub] = [client.find("dir").await.unwrap().node, client.find("dir/sub").await.unwrap().node];
        client.venus.rename(dir, b"first0", sub, b"moved").await.unwrap();
        put_all(&client, "dir/sub", 0..1).await;
        client.venus.rename(sub, b"file0", dir, b"first1").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            assert_eq!(client.find(&format!("{dir}/object{n}")).await.unwrap().attr.nlink, 2);
        }
        assert_eq!(client.calls_since(&before), ["LeaseList 4"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
        // Several names are in one directory.
        let file = client.find("dir/object0").await.unwrap();
        let refused = client.venus.link(file.node, sub, b"elsewhere").await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::CrossDevice);
        assert_eq!(
            client.venus.rename(dir, b"object0", sub, b"elsewhere").await.unwrap_err().kind,
            ErrorKind::CrossDevice
        );
        assert_eq!(client.venus.link(file.node, dir, b"object2").await.unwrap_err().kind, ErrorKind::Exists);
    });
    let other = b.clone();
    cell.on(&b, async move {
        assert_eq!(
            (other.get("dir/sub/moved").await.unwrap(), other.get("dir/first1").await.unwrap()),
            (b"x".to_vec(), b"data".to_vec())
        );
        for n in 0..60 {
            let dir = if n % 2 == 0 { "dir" } else { "dir/sub" };
            for name in ["object", "other"] {
                let path = format!("{dir}/{name}{n}");
                assert_eq!(other.get(&path).await.unwrap(), format!("data {n}").as_bytes());
                assert_eq!(other.find(&path).await.unwrap().attr.nlink, 2);
            }
        }
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 3 + 2 + 60);
    });
}

#[test]
fn without_the_option_no_lease_is_asked_for() {
    let cell = Cell::new(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        for n in 0..100 {
            client.put(&format!("dir/file{n}"), b"data").await.unwrap();
        }
        assert_eq!(client.calls_since(&before), ["CreateFile 100", "StoreData64 100"]);
    });
}

#[test]
fn all_kinds_of_changes_are_decided_and_sent_within_a_second() {
    let cell = cell(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        let before = client.venus.counters();
        let dir = client.find("dir").await.unwrap().node;
        client.put("dir/small", b"small").await.unwrap();
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/inner", b"inner").await.unwrap();
        client.venus.symlink(dir, b"link", b"small").await.unwrap();
        client.venus.rename(dir, b"first0", dir, b"renamed").await.unwrap();
        client.venus.rename(dir, b"first1", dir, b"first2").await.unwrap();
        client.venus.unlink(dir, b"first3").await.unwrap();
        client.mkdir("dir/gone").await.unwrap();
        client.venus.rmdir(dir, b"gone").await.unwrap();
        let small = client.find("dir/small").await.unwrap();
        let set = SetAttr { mode: Some(afs_wire::ids::Mode(0o600)), ..SetAttr::default() };
        let attr = client.venus.setattr(small.node, None, set).await.unwrap();
        assert_eq!((attr.mode.0, attr.size), (0o600, 5));
        client.put("dir/small", b"rewritten").await.unwrap();
        assert_eq!(client.calls_since(&before), [""; 0]);
        assert_eq!(client.get("dir/small").await.unwrap(), b"rewritten");
        client.env.sleep(Duration::from_millis(1500)).await;
        assert_eq!(client.calls_since(&before), ["LeaseList 1"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        let mut names = other.names("dir").await.unwrap();
        names.sort();
        assert_eq!(names, [".", "..", "first2", "link", "model", "renamed", "small", "sub"]);
        assert_eq!(other.get("dir/sub/inner").await.unwrap(), b"inner");
        assert_eq!(other.get("dir/small").await.unwrap(), b"rewritten");
        assert_eq!(other.find("dir/small").await.unwrap().attr.mode.0, 0o600);
        assert_eq!(other.get("dir/link").await.map_err(|error| error.kind).unwrap_err(), ErrorKind::Loop);
    });
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 0) });
}

/// Mode and time of an object, set as by `cp -a`.
async fn set(client: &Client, path: &str, mode: u32, seconds: u32) -> Attr {
    let node = client.find(path).await.unwrap().node;
    let mtime = Some(NewTime::At(UnixSeconds(seconds)));
    let set = SetAttr { mode: Some(Mode(mode)), mtime, ..SetAttr::default() };
    client.venus.setattr(node, None, set).await.unwrap()
}

async fn mode_and_time(client: &Client, path: &str) -> (u32, u32) {
    let attr = client.find(path).await.unwrap().attr;
    (attr.mode.0, attr.mtime.0)
}

#[test]
fn modes_and_times_are_the_last_that_were_set_also_while_lists_are_on_their_way() {
    let cell = cell(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        // One list has the directory, what is made in it, and then its mode and time.
        client.mkdir("dir/sub").await.unwrap();
        client.put("dir/sub/inner", b"inner").await.unwrap();
        set(&client, "dir/sub", 0o710, 1000).await;
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(mode_and_time(&client, "dir/sub").await, (0o710, 1000));
        // Of these some are set between a list and its reply.
        for n in 0..400u32 {
            let (mode, time) = (0o600 + n % 0o100, 2000 + n);
            for path in ["dir/sub", "dir/sub/inner"] {
                set(&client, path, mode, time).await;
            }
            client.env.sleep(Duration::from_millis(u64::from(n % 13))).await;
            for path in ["dir/sub", "dir/sub/inner"] {
                assert_eq!(mode_and_time(&client, path).await, (mode, time), "{path}, step {n}");
            }
        }
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for path in ["dir/sub", "dir/sub/inner"] {
            assert_eq!(mode_and_time(&other, path).await, (0o600 + 399 % 0o100, 2399), "{path}");
        }
    });
}

#[test]
fn what_was_decided_is_at_the_server_after_fsync() {
    let cell = cell(4);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.put("dir/before", b"before").await.unwrap();
        let closed = client.open("dir/before", OpenFlags::READ_WRITE).await.unwrap();
        let lists = client.calls("LeaseList");
        client.venus.fsync(closed).await.unwrap();
        assert_eq!(client.calls("LeaseList"), lists + 1);
        let synced = client.venus.counters();
        client.put("dir/sent", b"sent").await.unwrap();
        assert_eq!(client.calls_since(&synced), [""; 0]);
        let handle = client.open_new("dir/file").await.unwrap();
        client.write_all(handle, b"synced").await.unwrap();
        client.venus.fsync(handle).await.unwrap();
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
        assert_eq!(client.calls_since(&before), ["LeaseList 21", "StoreRanges 20"]);
        let before = client.venus.counters();
        client.put("dir/long", &pattern(600_000, 1)).await.unwrap();
        let calls = client.calls_since(&before);
        assert!(
            calls.contains(&"LeaseList 1".into()) && calls.contains(&"StoreData64 1".into()),
            "{calls:?}"
        );
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
