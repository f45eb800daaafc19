//! Clients that authenticate calls back to them.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;

use afs_wire::error::Errno;
use afs_wire::fs::{self, LockKind};
use afs_wire::ids::{Fid, Uuid};
use rig::{Cell, Claim, Client, Heard, SERVER_UUID};

const UUID: Uuid = Uuid([7; 16]);

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 7001))
}

/// A client that accepts callbacks only with a secret word, which it gives together with its identity.
fn careful(cell: &Cell, last: u8, word: &str) -> (Client, Client) {
    let nobody = Client::with_word(cell.world(), address(last), UUID, Some(word), false);
    let alice = nobody.acting_as(&Claim::of("alice").called_back_with(word));
    (nobody, alice)
}

/// A file that another client changes.
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
fn no_stranger_takes_a_clients_place_by_using_its_name() {
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

fn write_lock(fid: Fid) -> fs::SetLock {
    fs::SetLock { fid, kind: LockKind::WRITE }
}

/// A killed mount that is back at another port calls before its user has given it a token: then it is a
/// client of its own. `before` is what it does in that time.
fn back_at_another_port(cell: &Cell, fid: Fid, before: impl FnOnce(&Client)) -> Client {
    let (nobody, alice) = careful(cell, 50, "swordfish");
    alice.ask(write_lock(fid)).unwrap();
    let node = nobody.node;
    drop((nobody, alice));
    cell.world().restart(node);
    let port = SocketAddr::new(address(50).ip(), 40_000);
    let again = Client::with_word(cell.world(), port, UUID, Some("another word"), true);
    again.fetch_status(cell.root()).unwrap();
    before(&again);
    again.acting_as(&Claim::of("alice").called_back_with("another word"))
}

#[test]
fn a_client_that_began_anew_has_its_locks_as_soon_as_it_proves_a_name() {
    let cell = Cell::new(106);
    let fid = shared_file(&cell);
    let alice = back_at_another_port(&cell, fid, |again| {
        assert_eq!(again.refusal(write_lock(fid)), Errno::EAGAIN.to_uae(), "it has proven nothing");
    });
    alice.ask(fs::ExtendLock { fid }).unwrap();
    alice.ask(fs::ReleaseLock { fid }).unwrap();
    cell.owner().ask(write_lock(fid)).unwrap();
    // Its promises under its other identity are void, and it has been notified.
    assert!(alice.heard().ends_with(&[Heard::Reset(SERVER_UUID)]), "and hears of no break of what is gone");
    assert_eq!(cell.files().clients().hosts().len(), 2, "this client and the owner");
}

#[test]
fn a_client_that_is_known_again_keeps_the_locks_it_took_meanwhile() {
    let mut cell = Cell::new(107);
    let (fid, other) = (shared_file(&cell), cell.owner().create(cell.root(), "g").unwrap().fid);
    let alice = back_at_another_port(&cell, fid, |again| {
        again.ask(write_lock(other)).unwrap();
    });
    alice.ask(fs::ExtendLock { fid: other }).unwrap();
    assert_eq!(cell.owner().refusal(write_lock(other)), Errno::EAGAIN.to_uae());
    cell.restart();
    alice.ask_anew(fs::GetTime {}, 10).unwrap();
    alice.ask(fs::ReleaseLock { fid: other }).unwrap();
    cell.owner().ask(write_lock(other)).unwrap();
}

#[test]
fn no_stranger_takes_the_locks_of_a_reachable_client() {
    let cell = Cell::new(108);
    let fid = shared_file(&cell);
    let (_, alice) = careful(&cell, 50, "swordfish");
    alice.ask(write_lock(fid)).unwrap();
    alice.heard();
    let thief = Client::with_word(cell.world(), address(66), UUID, Some("mine"), true);
    let mallory = thief.acting_as(&Claim::of("bob").called_back_with("mine"));
    for client in [&thief, &mallory, &thief.acting_as(&Claim::of("bob"))] {
        client.fetch_status(fid).unwrap();
        client.ask(fs::ReleaseLock { fid }).unwrap();
        assert_eq!(client.refusal(write_lock(fid)), Errno::EAGAIN.to_uae());
        assert_eq!(client.refusal(fs::ExtendLock { fid }), Errno::EINVAL.to_uae());
    }
    assert_eq!(
        cell.files().clients().hosts().len(),
        3,
        "it goes on as a client of its own, the owner and alice"
    );
    assert!(alice.heard().iter().all(|heard| *heard == Heard::Probe), "its promises are its own");
    alice.ask(fs::ExtendLock { fid }).unwrap();
}
