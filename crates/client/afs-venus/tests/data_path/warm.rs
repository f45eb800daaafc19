//! A client that is warm asks for no capabilities: one is for all files of a directory, it comes with statuses where that costs
//! no call, and those in use are renewed together before they end.

use super::*;

/// Calls for capabilities alone.
fn asked(client: &Client) -> u64 {
    client.calls("GetCapability")
}

/// Calls for the bytes of files.
fn fetched_by_calls(client: &Client) -> u64 {
    client.calls("FetchData64")
}

/// Reads the files of `dir`, which are those of [`make`], by the path alone.
async fn read_all(client: &Client, files: u64) {
    let before = by_path(client).0;
    for n in 1..files {
        let got = client.get(&format!("dir/{n}")).await.unwrap();
        assert!(got == pattern(4096 + n as usize % 100, n), "file {n}");
    }
    assert!(by_path(client).0 - before >= (files - 1) * 4096, "all of them by the path");
}

async fn make(client: &Client, files: u64) {
    client.mkdir("dir").await.unwrap();
    for n in 0..files {
        client.put(&format!("dir/{n}"), &pattern(4096 + n as usize % 100, n)).await.unwrap();
    }
}

async fn forget_all(client: &Client) {
    client.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
}

#[test]
fn a_thousand_files_of_a_directory_are_read_twice_by_one_capability() {
    const FILES: u64 = 1000;
    let cell = cell(31, true);
    let (one, two) = (cell.client(1), cell.client(2));
    let here = one.clone();
    cell.on(&one, async move { make(&here, FILES).await });
    let there = two.clone();
    cell.on(&two, async move {
        there.get("dir/0").await.unwrap();
        there.env.sleep(OPENING).await;
    });
    let began = cell.sim.now();
    let there = two.clone();
    cell.on(&two, async move { read_all(&there, FILES).await });
    assert_eq!(asked(&two), 1, "one capability for all");
    // What is in the cache is dropped, and the capability is not.
    let there = two.clone();
    cell.on(&two, async move {
        forget_all(&there).await;
        read_all(&there, FILES).await;
    });
    assert!(cell.sim.now().saturating_since(began) < Duration::from_secs(140), "within half of its life");
    assert_eq!(asked(&two), 1, "a warm client asks for none");
}

/// Five directories with a file each, which are read for an hour.
#[test]
fn capabilities_in_use_are_renewed_in_one_call_and_those_that_are_not_in_use_are_not() {
    const DIRS: u64 = 5;
    let cell = cell(32, true);
    let (one, two) = (cell.client(1), cell.client(2));
    let here = one.clone();
    cell.on(&one, async move {
        for n in 0..=DIRS {
            here.mkdir(&format!("dir{n}")).await.unwrap();
            here.put(&format!("dir{n}/big"), &big()).await.unwrap();
        }
    });
    let there = two.clone();
    cell.on(&two, async move {
        let mut handles = Vec::new();
        for n in 0..=DIRS {
            handles.push(there.open(&format!("dir{n}/big"), OpenFlags::READ).await.unwrap());
        }
        chunk(&there, handles[0], 0).await.unwrap();
        there.env.sleep(OPENING).await;
        for handle in &handles {
            chunk(&there, *handle, 1).await.unwrap();
        }
        assert_eq!(asked(&there), DIRS + 1, "one for each directory");
        let calls = fetched_by_calls(&there);
        // The last one is not read any more.
        handles.pop();
        for round in 0..14 {
            for pause in 0..2 {
                there.env.sleep(Duration::from_secs(29)).await;
                if pause == 0 {
                    chunk(&there, handles[round % DIRS as usize], 2 + round as u64 / 5).await.unwrap();
                }
            }
            for handle in &handles {
                chunk(&there, *handle, 6 + round as u64 % 10).await.unwrap();
            }
        }
        // Each of them was asked for once.
        // 812 s in all; after 225 s of a life of 300 s each next use asks again.
        assert_eq!(asked(&there), DIRS + 1 + 3);
        assert_eq!(fetched_by_calls(&there), calls, "and no read was without");
    });
    let refusals = two.venus.counters().path_fallbacks;
    assert_eq!(refusals.keys().filter(|name| **name != "connecting").count(), 0, "{refusals:?}");
}

#[test]
fn a_listing_brings_the_capability_for_the_files_that_it_lists() {
    let cell = cell(33, true);
    let (one, two) = (cell.client(1), cell.client(2));
    let here = one.clone();
    cell.on(&one, async move {
        make(&here, 20).await;
        here.put("file", &big()).await.unwrap();
    });
    let there = two.clone();
    cell.on(&two, async move {
        there.get("file").await.unwrap();
        there.env.sleep(OPENING).await;
        there.get("file").await.unwrap();
        let before = asked(&there);
        let dir = there.find("dir").await.unwrap().node;
        there.venus.readdirplus(dir, 0, 100).await.unwrap();
        assert_eq!(there.calls("StatusAndCapability"), 1);
        read_all(&there, 20).await;
        assert_eq!(asked(&there), before, "it came with the statuses");
        // It is not asked for again while it is there.
        let before = there.calls("InlineBulkStatus");
        forget_all(&there).await;
        there.venus.readdirplus(dir, 0, 100).await.unwrap();
        assert_eq!(there.calls("StatusAndCapability"), 1);
        assert!(there.calls("InlineBulkStatus") > before);
    });
}

/// A change of the access list takes the capability that came with statuses, as any other.
#[test]
fn what_came_with_statuses_is_revoked_as_any_other() {
    let cell = cell(34, true);
    let (one, two) = (cell.client(1), cell.client(2));
    let here = one.clone();
    cell.on(&one, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
    });
    let there = two.clone();
    let handle = cell.on(&two, async move {
        log_in(&there).await;
        let (alice, bob) = (there.user(ALICE), there.user(BOB));
        let of_alice = alice.open("home/big", OpenFlags::READ).await.unwrap();
        chunk(&alice, of_alice, 0).await.unwrap();
        there.env.sleep(OPENING).await;
        let (home, before) = (bob.find("home").await.unwrap().node, asked(&there));
        forget_all(&there).await;
        bob.venus.readdirplus(home, 0, 100).await.unwrap();
        assert_eq!(there.calls("StatusAndCapability"), 1);
        // The connection is there. Whether it is to the drive of which Bob is told is known after his first read.
        let of_bob = bob.open("home/big", OpenFlags::READ).await.unwrap();
        chunk(&bob, of_bob, 1).await.unwrap();
        there.env.sleep(OPENING).await;
        let bytes = by_path(&there).0;
        chunk(&bob, of_bob, 2).await.unwrap();
        assert_eq!((by_path(&there).0 - bytes, asked(&there)), (CHUNK, before));
        of_bob
    });
    let here = one.clone();
    cell.on(&one, async move { here.user(ALICE).set_acl("home", &[("alice", "rlidwka")]).await.unwrap() });
    let there = two.clone();
    cell.on(&two, async move {
        let (bob, before) = (there.user(BOB), by_path(&there).0);
        for n in 3..6 {
            denied(chunk(&bob, handle, n).await);
        }
        assert_eq!(by_path(&there).0, before);
    });
}
