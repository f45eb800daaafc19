//! Clients that can tell who calls them back.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod rig;

use std::net::SocketAddr;

use afs_wire::ids::{Fid, Uuid};
use rig::{Cell, Claim, Client, Heard, SERVER_UUID};

const UUID: Uuid = Uuid([7; 16]);

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 7001))
}

/// A client that takes callbacks only from those who know a word, and tells it when it says who it is.
fn careful(cell: &Cell, last: u8, word: &str) -> (Client, Client) {
    let nobody = Client::with_word(cell.world(), address(last), UUID, Some(word), false);
    let alice = nobody.acting_as(&Claim::of("alice").called_back_with(word));
    (nobody, alice)
}

/// A file that somebody else changes.
fn shared_file(cell: &Cell) -> Fid {
    cell.owner().create(cell.root(), "f").unwrap().fid
}

fn change(cell: &Cell, fid: Fid) {
    cell.owner().store(fid, 0, b"new").unwrap();
}

#[test]
fn a_client_is_called_back_with_what_it_gave() {
    let cell = Cell::new(101);
    let fid = shared_file(&cell);
    let (_, alice) = careful(&cell, 50, "swordfish");
    alice.fetch_status(fid).unwrap();
    assert_eq!(alice.heard(), [Heard::TellMe, Heard::Reset(SERVER_UUID)]);
    change(&cell, fid);
    assert_eq!(alice.heard(), [Heard::Break(vec![fid])]);
}

#[test]
fn a_connection_that_proves_nothing_takes_nothing_away() {
    let cell = Cell::new(102);
    let fid = shared_file(&cell);
    let (nobody, alice) = careful(&cell, 50, "swordfish");
    alice.fetch_status(fid).unwrap();
    nobody.fetch_status(cell.root()).unwrap();
    nobody.acting_as(&Claim::of("bob")).fetch_status(cell.root()).unwrap();
    alice.heard();
    change(&cell, fid);
    assert_eq!(alice.heard(), [Heard::Break(vec![fid])], "over the proven way still");
    assert_eq!(cell.files().clients().hosts().len(), 2, "this client and the owner");
}

#[test]
fn nobody_takes_a_clients_place_by_using_its_name() {
    let cell = Cell::new(103);
    let fid = shared_file(&cell);
    let (_, alice) = careful(&cell, 50, "swordfish");
    alice.fetch_status(fid).unwrap();
    alice.heard();
    let thief = Client::with_word(cell.world(), address(66), UUID, None, true);
    let mallory = Client::with_word(cell.world(), address(67), UUID, Some("mine"), true);
    thief.fetch_status(fid).unwrap();
    mallory.acting_as(&Claim::of("bob").called_back_with("mine")).fetch_status(fid).unwrap();
    alice.heard();
    change(&cell, fid);
    assert_eq!(alice.heard(), [Heard::Break(vec![fid])], "the promise is still its own");
    assert!(thief.heard().contains(&Heard::Break(vec![fid])), "known by its address, it has one too");
    assert!(mallory.heard().contains(&Heard::Break(vec![fid])));
}

#[test]
fn a_client_that_began_anew_is_taken_in_when_it_proves_itself() {
    let cell = Cell::new(104);
    let fid = shared_file(&cell);
    let (nobody, alice) = careful(&cell, 50, "swordfish");
    alice.fetch_status(fid).unwrap();
    let node = nobody.node;
    drop((nobody, alice));
    cell.world().restart(node);
    let (_, again) = careful(&cell, 50, "another word");
    again.fetch_status(fid).unwrap();
    assert_eq!(again.heard(), [Heard::TellMe, Heard::Reset(SERVER_UUID)]);
    change(&cell, fid);
    assert_eq!(again.heard(), [Heard::Break(vec![fid])]);
}

#[test]
fn a_client_at_a_new_address_proves_that_it_is_the_same() {
    let cell = Cell::new(105);
    let fid = shared_file(&cell);
    let (nobody, alice) = careful(&cell, 50, "swordfish");
    alice.fetch_status(fid).unwrap();
    alice.heard();
    let (elsewhere, _) = careful(&cell, 51, "swordfish");
    elsewhere.acting_as(&Claim::of("bob").called_back_with("swordfish")).fetch_status(cell.root()).unwrap();
    assert_eq!(cell.files().clients().hosts().len(), 2, "the same client, and the owner");
    nobody.heard();
    elsewhere.heard();
    change(&cell, fid);
    assert_eq!(elsewhere.heard(), [Heard::Break(vec![fid])], "where it called from last");
}
