//! Rights that clients keep: the server tells them when what the rights rest on has changed.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;
use std::time::Duration;

use afs_wire::fs;
use afs_wire::ids::{Fid, Uuid};
use rig::people::{CAROL, LAB, STAFF, TEAM};
use rig::{Cell, Claim, Client, Heard, Manner, SERVER_UUID};

/// A machine whose users are Alice and, through a group of a group, Carol.
fn machine(cell: &Cell, number: u8, manner: Manner) -> Client {
    cell.client_at(SocketAddr::from(([10, 0, 0, 100 + number], 7001)), Uuid([number; 16]), manner)
}

/// The user of a machine reads a status: the promise may cover the rights. What the machine heard until then is dropped.
fn reads_as(cell: &Cell, machine: &Client, name: &str) -> fs::FetchStatusReply {
    let reply = machine.acting_as(&Claim::of(name)).fetch_status(cell.root()).unwrap();
    machine.heard();
    reply
}

/// What a machine has heard when everything was delivered.
fn hears(cell: &Cell, machine: &Client) -> Vec<Heard> {
    cell.sim.run_for(Duration::from_millis(900));
    machine.heard()
}

const BROKEN: [Fid; 1] = [Fid::RIGHTS];

#[test]
fn a_promise_covers_rights_for_clients_that_know_it_alone() {
    let cell = Cell::new(1);
    let (ours, other) = (machine(&cell, 1, Manner::KeepsRights), machine(&cell, 2, Manner::Modern));
    assert!(reads_as(&cell, &ours, "alice").callback.covers_rights());
    assert_eq!(reads_as(&cell, &other, "alice").callback.version, 1);
    cell.people.add(rig::people::ALICE, TEAM);
    assert_eq!(hears(&cell, &ours), [Heard::Break(BROKEN.into())]);
    assert_eq!(hears(&cell, &other), []);
}

#[test]
fn the_machines_of_the_users_concerned_are_told_within_a_second_and_no_others() {
    let cell = Cell::new(2);
    let (one, two) = (machine(&cell, 1, Manner::KeepsRights), machine(&cell, 2, Manner::KeepsRights));
    reads_as(&cell, &one, "carol");
    reads_as(&cell, &one, "alice");
    reads_as(&cell, &two, "bob");
    let told = |cell: &Cell| {
        assert_eq!(hears(cell, &one), [Heard::Break(BROKEN.into())]);
        assert_eq!(hears(cell, &two), []);
        reads_as(cell, &one, "carol");
    };
    cell.people.remove(CAROL, TEAM);
    told(&cell);
    cell.people.add(CAROL, TEAM);
    told(&cell);
    // The group of a group.
    cell.people.remove(TEAM, STAFF);
    told(&cell);
    // The groups of a host.
    cell.people.add_host(one.address.ip(), LAB);
    told(&cell);
    cell.people.delete("carol");
    told(&cell);
    // Nothing that concerns a user of these machines.
    cell.people.remove(rig::people::FRANK, TEAM);
    assert_eq!((hears(&cell, &one), hears(&cell, &two)), (vec![], vec![]));
}

#[test]
fn a_machine_that_was_told_is_told_again_only_of_what_it_has_read_since() {
    let cell = Cell::new(3);
    let one = machine(&cell, 1, Manner::KeepsRights);
    reads_as(&cell, &one, "carol");
    cell.people.remove(CAROL, TEAM);
    assert_eq!(hears(&cell, &one), [Heard::Break(BROKEN.into())]);
    cell.people.add(CAROL, TEAM);
    assert_eq!(hears(&cell, &one), []);
    for n in 0..70 {
        reads_as(&cell, &one, &format!("user{n}"));
    }
    reads_as(&cell, &one, "carol");
    cell.people.add(rig::people::OWEN, TEAM);
    assert_eq!(hears(&cell, &one), [Heard::Break(BROKEN.into())], "too many users to look at each");
}

#[test]
fn a_machine_that_cannot_be_told_is_reset_before_its_next_call() {
    let cell = Cell::new(4);
    let one = machine(&cell, 1, Manner::KeepsRights);
    reads_as(&cell, &one, "carol");
    cell.world().cut(cell.server, one.node);
    cell.people.remove(CAROL, TEAM);
    cell.sim.run_for(Duration::from_secs(60));
    assert_eq!(one.heard(), []);
    cell.world().mend(cell.server, one.node);
    one.acting_as(&Claim::of("carol")).fetch_status(cell.root()).unwrap();
    assert!(one.heard().contains(&Heard::Reset(SERVER_UUID)));
}

#[test]
fn a_name_service_that_cannot_tell_who_a_user_is_breaks_the_rights() {
    let cell = Cell::new(5);
    let one = machine(&cell, 1, Manner::KeepsRights);
    reads_as(&cell, &one, "carol");
    cell.people.go_away();
    cell.people.add(rig::people::OWEN, TEAM);
    assert_eq!(hears(&cell, &one), [Heard::Break(BROKEN.into())]);
}
