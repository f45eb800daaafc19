//! Sessions without the rights of some groups, beside others of the same user.

use std::sync::Arc;

use afs_venus::{OpenFlags, TokenOwner};
use bytes::Bytes;

use super::{ALICE, BOB, Even, cell, denied};
use crate::common::{Cell, Client};

const TEAM: i32 = -300;
/// The session of processes with even numbers, of Alice.
const SESSION: TokenOwner = TokenOwner::Session { id: 5, uid: ALICE };

/// A cell with two machines. Alice is in the team, to which alone the directory `shared` belongs.
fn of_a_team(seed: u64) -> (Cell, Client, Client) {
    let cell = cell(seed);
    cell.users.join("alice", "team");
    cell.users.join("bob", "team");
    *cell.sessions.lock().unwrap() = Some(Arc::new(Even::default()));
    let (one, two) = (cell.client(1), cell.client(2));
    let there = two.clone();
    cell.on(&two, async move {
        there.log_in(BOB, "bob").await;
        let bob = there.user(BOB);
        bob.mkdir("shared").await.unwrap();
        bob.set_acl("shared", &[("team", "rlidwka")]).await.unwrap();
        bob.put("shared/plan", b"of the team").await.unwrap();
    });
    (cell, one, two)
}

#[test]
fn a_session_without_a_group_is_refused_where_another_of_the_user_reads_on() {
    let (cell, one, two) = of_a_team(61);
    let here = one.clone();
    cell.on(&one, async move {
        here.log_in(ALICE, "alice").await;
        here.log_in_without(SESSION, "alice", &[TEAM]).await;
        for round in 0..3 {
            let (whole, narrowed) = (here.process(ALICE, 1).await, here.process(ALICE, 2).await);
            // Whoever comes first fills the caches of the machine.
            if round == 1 {
                denied(narrowed.get("shared/plan").await);
            }
            assert_eq!(whole.get("shared/plan").await.unwrap(), b"of the team");
            denied(narrowed.get("shared/plan").await);
            denied(narrowed.names("shared").await);
            denied(narrowed.put("shared/new", b"x").await);
            denied(narrowed.find("shared/missing").await);
            denied(narrowed.set_acl("shared", &[("alice", "rlidwka")]).await);
            let dir = narrowed.find("shared").await.unwrap().node;
            assert_eq!(narrowed.venus.property(dir, b"afs.access").await.unwrap(), &b""[..]);
            assert_eq!(whole.venus.property(dir, b"afs.access").await.unwrap(), &b"rlidwka"[..]);
        }
    });
    let there = two.clone();
    cell.on(&two, async move {
        there.user(BOB).put("shared/plan", b"another one").await.unwrap();
    });
    let here = one.clone();
    cell.on(&one, async move {
        denied(here.process(ALICE, 2).await.get("shared/plan").await);
        assert_eq!(here.process(ALICE, 1).await.get("shared/plan").await.unwrap(), b"another one");
    });
}

#[test]
fn rights_end_with_the_token_that_is_replaced_by_one_without_the_group_and_come_back() {
    let (cell, one, _two) = of_a_team(62);
    let here = one.clone();
    cell.on(&one, async move {
        let me = TokenOwner::Uid(ALICE);
        here.log_in(ALICE, "alice").await;
        let alice = here.user(ALICE);
        assert_eq!(alice.get("shared/plan").await.unwrap(), b"of the team");
        let open = alice.open("shared/plan", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(open, 0, Bytes::from_static(b"OF")).await.unwrap();
        here.log_in_without(me, "alice", &[TEAM]).await;
        denied(alice.get("shared/plan").await);
        denied(alice.names("shared").await);
        assert!(alice.venus.flush(open, 0).await.is_err(), "it was open before");
        here.log_in(ALICE, "alice").await;
        alice.venus.flush(open, 0).await.unwrap();
        alice.venus.release(open).await.unwrap();
        assert_eq!(alice.get("shared/plan").await.unwrap(), b"OF the team");
    });
}

#[test]
fn other_groups_and_own_entries_count_without_the_group() {
    let (cell, one, two) = of_a_team(63);
    cell.users.add("staff", -301);
    cell.users.join("alice", "staff");
    let there = two.clone();
    cell.on(&two, async move {
        let bob = there.user(BOB);
        bob.set_acl("shared", &[("bob", "rlidwka"), ("team", "rlidw"), ("staff", "rl")]).await.unwrap();
    });
    let here = one.clone();
    cell.on(&one, async move {
        here.log_in_without(TokenOwner::Uid(ALICE), "alice", &[TEAM]).await;
        let alice = here.user(ALICE);
        assert_eq!(alice.get("shared/plan").await.unwrap(), b"of the team");
        denied(alice.put("shared/new", b"x").await);
    });
}
