//! Stores that are begun and never finished.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod rig;

use std::time::Duration;

use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;
use rig::{Cell, Client};

/// KiB that the volume of the test may hold.
const QUOTA: u32 = 10 << 10;

fn file(client: &Client, cell: &Cell, name: &str) -> Fid {
    client.create(cell.root(), name).unwrap().fid
}

fn set_quota(cell: &Cell) {
    let status = fs::SetVolumeStatus { quota_min: None, quota_max: Some(QUOTA) };
    let (name, message) = (fs::Name::default(), fs::PathText::default());
    let call = fs::StoreVolumeStatus {
        volume: cell.volumes.root_cell,
        status,
        name,
        offline_message: message.clone(),
        motd: message,
    };
    cell.owner().ask(call).unwrap();
}

#[test]
fn a_store_that_is_never_finished_is_ended_by_the_server() {
    let cell = Cell::new(241);
    let client = cell.client(1);
    let fid = file(&client, &cell, "f");
    let stalled = client.begin_unfinished_store(fid, 1 << 30, vec![7; 3 << 20]);
    cell.sim.run_for(Duration::from_secs(55));
    assert!(stalled.lock().unwrap().is_none(), "a pause of some seconds is no crime");
    cell.sim.run_for(Duration::from_secs(30));
    assert_eq!(stalled.lock().unwrap().take(), Some(Some(AbortCode(-32))));
    assert_eq!(client.fetch_status(fid).unwrap().status.length, 0);
}

#[test]
fn stores_that_are_never_finished_hold_no_more_than_the_quota() {
    let cell = Cell::new(242);
    let client = cell.client(1);
    let fids: Vec<Fid> = (0..24).map(|n| file(&client, &cell, &format!("f{n}"))).collect();
    set_quota(&cell);
    let before = cell.bytes_on_drive();
    let stalled: Vec<_> =
        fids.iter().map(|fid| client.begin_unfinished_store(*fid, 4 << 20, vec![7; 3 << 20])).collect();
    cell.sim.run_for(Duration::from_secs(30));
    let held = cell.bytes_on_drive() - before;
    assert!(held <= (u64::from(QUOTA) + 2048) << 10, "{} KiB", held >> 10);
    let refused = |code: &Option<Option<AbortCode>>| *code == Some(Some(AbortCode::VOVERQUOTA));
    assert!(stalled.iter().any(|stalled| refused(&stalled.lock().unwrap())));
    // All of it is given back, and the volume takes what it can hold.
    cell.sim.run_for(Duration::from_secs(120));
    client.store(fids[0], 0, &vec![1; 9 << 20]).unwrap();
}

/// Bytes that are to replace others do not count as growth, and need room all the same.
#[test]
fn rewriting_a_file_without_end_holds_no_more_than_the_quota_either() {
    let cell = Cell::new(243);
    let client = cell.client(1);
    let fid = file(&client, &cell, "f");
    client.store(fid, 0, &vec![1; 4 << 20]).unwrap();
    set_quota(&cell);
    let before = cell.bytes_on_drive();
    for _ in 0..24 {
        client.begin_unfinished_store(fid, 4 << 20, vec![7; 3 << 20]);
    }
    cell.sim.run_for(Duration::from_secs(30));
    let held = cell.bytes_on_drive() - before;
    assert!(held <= (u64::from(QUOTA) + 2048) << 10, "{} KiB", held >> 10);
}
