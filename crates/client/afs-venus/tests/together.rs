//! Processes of one machine that change names in one directory at the same moment: few calls, and each has its own result.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{join, join_all};
use afs_sim::SimRng;
use afs_venus::{ErrorKind, NodeId, OpenFlags, Result};
use common::fakes::{Fakes, Image, RW};
use common::{Cell, Client};

type Program = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

fn create(client: &Client, dir: NodeId, name: String) -> Program {
    let client = client.clone();
    Box::pin(async move { client.venus.mknod(dir, name.as_bytes(), 0o644).await.map(drop) })
}

/// Names of the files in a directory, as a machine that knows nothing yet sees them.
fn seen(cell: &Cell, number: u8, path: &'static str) -> BTreeSet<String> {
    let client = cell.client(number);
    let names = cell.on(&client.clone(), async move { client.names(path).await.unwrap() });
    names.into_iter().filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn programs_that_create_files_at_the_same_moment_share_a_call() {
    let cell = Cell::new(1);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        let dir = client.find("dir").await.unwrap().node;
        let before = client.venus.counters();
        let made = join_all((0..100).map(|n| create(&client, dir, format!("file{n}")))).await;
        assert!(made.iter().all(Result::is_ok), "{made:?}");
        // The first one alone; what waited for it in lists of 64 at most.
        assert_eq!(client.calls_since(&before), ["ChangeList 3"]);
        let nodes: BTreeSet<u64> = {
            let mut nodes = BTreeSet::new();
            for n in 0..100 {
                nodes.insert(client.find(&format!("dir/file{n}")).await.unwrap().node.0);
            }
            nodes
        };
        assert_eq!((nodes.len(), client.names("dir").await.unwrap().len()), (100, 102));
        // The directory and the files are promised, and known without another call.
        assert_eq!(client.calls_since(&before), ["ChangeList 3"]);
    });
    assert_eq!(seen(&cell, 2, "dir").len(), 100);
}

#[test]
fn all_kinds_of_changes_of_names_share_a_call() {
    let cell = Cell::new(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        for name in ["dir/old", "dir/gone", "dir/linked"] {
            client.put(name, b"x").await.unwrap();
        }
        client.mkdir("dir/empty").await.unwrap();
        let (dir, file) =
            (client.find("dir").await.unwrap().node, client.find("dir/linked").await.unwrap().node);
        let before = client.venus.counters();
        let one = async |n: u32| {
            let venus = &client.venus;
            match n {
                0 | 1 => venus.mknod(dir, format!("file{n}").as_bytes(), 0o600).await.map(drop),
                2 => venus.mkdir(dir, b"sub", 0o755).await.map(drop),
                3 => venus.symlink(dir, b"link", b"file0").await.map(drop),
                4 => venus.link(file, dir, b"second").await.map(drop),
                5 => venus.rename(dir, b"old", dir, b"new").await,
                6 => venus.unlink(dir, b"gone").await,
                _ => venus.rmdir(dir, b"empty").await,
            }
        };
        let done = join_all((0..8).map(one)).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        let calls = client.calls_since(&before);
        let changes = calls.iter().filter(|call| !call.starts_with("FetchStatus"));
        assert_eq!(changes.collect::<Vec<_>>(), ["ChangeList 2"]);
        assert_eq!(client.find("dir/second").await.unwrap().attr.nlink, 2);
    });
    let want = ["file0", "file1", "link", "linked", "new", "second", "sub"].map(String::from);
    assert_eq!(seen(&cell, 2, "dir"), BTreeSet::from(want));
}

#[test]
fn an_error_is_that_of_the_program_whose_change_failed() {
    let cell = Cell::new(3);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.mkdir("dir/full").await.unwrap();
        client.put("dir/full/file", b"x").await.unwrap();
        client.names("dir").await.unwrap();
    });
    let other = b.clone();
    // This machine has no promise on the names that the other one makes now.
    cell.sim.world().cut(cell.server, a.node);
    cell.on(&b, async move {
        other.put("dir/file7", b"of another machine").await.unwrap();
        other.put("dir/file30", b"of another machine").await.unwrap();
    });
    cell.sim.world().mend(cell.server, a.node);
    let client = a.clone();
    cell.on(&a, async move {
        let dir = client.find("dir").await.unwrap().node;
        let one = async |n: u32| match n {
            20 => client.venus.rmdir(dir, b"full").await,
            _ => create(&client, dir, format!("file{n}")).await,
        };
        let done = join_all((0..40).map(one)).await;
        let failed: Vec<_> =
            done.iter().enumerate().filter_map(|(n, done)| Some((n, done.as_ref().err()?.kind))).collect();
        assert_eq!(failed, [(7, ErrorKind::Exists), (20, ErrorKind::NotEmpty), (30, ErrorKind::Exists)]);
        assert!(client.calls("ChangeList") > 0);
    });
    assert_eq!(seen(&cell, 3, "dir").len(), 40);
}

#[test]
fn two_programs_that_create_one_name_have_one_winner() {
    let cell = Cell::new(4);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        let names = (0..30).map(|n| create(&client, NodeId::ROOT, format!("file{}", n % 10)));
        let done = join_all(names).await;
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 10);
        let lost = done.iter().filter_map(|done| done.as_ref().err());
        assert!(lost.into_iter().all(|error| error.kind == ErrorKind::Exists));
    });
    assert_eq!(seen(&cell, 2, "").len(), 10);
}

#[test]
fn users_who_change_names_at_the_same_moment_have_their_own_rights() {
    let cell = Cell::new(5);
    cell.users.add("alice", 11);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.log_in(1, "alice").await;
        let (alice, bob) = (client.user(1), client.user(2));
        alice.mkdir("dir").await.unwrap();
        alice.set_acl("dir", &[("alice", "rlidwka"), ("system:anyuser", "rl")]).await.unwrap();
        let dir = alice.find("dir").await.unwrap().node;
        let one = |n: u32| create([&alice, &bob][n as usize % 2], dir, format!("file{n}"));
        // The last one to say what he changes sends the list: it would be one of Alice.
        let done = join_all((0..21).map(one)).await;
        for (n, done) in done.iter().enumerate() {
            assert_eq!(
                done.as_ref().err().map(|error| error.kind),
                [None, Some(ErrorKind::AccessDenied)][n % 2]
            );
        }
    });
}

#[test]
fn a_server_without_the_call_is_asked_once_and_its_programs_notice_nothing() {
    let fakes = Fakes::new(6, 1, 1);
    fakes.servers[0].host(RW, &Arc::new(Mutex::new(Image::new(1))), true);
    fakes.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    let a = fakes.client(1);
    let client = a.clone();
    fakes.on(&a, async move {
        for round in 0..3 {
            let names = (0..10).map(|n| create(&client, NodeId::ROOT, format!("file{round}-{n}")));
            let done = join_all(names).await;
            assert!(done.iter().all(Result::is_ok), "{done:?}");
        }
        assert_eq!((client.calls("ChangeList"), client.calls("CreateFile")), (1, 30));
    });
}

#[test]
fn a_list_whose_reply_is_lost_is_made_once() {
    for seed in 0..40 {
        let cell = Cell::new(100 + seed);
        let mut rng = SimRng::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let client = a.clone();
        cell.on(&a, async move {
            client.mkdir("dir").await.unwrap();
            client.put("dir/old", b"x").await.unwrap();
            client.put("dir/gone", b"x").await.unwrap();
        });
        // The moments when requests or replies of the second call are on their way.
        let (cut_at, mended_at) =
            (Duration::from_micros(rng.between(100, 4000)), Duration::from_secs(rng.between(1, 10)));
        let (from, to) = if rng.below(2) == 0 { (cell.server, a.node) } else { (a.node, cell.server) };
        let (client, world) = (a.clone(), cell.sim.world());
        let failed = cell.on(&a, async move {
            let dir = client.find("dir").await.unwrap().node;
            let one = async |n: u32| match n {
                3 => client.venus.rename(dir, b"old", dir, b"new").await,
                6 => client.venus.unlink(dir, b"gone").await,
                _ => create(&client, dir, format!("file{n}")).await,
            };
            let work = join_all((0..12).map(one));
            let trouble = async {
                client.env.sleep(cut_at).await;
                world.cut(from, to);
                client.env.sleep(mended_at).await;
                world.mend(from, to);
            };
            let (done, ()) = join(work, trouble).await;
            done.iter()
                .enumerate()
                .filter_map(|(n, done)| Some(format!("{n}: {}", done.as_ref().err()?)))
                .collect::<Vec<_>>()
        });
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
        let mut want: BTreeSet<String> =
            (0..12).filter(|n| ![3, 6].contains(n)).map(|n| format!("file{n}")).collect();
        want.insert("new".into());
        for client in [&a, &b] {
            let one = client.clone();
            let names = cell.on(client, async move { one.names("dir").await.unwrap() });
            let names: BTreeSet<String> = names.into_iter().filter(|name| !name.starts_with('.')).collect();
            assert_eq!(names, want, "seed {seed}");
        }
    }
}

#[test]
fn a_program_that_gives_up_leaves_the_others_their_results() {
    for seed in 0..40 {
        let cell = Cell::new(200 + seed);
        let mut rng = SimRng::new(seed);
        let a = cell.client(1);
        let client = a.clone();
        let patience: Vec<Duration> = (0..16)
            .map(|n| match n % 3 {
                0 => Duration::from_micros(rng.between(50, 3000)),
                _ => Duration::from_secs(600),
            })
            .collect();
        let done = cell.on(&a, async move {
            let dir = NodeId::ROOT;
            let one = async |(n, patience): (usize, Duration)| {
                client.env.timeout(patience, create(&client, dir, format!("file{n}"))).await.ok()
            };
            let done = join_all(patience.into_iter().enumerate().map(one)).await;
            let handle = client.open_new("after").await.unwrap();
            client.venus.release(handle).await.unwrap();
            client.open("file1", OpenFlags::READ).await.unwrap();
            done
        });
        let seen = seen(&cell, 2, "");
        for (n, done) in done.into_iter().enumerate() {
            match done {
                Some(done) => {
                    assert!(done.is_ok() && seen.contains(&format!("file{n}")), "seed {seed}: {done:?}")
                }
                None => assert_eq!(n % 3, 0, "seed {seed}: it had time"),
            }
        }
    }
}
