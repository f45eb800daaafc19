//! The data path: clients that take more than their share, or do not finish what they begin.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_datapath::session::{DriveLimits, Error, Failure, Security};
use afs_server::{FileServerLimits, Policy, Requirement};
use afs_wire::error::Errno;
use afs_wire::fs::{self, ANY_VERSION};
use rig::drive::{READ, WRITE};
use rig::{Cell, Client};

const MIB: u64 = 1 << 20;

fn cell_with(seed: u64, drive: DriveLimits) -> Cell {
    let cell = Cell::with(seed, FileServerLimits { drive, ..FileServerLimits::default() }, "rlidwka");
    cell.open_data_path();
    cell
}

fn file(client: &Client, cell: &Cell, name: &str, len: u64) -> afs_wire::ids::Fid {
    let fid = client.create(cell.root(), name).unwrap().fid;
    client.store(fid, 0, &vec![7; len as usize]).unwrap();
    fid
}

#[test]
fn the_connections_of_one_address_are_bounded_and_others_have_theirs() {
    let cell = cell_with(441, DriveLimits { connections_per_address: 4, ..DriveLimits::default() });
    let (hostile, honest) = (cell.client(1), cell.client(2));
    let fid = file(&honest, &cell, "f", 9);
    let silent: Vec<_> = (0..4).map(|_| hostile.path()).collect();
    let held: Vec<_> = (0..4).map(|_| hostile.path()).collect();
    let counts = cell.files().data_path_counts();
    assert_eq!((counts.connected, counts.turned_away), (4, 4), "each has given way to a newer one");
    for path in &held {
        path.read(&path.handle(fid, READ), fid, (0, 9), honest.version(fid)).unwrap();
    }
    assert!(hostile.try_path().is_err(), "those with capabilities do not");
    let path = honest.path();
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), honest.version(fid)).unwrap(), [7; 9]);
    drop((held, silent));
    cell.sim.run_for(Duration::from_secs(60));
    hostile.path();
}

/// Reads whose bytes are never taken.
#[test]
fn readers_that_take_nothing_keep_no_others_waiting_and_are_ended() {
    let cell = cell_with(442, DriveLimits { requests_per_address: 8, ..DriveLimits::default() });
    let (hostile, honest) = (cell.client(1), cell.client(2));
    let fid = file(&honest, &cell, "f", 8 * MIB);
    let version = honest.version(fid);
    let stuck = hostile.path();
    let handle = stuck.handle(fid, READ);
    let held: Vec<_> = (0..8).map(|_| stuck.open(&handle, fid, (0, 8 * MIB), version).unwrap()).collect();
    let more = stuck.open(&handle, fid, (0, 8 * MIB), version).map(drop);
    assert_eq!(more, Err(Error::Failed(Failure::Busy)));
    let path = honest.path();
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 8 * MIB), version).unwrap().len() as u64, 8 * MIB);
    cell.sim.run_for(Duration::from_secs(120));
    for arriving in held {
        assert!(stuck.rest(arriving).is_err(), "it was ended meanwhile");
    }
}

#[test]
fn half_a_write_holds_bytes_and_quota_for_a_bounded_time() {
    let cell = cell_with(443, DriveLimits::default());
    let (hostile, honest) = (cell.client(1), cell.client(2));
    let (fid, other) = (file(&honest, &cell, "f", 9), file(&honest, &cell, "g", 9));
    let (before, version) = (cell.bytes_on_drive(), honest.version(fid));
    let path = hostile.path();
    let handle = path.handle(fid, WRITE);
    let leaving = path.leave(&handle, fid, &[(0, 8 * MIB)]).unwrap();
    let (leaving, put) = path.put(leaving, vec![1; 4 << 20]);
    put.unwrap();
    cell.sim.run_for(Duration::from_secs(5));
    assert!(cell.bytes_on_drive() >= before + 3 * MIB);
    let mine = honest.path();
    let handle = mine.handle(other, WRITE);
    let ticket = mine.store(&handle, other, &[(0, MIB)], &vec![2; MIB as usize]).unwrap();
    honest.commit(ticket, other, ANY_VERSION).unwrap();
    let grown = cell.bytes_on_drive();
    cell.sim.run_for(Duration::from_secs(180));
    assert!(cell.bytes_on_drive() <= grown - 3 * MIB, "what it wrote is gone");
    assert!(path.finish(leaving).is_err());
    assert_eq!((honest.version(fid), honest.read(fid)), (version, vec![7; 9]));
}

/// Neither does a client that is cut off in the middle of its bytes.
#[test]
fn a_write_whose_connection_breaks_leaves_nothing() {
    let cell = cell_with(444, DriveLimits::default());
    let client = cell.client(1);
    let fid = file(&client, &cell, "f", 9);
    let before = cell.bytes_on_drive();
    let path = client.path();
    let handle = path.handle(fid, WRITE);
    let leaving = path.leave(&handle, fid, &[(0, 8 * MIB)]).unwrap();
    let (leaving, _) = path.put(leaving, vec![1; 4 << 20]);
    cell.sim.run_for(Duration::from_secs(5));
    assert!(cell.bytes_on_drive() > before);
    drop((leaving, handle, path));
    cell.sim.run_for(Duration::from_secs(20));
    assert_eq!(cell.bytes_on_drive(), before);
    assert_eq!(client.read(fid), [7; 9]);
}

#[test]
fn tickets_that_nobody_commits_are_bounded_for_each_address() {
    let cell = cell_with(445, DriveLimits::default());
    let (hostile, honest) = (cell.client(1), cell.client(2));
    let fid = file(&honest, &cell, "f", 9);
    let path = hostile.path();
    let handle = path.handle(fid, WRITE);
    let stored = (0..1100).map(|_| path.store(&handle, fid, &[(0, 1)], b"x").map(drop));
    let outcomes: Vec<_> = stored.collect();
    let taken = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(taken, 1024);
    assert_eq!(outcomes.last(), Some(&Err(Error::Failed(Failure::Busy))));
    let mine = honest.path();
    let handle = mine.handle(fid, WRITE);
    let ticket = mine.store(&handle, fid, &[(0, 3)], b"new").unwrap();
    honest.commit(ticket, fid, ANY_VERSION).unwrap();
}

/// Bytes of a volume with a requirement do not travel where they might travel in clear.
#[test]
fn a_drive_without_tls_serves_what_nothing_is_required_for() {
    let cell = Cell::new(446);
    cell.open_data_path();
    let client = cell.client(1);
    let fid = file(&client, &cell, "f", 9);
    let version = client.version(fid);
    let told = client.ask(fs::DataPath {}).unwrap();
    assert!(told.clear);
    let path = client.connect(&told, Security::Clear).unwrap();
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), [7; 9]);
    cell.policy.set(Policy::default().of_volume("root.cell", Requirement::Auth));
    let token = cell.tokens.rxgk("alice", 6000);
    let alice = client.acting_with(&cell.tokens.by_rxgk(&token));
    let refusal = alice.capability(fid, READ).unwrap_err().abort_code();
    assert_eq!(refusal, Some(Errno::EACCES.to_uae()));
    assert!(path.read(&handle, fid, (0, 9), version).is_err());
}

#[test]
fn a_drive_with_tls_turns_away_who_comes_without() {
    let cell = Cell::new(447);
    cell.open_data_path_with_tls();
    let client = cell.client(1);
    let told = client.ask(fs::DataPath {}).unwrap();
    assert!(client.connect(&told, Security::Clear).is_err());
}
