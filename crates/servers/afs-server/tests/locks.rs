//! Advisory locks between machines, across restarts of the server, and against machines that hold none.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;
use std::time::Duration;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, LockKind};
use afs_wire::ids::{Fid, KindNumber, PartitionNumber, UnixSeconds, Uuid, VolumeId};
use afs_wire::vol::{self, AttachFlags, NameChars, RestoreCookie, VolumeFlags};
use rig::{Cell, Client, Heard, Manner};

fn refused() -> AbortCode {
    Errno::EAGAIN.to_uae()
}

fn scene(seed: u64) -> (Cell, Client, Client, Fid) {
    let cell = Cell::new(seed);
    let (a, b) = (cell.client(1), cell.client(2));
    let fid = a.create(cell.root(), "f").unwrap().fid;
    (cell, a, b, fid)
}

fn write_lock(fid: Fid) -> fs::SetLock {
    fs::SetLock { fid, kind: LockKind::WRITE }
}

#[test]
fn a_lock_outlives_the_server_process() {
    let (mut cell, a, b, fid) = scene(261);
    a.ask(write_lock(fid)).unwrap();
    cell.restart();
    b.ask_anew(fs::GetTime {}, 10).unwrap();
    assert_eq!(b.refusal(write_lock(fid)), refused());
    assert_eq!(b.fetch_status(fid).unwrap().status.lock_count, -1);
    // Its holder extends it, and releases it in the end.
    a.ask_anew(fs::GetTime {}, 10).unwrap();
    cell.sim.run_for(Duration::from_secs(200));
    a.ask(fs::ExtendLock { fid }).unwrap();
    cell.sim.run_for(Duration::from_secs(200));
    assert_eq!(b.refusal(write_lock(fid)), refused());
    a.ask(fs::ReleaseLock { fid }).unwrap();
    b.ask(write_lock(fid)).unwrap();
}

#[test]
fn a_lock_that_was_given_back_some_seconds_before_a_crash_locks_nobody_out() {
    let (mut cell, a, b, fid) = scene(270);
    a.ask(write_lock(fid)).unwrap();
    a.ask(fs::ReleaseLock { fid }).unwrap();
    cell.sim.run_for(Duration::from_secs(15));
    cell.restart();
    b.ask_anew(fs::GetTime {}, 10).unwrap();
    b.ask(write_lock(fid)).unwrap();
}

#[test]
fn an_orderly_stop_leaves_no_lock_that_was_given_back() {
    let (mut cell, a, b, fid) = scene(271);
    a.ask(write_lock(fid)).unwrap();
    a.ask(fs::ReleaseLock { fid }).unwrap();
    cell.settle();
    cell.restart();
    b.ask_anew(fs::GetTime {}, 10).unwrap();
    b.ask(write_lock(fid)).unwrap();
}

/// The volume moves away, as to another server, and comes back.
fn go_and_come_back(cell: &Cell) {
    let (owner, volume, partition) = (cell.owner(), cell.root().volume, PartitionNumber(0));
    let take = vol::TransCreate { volume, partition, flags: AttachFlags::BUSY };
    let transaction = owner.ask(take).unwrap().transaction;
    let dump = owner.read_stream(vol::Dump { transaction, from_date: UnixSeconds(0) }).unwrap();
    owner.ask(vol::DeleteVolume { transaction }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    cell.sim.run_for(Duration::from_secs(5));
    let (name, kind) = (vol::NameText::new(b"root.cell").unwrap(), KindNumber(0));
    let create = vol::CreateVolume { partition, name, kind, parent: volume, volume };
    let transaction = owner.ask(create).unwrap().transaction;
    let name = NameChars::truncated(b"root.cell");
    let cookie = RestoreCookie { name, kind, clone: VolumeId(0), parent: volume };
    owner.send_stream(vol::Restore { transaction, flags: 0, cookie }, &[&dump]).unwrap();
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
}

/// On the other server another client may have had the lock, and changed the file.
#[test]
fn a_lock_does_not_wait_for_a_volume_that_goes_and_comes_back() {
    let (cell, a, b, fid) = scene(269);
    a.ask(write_lock(fid)).unwrap();
    assert_eq!(b.refusal(write_lock(fid)), refused());
    go_and_come_back(&cell);
    assert_eq!(a.refusal(fs::ExtendLock { fid }), Errno::EINVAL.to_uae());
    b.ask(write_lock(fid)).unwrap();
    assert_eq!(a.refusal(write_lock(fid)), refused());
    a.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(a.refusal(write_lock(fid)), refused(), "it was not the caller's to release");
}

#[test]
fn a_lock_whose_holder_did_not_outlive_the_restart_ends_after_one_lifetime() {
    let (mut cell, a, b, fid) = scene(262);
    a.ask(write_lock(fid)).unwrap();
    cell.restart();
    b.ask_anew(fs::GetTime {}, 10).unwrap();
    cell.sim.run_for(Duration::from_secs(301));
    b.ask(write_lock(fid)).unwrap();
    // A lock released long ago is not found at the next start.
    b.ask(fs::ReleaseLock { fid }).unwrap();
    cell.sim.run_for(Duration::from_secs(400));
    cell.restart();
    a.ask_anew(fs::GetTime {}, 10).unwrap();
    a.ask(write_lock(fid)).unwrap();
}

#[test]
fn no_machine_releases_or_extends_the_lock_of_another() {
    let (cell, a, b, fid) = scene(263);
    a.ask(write_lock(fid)).unwrap();
    // No error, as AFS-3 requires.
    b.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(b.refusal(write_lock(fid)), refused());
    assert_eq!(b.refusal(fs::ExtendLock { fid }), Errno::EINVAL.to_uae());
    // Nor by using its name.
    let address = SocketAddr::from(([10, 0, 0, 66], 7001));
    let stranger = cell.client_at(address, Uuid([1; 16]), Manner::Modern);
    stranger.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(b.refusal(write_lock(fid)), refused());
    a.ask(fs::ExtendLock { fid }).unwrap();
}

#[test]
fn a_release_that_frees_nothing_tells_nobody() {
    let (_cell, a, b, fid) = scene(264);
    a.fetch_status(fid).unwrap();
    a.heard();
    b.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(a.heard(), []);
    a.ask(write_lock(fid)).unwrap();
    b.fetch_status(fid).unwrap();
    b.heard();
    a.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(b.heard(), [], "it has not asked for the lock");
}

/// A holder, and two clients that were refused.
fn scene_of_waiters(seed: u64) -> (Cell, [Client; 3], Fid) {
    let (cell, a, b, fid) = scene(seed);
    let c = cell.client(3);
    a.ask(write_lock(fid)).unwrap();
    for waiting in [&b, &c] {
        assert_eq!(waiting.refusal(write_lock(fid)), refused());
        waiting.heard();
    }
    (cell, [a, b, c], fid)
}

#[test]
fn who_asked_first_is_told_first_and_others_are_refused_until_the_reply() {
    let (cell, [a, b, c], fid) = scene_of_waiters(280);
    b.answer_breaks_after(Duration::from_secs(1));
    a.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(c.refusal(write_lock(fid)), refused(), "it is the turn of the first");
    b.ask(write_lock(fid)).unwrap();
    cell.sim.run_for(Duration::from_secs(2));
    assert_eq!((b.heard(), c.heard()), (vec![Heard::Free(fid)], Vec::new()));
    b.ask(fs::ReleaseLock { fid }).unwrap();
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!((b.heard(), c.heard()), (Vec::new(), vec![Heard::Free(fid)]));
    // It has replied without taking the lock.
    b.ask(write_lock(fid)).unwrap();
}

#[test]
fn a_client_that_does_not_reply_holds_up_the_next_for_a_bounded_time() {
    let (cell, [a, b, c], fid) = scene_of_waiters(281);
    b.answer_breaks_after(Duration::from_secs(60));
    a.ask(fs::ReleaseLock { fid }).unwrap();
    cell.sim.run_for(Duration::from_secs(5));
    assert_eq!(c.heard(), [Heard::Free(fid)]);
    c.ask(write_lock(fid)).unwrap();
}

#[test]
fn a_machine_learns_that_another_has_taken_its_lock() {
    let (cell, a, b, fid) = scene(265);
    a.ask(write_lock(fid)).unwrap();
    cell.sim.run_for(Duration::from_secs(301));
    b.ask(write_lock(fid)).unwrap();
    assert_eq!(a.refusal(fs::ExtendLock { fid }), Errno::EINVAL.to_uae());
    b.ask(fs::ReleaseLock { fid }).unwrap();
    assert_eq!(a.refusal(fs::ExtendLock { fid }), Errno::EINVAL.to_uae(), "nor has it come back");
}
