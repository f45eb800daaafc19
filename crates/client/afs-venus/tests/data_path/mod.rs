//! Bytes of files by the data path of a real file server: users notice only that it is there.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;
mod tokens;
mod warm;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::StreamConfig;
use afs_venus::{CounterValues, NodeId, OpenFlags};
use common::{Cell, Client, pattern};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const DENIED: i32 = 13;
/// Bytes that are fetched at a time in these tests.
const CHUNK: u64 = 64 << 10;
/// Long enough for a connection to be opened.
const OPENING: Duration = Duration::from_secs(5);

/// A cell with a data path, Alice and Bob; clients read nothing ahead.
fn cell(seed: u64, clear: bool) -> Cell {
    let cell = Cell::with_data_path(seed, clear);
    cell.users.add("alice", 11);
    cell.users.add("bob", 12);
    cell.set_limits(|limits| (limits.chunk_bytes, limits.read_ahead_chunks) = (CHUNK, 0));
    cell
}

async fn log_in(client: &Client) {
    client.log_in(ALICE, "alice").await;
    client.log_in(BOB, "bob").await;
}

/// `home` with a file `big` of 16 chunks, where Alice may do anything and Bob may read.
async fn home_of_alice(client: &Client) {
    let alice = client.user(ALICE);
    alice.mkdir("home").await.unwrap();
    alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
    alice.put("home/big", &big()).await.unwrap();
}

fn big() -> Vec<u8> {
    pattern(16 * CHUNK as usize, 5)
}

/// The nth chunk of a file that is open.
async fn chunk(user: &Client, handle: afs_venus::HandleId, n: u64) -> afs_venus::Result<()> {
    let read = user.venus.read(handle, n * CHUNK, CHUNK as usize).await?;
    assert!(read == big()[(n * CHUNK) as usize..][..CHUNK as usize], "chunk {n}");
    Ok(())
}

fn denied<T>(result: afs_venus::Result<T>) {
    assert_eq!(result.err().map(|error| error.errno()), Some(DENIED));
}

fn by_path(client: &Client) -> (u64, u64) {
    let CounterValues { path_bytes_fetched, path_bytes_stored, .. } = client.venus.counters();
    (path_bytes_fetched, path_bytes_stored)
}

#[test]
fn files_are_stored_and_fetched_by_the_path_with_one_capability_for_a_directory() {
    for clear in [false, true] {
        let cell = cell(1, clear);
        let (one, two) = (cell.client(1), cell.client(2));
        let here = one.clone();
        cell.on(&one, async move {
            here.mkdir("dir").await.unwrap();
            for n in 0..20 {
                here.put(&format!("dir/{n}"), &pattern(100_000 + n, n as u64)).await.unwrap();
            }
        });
        assert_eq!(one.calls("StoreData64") + one.calls("StoreRanges"), 0, "stores wait for a connection");
        assert_eq!((one.calls("Commit"), one.calls("GetCapability"), one.calls("DataPath")), (20, 1, 1));
        let there = two.clone();
        cell.on(&two, async move {
            there.get("dir/0").await.unwrap();
            there.env.sleep(OPENING).await;
            let before = there.calls("FetchData64");
            for n in 1..20 {
                let got = there.get(&format!("dir/{n}")).await.unwrap();
                assert!(got == pattern(100_000 + n, n as u64), "file {n}");
            }
            // The directory itself has come by a call before.
            assert_eq!(there.calls("FetchData64"), before);
        });
        assert_eq!((two.calls("GetCapability"), two.calls("DataPath")), (1, 1));
        assert!(by_path(&two).0 >= 19 * 100_000, "clear: {clear}");
        let there = two.clone();
        let told = cell.on(&two, async move { there.venus.property(NodeId::ROOT, b"afs.datapath").await });
        assert_eq!(&told.unwrap()[..], b"10.0.0.1 in use\n");
    }
}

#[test]
fn a_server_without_a_path_is_asked_once_and_told_apart() {
    let cell = Cell::by_calls(2);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        for n in 0..5 {
            here.put(&format!("{n}"), &pattern(200_000, n)).await.unwrap();
            here.env.sleep(OPENING).await;
        }
        let told = here.venus.property(NodeId::ROOT, b"afs.datapath").await.unwrap();
        assert_eq!(&told[..], b"10.0.0.1 none\n");
    });
    assert_eq!((machine.calls("DataPath"), by_path(&machine)), (1, (0, 0)));
}

#[test]
fn a_server_without_a_path_is_asked_again_after_an_hour() {
    let cell = Cell::by_calls(2);
    let machine = cell.client(1);
    for (pass, calls) in [(0, 1), (3000, 1), (700, 2), (3000, 2), (700, 3)] {
        cell.sim.run_for(Duration::from_secs(pass));
        let here = machine.clone();
        cell.on(&machine, async move {
            here.put("file", &pattern(200_000, pass)).await.unwrap();
            here.env.sleep(OPENING).await;
        });
        assert_eq!(machine.calls("DataPath"), calls, "after {pass} s more");
    }
}

#[test]
fn a_server_that_comes_back_with_a_path_is_asked_again() {
    let cell = Cell::by_calls(2);
    let machine = cell.client(1);
    let stored = |n: u64| {
        let here = machine.clone();
        cell.on(&machine, async move {
            here.put("file", &pattern(200_000, n)).await.unwrap();
            here.env.sleep(OPENING).await;
        });
        (by_path(&machine).1, machine.calls("DataPath"))
    };
    assert_eq!((stored(1), stored(2)), ((0, 1), (0, 1)));
    cell.upgrade_server();
    stored(3);
    let (bytes, calls) = stored(4);
    assert!(bytes >= 200_000 && calls == 2, "{bytes} bytes, asked {calls} times");
}

/// A change of an access list right after a capability was given costs one fetch by calls.
#[test]
fn after_one_revocation_the_file_is_read_by_the_path_again() {
    let cell = cell(7, false);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        let alice = here.user(ALICE);
        let handle = alice.open("home/big", OpenFlags::READ).await.unwrap();
        chunk(&alice, handle, 0).await.unwrap();
        here.env.sleep(OPENING).await;
        for round in 0..2 {
            chunk(&alice, handle, 1 + 3 * round).await.unwrap();
            alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
            chunk(&alice, handle, 2 + 3 * round).await.unwrap();
            let before = by_path(&here).0;
            chunk(&alice, handle, 3 + 3 * round).await.unwrap();
            assert_eq!(by_path(&here).0 - before, CHUNK, "round {round}");
        }
    });
}

#[test]
fn a_store_by_the_path_is_one_version_and_breaks_the_promises_of_others() {
    let cell = cell(3, false);
    let (one, two) = (cell.client(1), cell.client(2));
    let here = one.clone();
    cell.on(&one, async move { here.put("file", &pattern(300_000, 1)).await.unwrap() });
    let there = two.clone();
    cell.on(&two, async move { there.get("file").await.map(drop).unwrap() });
    let here = one.clone();
    let changed = cell.on(&one, async move {
        let handle = here.open("file", OpenFlags::READ_WRITE).await.unwrap();
        let before = here.calls("Commit");
        let mut wanted = pattern(300_000, 1);
        for at in [5_000, 290_000] {
            wanted[at..at + 8000].copy_from_slice(&pattern(8000, 7));
            here.venus.write(handle, at as u64, pattern(8000, 7).into()).await.unwrap();
        }
        here.venus.flush(handle, 0).await.unwrap();
        here.venus.release(handle).await.unwrap();
        assert_eq!(here.calls("Commit"), before + 1);
        wanted
    });
    let there = two.clone();
    let got = cell.on(&two, async move { there.get("file").await.unwrap() });
    assert!(got == changed);
}

#[test]
fn the_capability_of_one_user_never_serves_the_read_of_another_one() {
    let cell = cell(4, false);
    let (one, two) = (cell.client(1), cell.client(2));
    let there = two.clone();
    cell.on(&two, async move {
        log_in(&there).await;
        home_of_alice(&there).await;
    });
    let here = one.clone();
    let (of_alice, of_bob) = cell.on(&one, async move {
        log_in(&here).await;
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        let of_alice = alice.open("home/big", OpenFlags::READ).await.unwrap();
        let of_bob = bob.open("home/big", OpenFlags::READ).await.unwrap();
        chunk(&alice, of_alice, 0).await.unwrap();
        chunk(&bob, of_bob, 1).await.unwrap();
        here.env.sleep(OPENING).await;
        let before = by_path(&here).0;
        chunk(&alice, of_alice, 2).await.unwrap();
        chunk(&bob, of_bob, 3).await.unwrap();
        assert_eq!(by_path(&here).0 - before, 2 * CHUNK, "each by a capability of his own");
        (of_alice, of_bob)
    });
    let there = two.clone();
    cell.on(&two, async move {
        there.user(ALICE).set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
    });
    let here = one.clone();
    cell.on(&one, async move {
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        for n in 4..8 {
            let before = by_path(&here).0;
            denied(chunk(&bob, of_bob, n).await);
            assert_eq!(by_path(&here).0, before, "chunk {n}");
            chunk(&alice, of_alice, n + 4).await.unwrap();
        }
        assert!(by_path(&here).0 >= 5 * CHUNK, "hers is given again");
    });
}

#[test]
fn after_a_restart_of_the_server_the_new_key_is_asked_for() {
    let cell = cell(6, false);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move { here.put("file", &big()).await.unwrap() });
    assert!(by_path(&machine).1 > 0);
    cell.restart_server();
    for n in 0..4u64 {
        let here = machine.clone();
        cell.on(&machine, async move {
            here.put("file", &pattern(300_000, n)).await.unwrap();
            here.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
            assert!(here.get("file").await.unwrap() == pattern(300_000, n));
            here.env.sleep(Duration::from_secs(70)).await;
        });
    }
    let counters = machine.venus.counters();
    assert!(by_path(&machine).0 > 0 && counters.path_connections >= 2, "{counters:?}");
    assert_eq!(counters.path_fallbacks.get("wrong_key"), None);
}

/// Connections are reset, fall silent and stall at random bytes, in both directions.
#[test]
fn files_have_the_stored_bytes_whatever_happens_to_connections() {
    let (mut moved, mut fallbacks) = (0, 0);
    for seed in afs_sim::crash::seeds(12) {
        println!("seed {seed}");
        let cell = cell(seed, seed % 3 == 0);
        cell.set_streams(StreamConfig {
            segment_max: 1 << (9 + seed % 8),
            stall_per_million: 1000,
            stall_max: Duration::from_secs(1 << (seed % 5)),
            reset_per_million: [200, 4000][seed as usize % 2],
            silence_per_million: [100, 1000][seed as usize / 2 % 2],
            ..StreamConfig::default()
        });
        let (one, two) = (cell.client(1), cell.client(2));
        for round in 0..8u64 {
            let (writer, reader) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
            let wanted = pattern(1 + (seed * 7919 + round * 104_729) as usize % 700_000, seed + round);
            let (here, data) = (writer.clone(), wanted.clone());
            cell.on(writer, async move {
                here.put("file", &data).await.unwrap();
                here.env.sleep(Duration::from_secs(65)).await;
            });
            let there = reader.clone();
            let got = cell.on(reader, async move { there.get("file").await.unwrap() });
            assert!(got == wanted, "seed {seed}, round {round}");
        }
        for client in [&one, &two] {
            let counters = client.venus.counters();
            moved += counters.path_bytes_fetched + counters.path_bytes_stored;
            fallbacks += counters.path_fallbacks.iter().filter(|(name, _)| **name != "connecting").count();
        }
    }
    assert!(moved > 0 && fallbacks > 0, "{moved} bytes, {fallbacks} reasons");
}
