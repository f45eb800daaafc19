//! Locks on files of a leased directory: the holder of the lease may keep them for its next process, so others have them recalled.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::sync::Arc;
use std::time::Duration;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LockKind};
use afs_wire::ids::Fid;
use rig::leasing::*;
use rig::{Cell, Client, Heard};

fn lock(fid: Fid, kind: LockKind) -> fs::SetLock {
    fs::SetLock { fid, kind }
}

fn refused_lock() -> AbortCode {
    Errno::EAGAIN.to_uae()
}

/// A file that was there before its directory was leased to the first of three clients.
fn scene(seed: u64) -> (Cell, [Client; 3], Fid) {
    let cell = Cell::new(seed);
    let clients = [cell.client(1), cell.client(2), cell.client(3)];
    let fid = clients[0].create(cell.root(), "database").unwrap().fid;
    (cell, clients, fid)
}

/// The client gives a lock back before it answers a recall.
fn releases_when_recalled(client: &Client, fid: Fid) {
    let connection = client.connection::<fs::ReleaseLock>();
    client.on_recall(Arc::new(move |_| {
        let connection = connection.clone();
        Box::pin(async move {
            connection.call(&fs::ReleaseLock { fid }).await.unwrap();
            Ok(())
        })
    }));
}

#[test]
fn a_kept_lock_is_released_by_the_recall_before_another_client_is_refused() {
    for kind in [LockKind::READ, LockKind::WRITE] {
        let (cell, [a, b, _], fid) = scene(1);
        let lease = take(&a, cell.root());
        a.ask(lock(fid, LockKind::WRITE)).unwrap();
        releases_when_recalled(&a, fid);
        a.heard();
        b.ask(lock(fid, kind)).unwrap();
        assert_eq!(a.heard(), [Heard::Recall(cell.root(), lease.lease)]);
        assert_eq!(a.refusal(lock(fid, LockKind::WRITE)), refused_lock());
    }
}

#[test]
fn a_lock_that_a_process_holds_excludes_others_after_the_recall_too() {
    let (cell, [a, b, _], fid) = scene(2);
    let lease = take(&a, cell.root());
    a.ask(lock(fid, LockKind::READ)).unwrap();
    a.heard();
    b.ask(lock(fid, LockKind::READ)).unwrap();
    assert_eq!(a.heard(), [], "two readers are in nobody's way");
    assert_eq!(b.refusal(fs::ChangeLock { fid, kind: LockKind::WRITE }), refused_lock());
    assert_eq!(a.heard(), [Heard::Recall(cell.root(), lease.lease)]);
    a.ask(fs::ReleaseLock { fid }).unwrap();
    b.ask(fs::ChangeLock { fid, kind: LockKind::WRITE }).unwrap();
}

/// `F_GETLK` of other clients asks for the status.
#[test]
fn a_status_says_what_is_locked_after_the_recall() {
    let (cell, [a, b, _], fid) = scene(3);
    take(&a, cell.root());
    a.ask(lock(fid, LockKind::WRITE)).unwrap();
    assert_eq!(a.fetch_status(fid).unwrap().status.lock_count, -1, "its own");
    releases_when_recalled(&a, fid);
    assert_eq!(b.fetch_status(fid).unwrap().status.lock_count, 0);
    take(&a, cell.root());
    a.heard();
    b.fetch_status(fid).unwrap();
    assert_eq!(a.heard(), [], "the lock does not exist any more");
}

#[test]
fn a_client_that_never_answers_delays_others_as_any_lock_and_recall_do() {
    let (cell, [a, b, _], fid) = scene(4);
    take(&a, cell.root());
    a.ask(lock(fid, LockKind::WRITE)).unwrap();
    never_answer(&a);
    let begun = cell.world().now();
    assert_eq!(b.refusal(lock(fid, LockKind::WRITE)), refused_lock());
    assert!(cell.world().now() - begun < Duration::from_secs(6));
    let begun = cell.world().now();
    assert_eq!(b.refusal(lock(fid, LockKind::WRITE)), refused_lock());
    assert!(cell.world().now() - begun < Duration::from_secs(1), "the lease is over");
    cell.sim.run_for(Duration::from_secs(301));
    b.ask(lock(fid, LockKind::WRITE)).unwrap();
}

#[test]
fn a_lock_of_somebody_else_costs_the_lease_of_nobody() {
    let (cell, [a, b, c], fid) = scene(5);
    c.ask(lock(fid, LockKind::WRITE)).unwrap();
    take(&a, cell.root());
    a.heard();
    assert_eq!(b.refusal(lock(fid, LockKind::WRITE)), refused_lock());
    assert_eq!(b.fetch_status(fid).unwrap().status.lock_count, -1);
    assert_eq!(a.heard(), []);
}
