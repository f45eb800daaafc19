//! Stores that are begun and never finished.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;
use rig::{Cell, Client};

/// Quota of the test's volume in KiB.
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

/// A store of two ranges whose bytes stop in the table, in the first range, and between the two.
#[test]
fn a_store_of_ranges_that_stops_in_the_middle_is_ended_and_nothing_of_it_is_seen() {
    let cell = Cell::new(244);
    let client = cell.client(1);
    let fid = file(&client, &cell, "f");
    client.store(fid, 0, b"as it was").unwrap();
    let before = (client.fetch_status(fid).unwrap().status, cell.bytes_on_drive());
    let ranges = [(0, 2 << 20), (5 << 20, 3 << 20)];
    let request = fs::StoreRanges {
        fid,
        status: fs::SetStatus::default(),
        expected: before.0.data_version,
        file_length: 1 << 30,
        grown_to: 9 << 20,
        ranges: 2,
    };
    let mut sent: Vec<u8> = ranges
        .iter()
        .flat_map(|(at, len): &(u64, u64)| [at.to_be_bytes(), len.to_be_bytes()].concat())
        .collect();
    sent.resize(sent.len() + (2 << 20), 7);
    let long_table = fs::StoreRanges { ranges: 1000, ..request.clone() };
    let stops = [(long_table, 12_000), (request.clone(), 32 + (1 << 20)), (request.clone(), 32 + (2 << 20))];
    let stalled =
        stops.clone().map(|(request, stop)| client.begin_unfinished(request, sent[..stop].to_vec()));
    cell.sim.run_for(Duration::from_secs(45));
    assert!(
        stalled.iter().all(|stalled| stalled.lock().unwrap().is_none()),
        "a pause of some seconds is no crime"
    );
    assert_eq!(client.read(fid), b"as it was");
    cell.sim.run_for(Duration::from_secs(60));
    for (stalled, (_, stop)) in stalled.iter().zip(stops) {
        assert_eq!(stalled.lock().unwrap().take(), Some(Some(AbortCode(-32))), "after {stop} bytes");
    }
    assert_eq!(client.read(fid), b"as it was");
    assert_eq!((client.fetch_status(fid).unwrap().status, cell.bytes_on_drive()), before);
    // The complete store is accepted: nothing is held for the others.
    sent.resize(sent.len() + (3 << 20), 7);
    client.store_as(request, &sent).unwrap();
    assert_eq!(client.fetch_status(fid).unwrap().status.length, 9 << 20);
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
    // All of it is freed, and the volume accepts what its quota permits.
    cell.sim.run_for(Duration::from_secs(120));
    client.store(fids[0], 0, &vec![1; 9 << 20]).unwrap();
}

/// Bytes that replace others do not count as growth, and need space all the same.
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
