//! Tests of the prototype: checks of copies, stubs, processes and path names.
#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use super::super::server::ServerNumber;
use super::*;

fn calls(cell: &Cell, server: usize, name: &str) -> u64 {
    cell.servers[server].work.calls.get(name).copied().unwrap_or_default()
}

#[test]
fn every_open_of_a_copy_asks_and_another_clients_store_is_seen() {
    let (mut cell, mut one, mut other) = (Cell::of(1), Venus::of(1), Venus::of(2));
    one.store(&mut cell, "file").unwrap();
    for _ in 0..3 {
        one.open(&mut cell, "file").unwrap();
    }
    assert_eq!((calls(&cell, 0, "TestAuth"), calls(&cell, 0, "Fetch")), (3, 0));
    other.open(&mut cell, "file").unwrap();
    other.store(&mut cell, "file").unwrap();
    one.open(&mut cell, "file").unwrap();
    assert_eq!((calls(&cell, 0, "TestAuth"), calls(&cell, 0, "Fetch")), (4, 2), "the copy was not valid");
    one.open(&mut cell, "file").unwrap();
    assert_eq!(calls(&cell, 0, "Fetch"), 2);
    assert_eq!(cell.servers[0].processes(), 2, "a process for each client");
}

#[test]
fn a_status_is_asked_for_once_and_then_checked() {
    let (mut cell, mut one, mut other) = (Cell::of(1), Venus::of(1), Venus::of(2));
    one.make_dir(&mut cell, "dir").unwrap();
    one.store(&mut cell, "dir/file").unwrap();
    other.status(&mut cell, "dir/file").unwrap();
    other.status(&mut cell, "dir/file").unwrap();
    assert_eq!((calls(&cell, 0, "GetFileStat"), calls(&cell, 0, "TestAuth")), (1, 1));
    one.set_status(&mut cell, "dir/file").unwrap();
    other.status(&mut cell, "dir/file").unwrap();
    assert_eq!((calls(&cell, 0, "GetFileStat"), calls(&cell, 0, "TestAuth")), (2, 2));
    one.open(&mut cell, "dir/file").unwrap();
    assert_eq!(calls(&cell, 0, "Fetch"), 0, "one's own change leaves one's copy valid");
    // Two components at each of 7 calls, and one for the directory.
    assert_eq!(cell.servers[0].work.components, 15);
    assert_eq!(other.status(&mut cell, "dir/absent"), Err(Refusal::Absent));
    assert_eq!(other.open(&mut cell, "dir"), Err(Refusal::Kind));
    assert_eq!(other.status(&mut cell, "dir/file/below"), Err(Refusal::Kind));
}

#[test]
fn a_stub_points_to_the_server_and_the_prefix_is_kept() {
    let (mut cell, mut one) = (Cell::of(2), Venus::of(1));
    let operator = ClientNumber(0);
    cell.servers[0].call(operator, "usr", Call::MakeStub(ServerNumber(1))).unwrap();
    // A server mirrors the directories above what it has.
    cell.servers[1].call(operator, "usr", Call::MakeDir).unwrap();
    one.store(&mut cell, "usr/file").unwrap();
    assert_eq!((calls(&cell, 0, "Store"), calls(&cell, 1, "Store")), (1, 1));
    one.store(&mut cell, "usr/file").unwrap();
    one.store(&mut cell, "usrs").unwrap();
    assert_eq!(
        (calls(&cell, 0, "Store"), calls(&cell, 1, "Store")),
        (2, 2),
        "the prefix is a whole component"
    );
    assert_eq!(one.list(&mut cell, "usr").unwrap(), ["file"]);
    // Stubs that point at each other end.
    cell.servers[0].call(operator, "a", Call::MakeStub(ServerNumber(1))).unwrap();
    cell.servers[1].call(operator, "a", Call::MakeStub(ServerNumber(0))).unwrap();
    assert_eq!(one.open(&mut cell, "a/b"), Err(Refusal::Absent));
}
