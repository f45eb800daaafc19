//! Data whose store failed: it is told to the user who wrote it, copied out, retried and discarded.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{ErrorKind, NodeId, TokenOwner, Unsaved, Unsettled, Venus};
use common::{Cell, Client, SMALL_KIB, pattern};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;

/// More than the quota of the volume; the server lets a store that has begun exceed it by a mebibyte.
fn too_much() -> Vec<u8> {
    pattern((SMALL_KIB as usize + 1100) << 10, 1)
}

/// A client whose user Alice has a file that the quota refuses.
fn refused(seed: u64) -> (Cell, Client) {
    let cell = Cell::new(seed);
    let a = cell.client(1);
    let here = a.clone();
    cell.on(&a, async move {
        here.mount("small", "#small.").await.unwrap();
        here.user(ALICE).put("small/file", &too_much()).await.unwrap_err();
    });
    (cell, a)
}

fn of(client: &Client, uid: u32) -> Vec<Unsaved> {
    client.venus.unsaved(TokenOwner::Uid(uid), 0)
}

/// All bytes, zeros where pieces leave a gap.
async fn copy(venus: &Venus, number: u64) -> Result<Vec<u8>, Unsettled> {
    let mut out = Vec::new();
    loop {
        let piece = venus.unsaved_piece(TokenOwner::Uid(ALICE), number, out.len() as u64).await?;
        out.resize(piece.at as usize, 0);
        if piece.bytes.is_empty() {
            return Ok(out);
        }
        out.extend(piece.bytes);
    }
}

#[test]
fn data_beyond_the_quota_is_told_with_its_reason_and_copied_out() {
    let (cell, a) = refused(1);
    let before = a.venus.counters();
    let [told] = &of(&a, ALICE)[..] else { panic!("one file") };
    assert_eq!(told.path.as_deref(), Some("small/file"));
    assert_eq!((told.length_bytes, told.unsaved_bytes, told.missing_bytes), {
        let length = too_much().len() as u64;
        (length, length, 0)
    });
    assert!(told.error.as_ref().unwrap().contains("the volume's quota is used up"), "{told:?}");
    assert!(told.advice.contains("quota") && told.since.is_some() && !told.is_set_aside, "{told:?}");
    assert_eq!((told.uid, told.cell.as_str()), (Some(ALICE), "test.cell"));
    let (here, number) = (a.clone(), told.number);
    let copied = cell.on(&a, async move { copy(&here.venus, number).await.unwrap() });
    assert!(copied == too_much());
    assert_eq!(a.calls_since(&before), [""; 0], "neither needs a server");
    assert_eq!(a.venus.unsaved(TokenOwner::Uid(ALICE), number), []);
}

#[test]
fn unsaved_data_is_for_the_user_who_wrote_it_and_for_root() {
    let (cell, a) = refused(2);
    let number = of(&a, ALICE)[0].number;
    assert_eq!(of(&a, 0).len(), 1);
    assert_eq!(of(&a, BOB), []);
    let here = a.clone();
    cell.on(&a, async move {
        let bob = TokenOwner::Uid(BOB);
        let refused = [
            here.venus.unsaved_piece(bob, number, 0).await.map(drop),
            here.venus.retry_unsaved(bob, number).await,
            here.venus.discard_unsaved(bob, number).await,
        ];
        assert!(refused.iter().all(|it| *it == Err(Unsettled::Gone)));
    });
    assert_eq!(of(&a, ALICE).len(), 1);
}

#[test]
fn a_discard_makes_the_file_the_servers_again_and_not_while_it_is_open() {
    let (cell, a) = refused(3);
    let number = of(&a, ALICE)[0].number;
    let here = a.clone();
    cell.on(&a, async move {
        let alice = TokenOwner::Uid(ALICE);
        let reader = here.open("small/file", afs_venus::OpenFlags::READ).await.unwrap();
        assert_eq!(here.venus.discard_unsaved(alice, number).await, Err(Unsettled::InUse));
        here.venus.release(reader).await.unwrap();
        here.venus.discard_unsaved(alice, number).await.unwrap();
        assert_eq!(here.get("small/file").await.unwrap(), b"", "as it was created");
        assert_eq!(here.venus.retry_unsaved(alice, number).await, Err(Unsettled::Gone));
    });
    assert_eq!(of(&a, ALICE), []);
}

/// Asks until the store has ended. Returns its outcome, and what was told meanwhile.
async fn retried(client: &Client, number: u64) -> (Result<(), Unsettled>, Vec<String>) {
    let mut told = Vec::new();
    loop {
        let asked = client.env.now();
        match client.venus.retry_unsaved(TokenOwner::Uid(ALICE), number).await {
            Err(Unsettled::Waiting(why)) => told.push(why),
            outcome => return (outcome, told),
        }
        assert!(client.env.now().saturating_since(asked) <= Duration::from_secs(5), "{told:?}");
    }
}

#[test]
fn a_retry_stores_what_the_server_takes_now_and_tells_why_it_does_not() {
    let cell = Cell::new(4);
    let (a, b) = (cell.client(1), cell.client(2));
    let here = a.clone();
    cell.on(&a, async move { here.user(ALICE).put("file", b"before").await.unwrap() });
    cell.sim.world().cut(a.node, cell.server);
    let here = a.clone();
    let number = cell.on(&a, async move {
        here.user(ALICE).put("file", b"precious").await.unwrap_err();
        let number = of(&here, ALICE)[0].number;
        let first = here.venus.retry_unsaved(TokenOwner::Uid(ALICE), number).await;
        assert!(matches!(first, Err(Unsettled::Waiting(_))), "{first:?}");
        assert_eq!(here.venus.retry_unsaved(TokenOwner::Uid(BOB), number).await, Err(Unsettled::Gone));
        // It goes on, and its outcome is for the next one that asks: it is not begun anew.
        let (before, asked) = (here.venus.counters(), here.env.now());
        here.env.sleep(Duration::from_secs(8)).await;
        let (outcome, told) = retried(&here, number).await;
        assert_eq!((here.env.now().saturating_since(asked).as_secs(), told.len()), (8, 0), "{told:?}");
        assert!(outcome.is_err() && here.calls_since(&before).len() < 2, "{:?}", here.calls_since(&before));
        let (outcome, told) = retried(&here, number).await;
        let failed = outcome.unwrap_err();
        let Unsettled::Failed(failed) = failed else { panic!("{failed}") };
        assert!(!told.is_empty() && told.iter().all(|why| why.contains("10.0.0.1:7000")), "{told:?}");
        assert_eq!(failed.kind, ErrorKind::ServerUnreachable);
        number
    });
    let told = of(&a, ALICE);
    assert!(told[0].error.as_ref().unwrap().contains("10.0.0.1:7000"), "{told:?}");
    cell.sim.world().mend(a.node, cell.server);
    let here = a.clone();
    cell.on(&a, async move { retried(&here, number).await.0.unwrap() });
    assert_eq!(of(&a, ALICE), []);
    let there = b.clone();
    assert_eq!(cell.on(&b, async move { there.get("file").await.unwrap() }), b"precious");
}

#[test]
fn what_a_user_may_not_store_any_more_is_set_aside_and_the_file_is_the_servers() {
    let cell = Cell::new(5);
    cell.users.add("alice", 11);
    let a = cell.client(1);
    let here = a.clone();
    cell.on(&a, async move {
        here.log_in(ALICE, "alice").await;
        here.mkdir("home").await.unwrap();
        here.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        let alice = here.user(ALICE);
        alice.put("home/file", b"before").await.unwrap();
        let handle = alice.open("home/file", afs_venus::OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 2, bytes::Bytes::from_static(b"precious")).await.unwrap();
        alice.set_acl("home", &[("alice", "rla")]).await.unwrap();
        assert_eq!(alice.venus.flush(handle, 0).await.unwrap_err().kind, ErrorKind::AccessDenied);
        alice.venus.release(handle).await.unwrap_err();
        assert_eq!(alice.get("home/file").await.unwrap(), b"before");
        let [told] = &of(&here, ALICE)[..] else { panic!("one file") };
        assert!(told.is_set_aside && told.error.is_some(), "{told:?}");
        assert_eq!(told.length_bytes, 10);
        let number = told.number;
        let owner = TokenOwner::Uid(ALICE);
        assert_eq!(here.venus.retry_unsaved(owner, number).await, Err(Unsettled::SetAside));
        assert_eq!(copy(&here.venus, number).await.unwrap(), b"beprecious");
        here.venus.discard_unsaved(owner, number).await.unwrap();
        assert_eq!(copy(&here.venus, number).await, Err(Unsettled::Gone));
    });
    assert_eq!(of(&a, ALICE), []);
}

#[test]
fn data_of_a_removed_file_is_dropped_and_its_writer_told_if_another_machine_removed_it() {
    let cell = Cell::new(12);
    let (a, b) = (cell.client(1), cell.client(2));
    for (name, here_too) in [("elsewhere", false), ("here", true)] {
        let alice = a.user(ALICE);
        let handle = cell.on(&a, async move {
            alice.put(name, b"before").await.unwrap();
            let handle = alice.open(name, afs_venus::OpenFlags::READ_WRITE).await.unwrap();
            alice.venus.write(handle, 2, bytes::Bytes::from_static(b"precious")).await.unwrap();
            handle
        });
        let remover = if here_too { a.user(ALICE) } else { b.clone() };
        let its = remover.clone();
        cell.on(&remover, async move { its.venus.unlink(NodeId::ROOT, name.as_bytes()).await.unwrap() });
        let alice = a.user(ALICE);
        let released = cell.on(&a, async move { alice.venus.release(handle).await });
        assert_eq!((released.is_ok(), of(&a, ALICE).len()), (here_too, 0), "{name}");
    }
}

#[test]
fn what_a_stop_could_not_store_is_still_told_for_its_report() {
    let (cell, a) = refused(9);
    let [told] = &of(&a, 0)[..] else { panic!("one file") };
    let here = a.clone();
    let stopped = cell.on(&a, async move { here.venus.shut_down().await });
    assert_eq!(stopped.unwrap_err().kind, ErrorKind::OverQuota);
    let [left] = &of(&a, 0)[..] else { panic!("one file") };
    assert_eq!((&left.path, left.number, left.unsaved_bytes), (&told.path, told.number, told.unsaved_bytes));
}
