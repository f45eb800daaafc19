//! Tokens that are revoked while they are used: on another machine, with what is cached and what is not stored yet.

use std::time::Duration;

use afs_venus::{OpenFlags, TokenOwner};
use bytes::Bytes;

use super::{ALICE, BOB, cell, denied, home_of_alice, log_in};

const GENERATION: u64 = 7;

#[test]
fn what_a_revoked_token_could_read_is_refused_from_the_cache_as_well() {
    let cell = cell(71);
    let (stolen, desk) = (cell.client(1), cell.client(2));
    let here = desk.clone();
    cell.on(&desk, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
    });
    let laptop = stolen.clone();
    cell.on(&stolen, async move {
        log_in(&laptop).await;
        assert_eq!(laptop.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
        laptop.user(BOB).put("of-bob", b"plans").await.unwrap();
    });
    cell.users.revoke("alice", GENERATION);
    cell.sim.run_for(Duration::from_secs(1));
    let laptop = stolen.clone();
    cell.on(&stolen, async move {
        let (alice, bob) = (laptop.user(ALICE), laptop.user(BOB));
        denied(alice.get("home/secret").await);
        denied(alice.put("home/secret", b"of a thief").await);
        denied(alice.names("home").await);
        denied(alice.mkdir("home/new").await);
        assert_eq!(bob.get("of-bob").await.unwrap(), b"plans", "the other user of the machine reads on");
    });
    let here = desk.clone();
    cell.on(&desk, async move {
        denied(here.user(ALICE).get("home/secret").await);
        here.log_in_of(TokenOwner::Uid(ALICE), "alice", GENERATION).await;
        assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
        here.user(ALICE).put("home/secret", b"of alice alone").await.unwrap();
    });
}

#[test]
fn what_was_not_stored_when_the_token_was_revoked_is_stored_with_the_next_one() {
    let cell = cell(72);
    let machine = cell.client(1);
    let here = machine.clone();
    let users = cell.users.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        let open = alice.open("home/secret", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(open, 0, Bytes::from_static(b"OF")).await.unwrap();
        users.revoke("alice", GENERATION);
        assert!(alice.venus.flush(open, 0).await.is_err(), "the writer is told");
        here.log_in_of(TokenOwner::Uid(ALICE), "alice", GENERATION).await;
        alice.venus.flush(open, 0).await.unwrap();
        alice.venus.release(open).await.unwrap();
        assert_eq!(alice.get("home/secret").await.unwrap(), b"OF alice");
    });
}
