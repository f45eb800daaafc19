//! Tokens that a server refuses, expired by its clock or of a key that it does not have.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use afs_venus::{ErrorKind, OpenFlags, TokenOwner};
use bytes::Bytes;

use crate::common::{Cell, EXPIRED, OF_ANOTHER_CELL};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const NAME: &str = "alice";

/// A cell with Alice and Bob.
fn cell(seed: u64) -> Cell {
    let cell = Cell::new(seed);
    cell.users.add(NAME, 11);
    cell.users.add("bob", 12);
    cell
}

#[test]
fn a_token_that_a_server_calls_expired_is_not_shown_to_it_and_stays_good() {
    let cell = cell(10);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        here.put("file", b"for all").await.unwrap();
        here.log_in(BOB, EXPIRED).await;
        let bob = here.user(BOB);
        let dir = here.mkdir("new").await;
        dir.unwrap();
        bob.put("new/file", b"as nobody").await.unwrap();
        let tokens = bob.venus.tokens();
        assert!(tokens.len() == 1 && !tokens[0].is_expired && tokens[0].owner == TokenOwner::Uid(BOB));
    });
}

#[test]
fn with_a_token_of_another_cell_of_that_name_one_is_nobody_and_loses_nothing() {
    let cell = cell(11);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        here.put("public", b"for all").await.unwrap();
        here.log_in(ALICE, NAME).await;
        let alice = here.user(ALICE);
        alice.mkdir("home").await.unwrap();
        alice.set_acl("home", &[(NAME, "rlidwka")]).await.unwrap();
        alice.put("home/secret", b"of alice").await.unwrap();
        let handle = alice.open("home/secret", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 0, Bytes::from_static(b"OF")).await.unwrap();

        here.log_in(ALICE, OF_ANOTHER_CELL).await;
        assert_eq!(alice.get("public").await.unwrap(), b"for all");
        assert_eq!(alice.get("home/secret").await.unwrap_err().kind, ErrorKind::AccessDenied);
        let error = alice.venus.flush(handle, 0).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TokenExpired);
        let _ = alice.venus.release(handle).await;
        assert_eq!(here.venus.unsaved(TokenOwner::Uid(ALICE), 0).len(), 1);

        here.log_in(ALICE, NAME).await;
    });
    cell.sim.run_for(Duration::from_secs(5));
    let here = machine.clone();
    cell.on(&machine, async move {
        assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"OF alice");
        assert!(here.venus.unsaved(TokenOwner::Uid(ALICE), 0).is_empty());
    });
}
