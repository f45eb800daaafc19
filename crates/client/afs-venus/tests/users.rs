//! Several users on one machine, each with different rights.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;
mod moved;
mod reachable;
mod revoked;
mod suspended;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::UnixTime;
use afs_venus::{
    Access, ErrorKind, Limits, NodeId, OpenFlags, OwnIdentity, Requester, SessionCallback, SessionLookup,
    SetAttr, TokenOwner,
};
use bytes::Bytes;
use common::{AUTHENTICATES_CALLBACKS, Cell, Client, pattern};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const NOBODY: u32 = 1003;
const DENIED: i32 = 13;

/// A cell with Alice, Bob, and a group `team`.
fn cell(seed: u64) -> Cell {
    with_users(Cell::new(seed))
}

fn with_users(cell: Cell) -> Cell {
    cell.users.add("alice", 11);
    cell.users.add("bob", 12);
    cell.users.add("team", -300);
    cell
}

async fn log_in(client: &Client) {
    client.log_in(ALICE, "alice").await;
    client.log_in(BOB, "bob").await;
}

/// `home` with a file `secret` and a directory `sub`, where only Alice has rights.
async fn home_of_alice(client: &Client) {
    let alice = client.user(ALICE);
    alice.mkdir("home").await.unwrap();
    alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
    alice.put("home/secret", b"of alice").await.unwrap();
    alice.mkdir("home/sub").await.unwrap();
}

fn denied<T>(result: afs_venus::Result<T>) {
    assert_eq!(result.err().map(|error| error.errno()), Some(DENIED));
}

#[test]
fn data_cached_for_one_user_is_not_shown_to_users_without_the_right() {
    let cell = cell(1);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let (alice, bob, nobody) = (here.user(ALICE), here.user(BOB), here.user(NOBODY));
        assert_eq!(alice.get("home/secret").await.unwrap(), b"of alice");
        let dir = alice.find("home").await.unwrap().node;
        let file = alice.find("home/secret").await.unwrap().node;
        for other in [&bob, &nobody] {
            assert_eq!(other.find("home").await.unwrap().node, dir, "home itself is in a public directory");
            denied(other.names("home").await);
            denied(other.venus.opendir(dir).await);
            denied(other.venus.readdirplus(dir, 0, 10).await);
            denied(other.find("home/secret").await);
            denied(other.find("home/sub").await);
            denied(other.find("home/missing").await);
            denied(other.venus.getattr(file).await);
            denied(other.venus.open(file, OpenFlags::READ).await);
            denied(other.venus.open(file, OpenFlags::WRITE).await);
            denied(other.venus.access(file, Access { read: true, ..Access::default() }).await);
            denied(other.venus.property(dir, b"afs.acl").await);
            denied(other.venus.property(file, b"afs.status").await);
            denied(other.put("home/new", b"x").await);
            denied(other.venus.unlink(dir, b"secret").await);
            denied(other.set_acl("home", &[("bob", "rl")]).await);
        }
        assert_eq!(alice.get("home/secret").await.unwrap(), b"of alice");
        let public = alice.find("home").await.unwrap();
        assert!(public.attr.is_public && here.venus.names_are_public(NodeId::ROOT));
        assert!(!alice.venus.getattr(file).await.unwrap().is_public && !here.venus.names_are_public(dir));
    });
}

#[test]
fn each_user_sees_what_he_may() {
    let cell = cell(2);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let (alice, bob, nobody) = (here.user(ALICE), here.user(BOB), here.user(NOBODY));
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "l"), ("system:anyuser", "")]).await.unwrap();
        assert_eq!(bob.names("home").await.unwrap(), [".", "..", "secret", "sub"]);
        denied(bob.get("home/secret").await);
        denied(nobody.names("home").await);
        // Attributes of a file require the right to read it, those of a directory none.
        let dir = bob.find("home").await.unwrap().node;
        let listed = bob.venus.readdirplus(dir, 0, 10).await.unwrap();
        let found: Vec<bool> = listed.iter().map(|entry| entry.found.is_some()).collect();
        assert_eq!(found, [false, false, false, true]);
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        assert_eq!(bob.get("home/secret").await.unwrap(), b"of alice");
        let file = bob.find("home/secret").await.unwrap().node;
        denied(bob.venus.open(file, OpenFlags::READ_WRITE).await);
        denied(nobody.get("home/secret").await);
    });
}

#[test]
fn a_user_without_the_right_cannot_write_through_a_file_that_another_has_open() {
    let cell = cell(3);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        let handle = alice.open("home/secret", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 0, Bytes::from_static(b"OF")).await.unwrap();
        let file = bob.find("home/secret").await.unwrap().node;
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        denied(bob.venus.setattr(file, None, cut).await);
        let time = afs_venus::NewTime::At(afs_wire::ids::UnixSeconds(1).into());
        let touch = SetAttr { mtime: Some(time), ..SetAttr::default() };
        denied(bob.venus.setattr(file, None, touch).await);
        let truncate = OpenFlags { truncate: true, ..OpenFlags::READ };
        denied(bob.venus.open(file, truncate).await);
        alice.venus.flush(handle, 0).await.unwrap();
        assert_eq!(alice.get("home/secret").await.unwrap(), b"OF alice");
        assert!(alice.venus.getattr(file).await.unwrap().mtime.seconds().0 > 1);
    });
}

#[test]
fn a_right_taken_away_bites_at_the_next_operation_here_and_elsewhere() {
    let cell = cell(4);
    let (one, two) = (cell.client(1), cell.client(2));
    let (here, there) = (one.clone(), two.clone());
    cell.on(&one, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        assert_eq!(here.user(BOB).get("home/secret").await.unwrap(), b"of alice");
    });
    cell.on(&two, async move {
        log_in(&there).await;
        assert_eq!(there.user(BOB).get("home/secret").await.unwrap(), b"of alice");
    });
    let here = one.clone();
    cell.on(&one, async move {
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        let file = bob.find("home/secret").await.unwrap().node;
        alice.set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
        denied(bob.venus.open(file, OpenFlags::READ).await);
        denied(bob.venus.getattr(file).await);
        denied(bob.names("home").await);
    });
    let there = two.clone();
    cell.on(&two, async move {
        let bob = there.user(BOB);
        denied(bob.get("home/secret").await);
        denied(bob.names("home").await);
        // And granted again.
        let alice = there.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
        assert_eq!(bob.get("home/secret").await.unwrap(), b"of alice");
    });
    let here = one.clone();
    cell.on(&one, async move { here.user(BOB).get("home/secret").await.map(drop).unwrap() });
}

#[test]
fn a_right_taken_away_bites_on_a_machine_that_could_not_be_told_when_it_can_be_reached() {
    let cell = cell(34);
    let (one, two) = (cell.client(1), cell.client(2));
    let (here, there) = (one.clone(), two.clone());
    cell.on(&one, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        here.user(ALICE).set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]).await.unwrap();
    });
    cell.on(&two, async move {
        log_in(&there).await;
        assert_eq!(there.user(BOB).get("home/secret").await.unwrap(), b"of alice");
    });
    let world = cell.sim.world();
    world.cut(two.node, cell.server);
    world.cut(cell.server, two.node);
    let here = one.clone();
    cell.on(&one, async move {
        here.user(ALICE).set_acl("home", &[("alice", "rlidwka")]).await.unwrap();
    });
    let there = two.clone();
    cell.on(&two, async move {
        assert_eq!(there.user(BOB).get("home/secret").await.unwrap(), b"of alice", "it cannot know better");
    });
    world.mend(two.node, cell.server);
    world.mend(cell.server, two.node);
    cell.sim.run_for(Duration::from_secs(75));
    let there = two.clone();
    cell.on(&two, async move { denied(there.user(BOB).get("home/secret").await) });
}

#[test]
fn a_user_who_left_a_group_has_lost_its_rights_a_second_later() {
    leaves_a_group(&cell(5));
    leaves_a_group(&with_users(Cell::untold(5)));
}

fn leaves_a_group(cell: &Cell) {
    cell.users.join("bob", "team");
    let machine = cell.client(1);
    let here = machine.clone();
    let file = cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        alice.set_acl("home", &[("alice", "rlidwka"), ("team", "rl")]).await.unwrap();
        let bob = here.user(BOB);
        assert_eq!(bob.get("home/secret").await.unwrap(), b"of alice");
        bob.find("home/secret").await.unwrap().node
    });
    machine.invalidated.take();
    cell.users.leave("bob", "team");
    cell.sim.run_for(Duration::from_millis(1001));
    let here = machine.clone();
    cell.on(&machine, async move {
        let bob = here.user(BOB);
        denied(bob.venus.open(file, OpenFlags::READ).await);
        denied(bob.names("home").await);
        assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
        let dir = here.user(ALICE).find("home").await.unwrap().node;
        assert!(
            here.invalidated.take().contains(&format!("entry {:x} secret", dir.0)),
            "the kernel asks again"
        );
    });
    cell.users.join("bob", "team");
    cell.sim.run_for(Duration::from_millis(1001));
    let here = machine.clone();
    cell.on(&machine, async move { here.user(BOB).get("home/secret").await.map(drop).unwrap() });
}

#[test]
fn rights_of_many_directories_are_asked_for_again_in_one_call() {
    let cell = with_users(Cell::untold(6));
    let machine = cell.client(1);
    let here = machine.clone();
    let all = async |alice: &Client| {
        for n in 0..40 {
            assert_eq!(alice.get(&format!("home/d{n}/file")).await.unwrap(), pattern(100, n));
        }
    };
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        for n in 0..40 {
            alice.mkdir(&format!("home/d{n}")).await.unwrap();
            alice.put(&format!("home/d{n}/file"), &pattern(100, n)).await.unwrap();
        }
        all(&alice).await;
        let before = here.venus.counters();
        all(&alice).await;
        assert!(here.venus.counters() == before || here.calls_since(&before).is_empty(), "warm");
    });
    cell.sim.run_for(Duration::from_secs(10));
    let here = machine.clone();
    cell.on(&machine, async move {
        let before = here.venus.counters();
        all(&here.user(ALICE)).await;
        assert_eq!(here.calls_since(&before), ["InlineBulkStatus 1"]);
    });
}

#[test]
fn rights_in_use_are_asked_for_again_in_the_background() {
    let cell = with_users(Cell::untold(7));
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        here.user(ALICE).get("home/secret").await.unwrap();
    });
    let before = machine.venus.counters();
    for _ in 0..50 {
        cell.sim.run_for(Duration::from_millis(100));
        let here = machine.clone();
        cell.on(&machine, async move {
            let before = here.env.now();
            here.user(ALICE).get("home/secret").await.unwrap();
            assert_eq!(here.env.now(), before, "nobody waits");
        });
    }
    let asked = machine.venus.counters().calls_total() - before.calls_total();
    assert!((5..=12).contains(&asked), "{asked} calls in five seconds");
}

#[test]
fn everybodys_rights_need_not_be_asked_for_again() {
    let cell = cell(8);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        here.put("file", b"for all").await.unwrap();
        here.user(BOB).get("file").await.unwrap();
    });
    cell.sim.run_for(Duration::from_secs(30));
    let here = machine.clone();
    cell.on(&machine, async move {
        let before = here.venus.counters();
        for user in [ALICE, BOB, NOBODY] {
            assert_eq!(here.user(user).get("file").await.unwrap(), b"for all");
        }
        assert!(here.calls_since(&before).is_empty(), "{:?}", here.calls_since(&before));
    });
}

#[test]
fn a_store_that_a_token_was_too_old_for_is_made_good_after_a_new_login() {
    let cell = cell(9);
    let machine = cell.client(1);
    let here = machine.clone();
    let handle = cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let secs = here.env.wall().secs + 60;
        let expires = Some(UnixTime { secs, nanos: 0 });
        here.log_in_as(TokenOwner::Uid(ALICE), "alice", expires).await;
        let alice = here.user(ALICE);
        let handle = alice.open("home/secret", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 0, Bytes::from_static(b"OF")).await.unwrap();
        handle
    });
    cell.sim.run_for(Duration::from_secs(61));
    let here = machine.clone();
    cell.on(&machine, async move {
        let alice = here.user(ALICE);
        let error = alice.venus.flush(handle, 0).await.unwrap_err();
        assert_eq!((error.kind, error.errno()), (ErrorKind::TokenExpired, DENIED));
        alice.venus.release(handle).await.unwrap_err();
        denied(alice.get("home/secret").await);
        assert!(alice.venus.tokens().iter().any(|token| token.is_expired));
    });
    cell.sim.run_for(Duration::from_secs(600));
    let here = machine.clone();
    cell.on(&machine, async move { here.log_in(ALICE, "alice").await });
    cell.sim.run_for(Duration::from_secs(5));
    let other = cell.client(2);
    let there = other.clone();
    cell.on(&other, async move {
        log_in(&there).await;
        assert_eq!(there.user(ALICE).get("home/secret").await.unwrap(), b"OF alice");
    });
}

#[test]
fn what_a_logout_kept_from_being_stored_is_stored_after_the_next_login() {
    let cell = cell(17);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        let handle = alice.open("home/secret", OpenFlags::READ_WRITE).await.unwrap();
        alice.venus.write(handle, 0, Bytes::from_static(b"OF")).await.unwrap();
        here.venus.remove_token(TokenOwner::Uid(ALICE), None).await.unwrap();
        let error = alice.venus.flush(handle, 0).await.unwrap_err();
        assert_eq!((error.kind, error.errno()), (ErrorKind::TokenExpired, DENIED));
        alice.venus.release(handle).await.unwrap_err();
        let unsaved = here.venus.unsaved(TokenOwner::Uid(ALICE), 0);
        assert!(unsaved.len() == 1 && !unsaved[0].is_set_aside, "{unsaved:?}");
    });
    // It is retried meanwhile, and refused.
    cell.sim.run_for(Duration::from_secs(60));
    let here = machine.clone();
    cell.on(&machine, async move { here.log_in(ALICE, "alice").await });
    cell.sim.run_for(Duration::from_secs(5));
    let other = cell.client(2);
    let there = other.clone();
    cell.on(&other, async move {
        log_in(&there).await;
        assert_eq!(there.user(ALICE).get("home/secret").await.unwrap(), b"OF alice");
    });
    assert!(machine.venus.unsaved(TokenOwner::Uid(ALICE), 0).is_empty());
}

#[test]
fn a_server_given_a_callback_key_authenticates_its_callbacks() {
    let cell = cell(15);
    cell.users.add(AUTHENTICATES_CALLBACKS, 13);
    let (one, two) = (cell.client(1), cell.client(2));
    let (here, there) = (one.clone(), two.clone());
    cell.on(&one, async move { here.put("file", b"old").await.unwrap() });
    cell.on(&two, async move {
        there.log_in(BOB, AUTHENTICATES_CALLBACKS).await;
        assert_eq!(there.user(BOB).get("file").await.unwrap(), b"old");
    });
    let before = two.venus.counters();
    let here = one.clone();
    cell.on(&one, async move { here.put("file", b"new").await.unwrap() });
    let after = two.venus.counters();
    assert!(after.callbacks["CallBack"] > before.callbacks.get("CallBack").copied().unwrap_or(0));
    assert_eq!(after.callbacks_unproven, before.callbacks_unproven);
    assert!(one.venus.counters().callbacks_unproven > 0, "this machine has told nobody");
    let there = two.clone();
    cell.on(&two, async move { assert_eq!(there.user(BOB).get("file").await.unwrap(), b"new") });
}

#[test]
fn while_the_server_is_away_users_go_on_reading_their_cached_files() {
    let reads = |cell: &Cell, waits_max: [Duration; 5]| {
        let machine = cell.client(1);
        let here = machine.clone();
        cell.on(&machine, async move {
            log_in(&here).await;
            home_of_alice(&here).await;
            assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
            denied(here.user(BOB).get("home/secret").await);
        });
        cell.sim.crash(cell.server);
        cell.sim.run_for(Duration::from_secs(5));
        for most in waits_max {
            let here = machine.clone();
            cell.on(&machine, async move {
                let before = here.env.now();
                assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
                let waited = here.env.now().saturating_since(before);
                assert!(waited <= most, "waited {waited:?}");
                here.user(BOB).get("home/secret").await.unwrap_err();
            });
            cell.sim.run_for(Duration::from_secs(4));
        }
    };
    let none = Duration::ZERO;
    reads(&cell(16), [none; 5]);
    // What no server tells of is asked for once, as long as a call takes to find that nobody replies.
    let once = Limits::default().operation_max / 2;
    reads(&with_users(Cell::untold(16)), [once, none, none, none, none]);
}

/// Processes with even numbers are in session 5. The session of process 7 is never found, as long as this lives.
#[derive(Default)]
struct Even(Mutex<Vec<SessionCallback>>);

impl SessionLookup for Even {
    fn find_session(&self, of: Requester, tell: SessionCallback) {
        match of.pid {
            7 => self.0.lock().unwrap().push(tell),
            pid => tell(pid.is_multiple_of(2).then_some(5)),
        }
    }
}

#[test]
fn a_process_whose_session_cannot_be_found_in_time_is_in_none() {
    let cell = cell(13);
    *cell.sessions.lock().unwrap() = Some(Arc::new(Even::default()));
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        here.log_in_as(TokenOwner::Session { id: 5, uid: BOB }, "alice", None).await;
        let before = here.env.now();
        let stuck = here.process(BOB, 7).await;
        let waited = here.env.now().saturating_since(before);
        assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&waited), "{waited:?}");
        denied(stuck.get("home/secret").await);
        assert_eq!(here.process(BOB, 2).await.get("home/secret").await.unwrap(), b"of alice");
    });
}

#[test]
fn a_session_has_a_token_of_its_own() {
    let cell = cell(11);
    *cell.sessions.lock().unwrap() = Some(Arc::new(Even::default()));
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let session = TokenOwner::Session { id: 5, uid: BOB };
        assert!(!here.venus.has_sessions());
        here.log_in_as(session, "alice", None).await;
        assert!(here.venus.has_sessions());
        assert_eq!(here.process(BOB, 2).await.get("home/secret").await.unwrap(), b"of alice");
        denied(here.process(BOB, 3).await.get("home/secret").await);
        denied(here.process(NOBODY, 2).await.get("home/secret").await);
        assert_eq!(here.venus.remove_token(session, None).await.unwrap(), 1);
        denied(here.process(BOB, 2).await.get("home/secret").await);
        assert_eq!(here.venus.tokens().len(), 2);
        assert!(!here.venus.has_sessions(), "the kernel may keep again what it kept before");
    });
}

#[test]
fn one_user_may_be_somebody_without_a_token() {
    let cell = cell(12);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
    });
    *cell.own.lock().unwrap() = Some(OwnIdentity { uid: NOBODY, security: common::trusted_name("alice") });
    let other = cell.client(2);
    let there = other.clone();
    cell.on(&other, async move {
        assert_eq!(there.user(NOBODY).get("home/secret").await.unwrap(), b"of alice");
        assert_eq!(there.get("home/secret").await.unwrap(), b"of alice");
        denied(there.user(ALICE).get("home/secret").await);
        there.log_in(NOBODY, "bob").await;
        denied(there.user(NOBODY).get("home/secret").await);
        there.venus.remove_token(TokenOwner::Uid(NOBODY), None).await.unwrap();
        assert_eq!(there.user(NOBODY).get("home/secret").await.unwrap(), b"of alice");
    });
}

#[test]
fn a_new_or_lost_token_invalidates_private_objects_in_the_kernel() {
    let cell = cell(13);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let alice = here.user(ALICE);
        let (dir, open) =
            (alice.find("home").await.unwrap().node, alice.find("home/secret").await.unwrap().node);
        here.invalidated.take();
        here.log_in(NOBODY, "bob").await;
        let told = here.invalidated.take();
        assert!(
            told.contains(&format!("entry {:x} secret", dir.0))
                && told.contains(&format!("attributes {:x}", open.0))
        );
        assert!(!told.iter().any(|line| line.starts_with(&format!("entry {:x} ", NodeId::ROOT.0))));
    });
}

#[test]
fn an_open_file_goes_on_as_whom_it_was_opened() {
    let cell = cell(14);
    cell.set_limits(|limits| limits.chunk_bytes = 64 << 10);
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        home_of_alice(&here).await;
        let (alice, bob) = (here.user(ALICE), here.user(BOB));
        let data = pattern(500_000, 3);
        alice.put("home/large", &data).await.unwrap();
        let node = alice.find("home/large").await.unwrap().node;
        alice.venus.set_property(node, b"afs.flush", b"").await.unwrap();
        let handle = alice.open("home/large", OpenFlags::READ_WRITE).await.unwrap();
        // A process that was passed the file descriptor reads and writes as Alice.
        assert!(bob.read_all(handle).await.unwrap() == data);
        bob.venus.write(handle, 0, Bytes::from_static(b"from bob")).await.unwrap();
        bob.venus.flush(handle, 0).await.unwrap();
        bob.venus.release(handle).await.unwrap();
        assert!(alice.get("home/large").await.unwrap().starts_with(b"from bob"));
    });
}
