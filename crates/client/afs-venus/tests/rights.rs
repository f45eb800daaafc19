//! Rights that last as long as promises, at servers that tell when what they rest on has changed.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{NodeId, OpenFlags, TokenOwner};
use common::{Cell, Client};

const ALICE: u32 = 1001;
const BOB: u32 = 1002;
const NOBODY: u32 = 1003;

/// A cell with Alice, Bob and a group `team`, and a machine on which both are logged in. `home` is for Alice and the group, with a file `secret`.
fn shared_home(seed: u64) -> (Cell, Client) {
    let cell = Cell::new(seed);
    for (name, id) in [("alice", 11), ("bob", 12), ("team", -300)] {
        cell.users.add(name, id);
    }
    cell.users.join("bob", "team");
    let machine = cell.client(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        log_in(&here).await;
        let alice = here.user(ALICE);
        alice.mkdir("home").await.unwrap();
        alice.set_acl("home", &[("alice", "rlidwka"), ("team", "rl")]).await.unwrap();
        alice.put("home/secret", b"of alice").await.unwrap();
        assert_eq!(here.user(BOB).get("home/secret").await.unwrap(), b"of alice");
    });
    (cell, machine)
}

async fn log_in(client: &Client) {
    client.log_in(ALICE, "alice").await;
    client.log_in(BOB, "bob").await;
}

fn is_denied<T>(result: &afs_venus::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.errno() == 13)
}

#[test]
fn a_private_tree_in_use_costs_no_calls_for_ten_minutes() {
    let (cell, machine) = shared_home(1);
    let here = machine.clone();
    cell.on(&machine, async move {
        let alice = here.user(ALICE);
        for n in 0..20 {
            alice.mkdir(&format!("home/d{n}")).await.unwrap();
            alice.put(&format!("home/d{n}/file"), b"data").await.unwrap();
        }
        walk(&alice).await;
        let before = here.venus.counters();
        for _ in 0..60 {
            here.env.sleep(Duration::from_secs(10)).await;
            walk(&alice).await;
            here.user(BOB).get("home/secret").await.unwrap();
        }
        // That the server is there is asked every 75 seconds, of whatever is cached.
        let calls = here.calls_since(&before);
        assert!(calls.iter().all(|call| call.starts_with("GetTime")), "{calls:?}");
    });
}

async fn walk(user: &Client) {
    for n in 0..20 {
        user.names(&format!("home/d{n}")).await.unwrap();
        assert_eq!(user.get(&format!("home/d{n}/file")).await.unwrap(), b"data");
    }
}

#[test]
fn the_kernel_is_told_of_a_change_of_a_group_without_a_request() {
    let (cell, machine) = shared_home(2);
    let (dir, file) = nodes(&cell, &machine);
    for (changes, is_member) in [(false, false), (true, true), (false, false)] {
        machine.invalidated.take();
        match changes {
            true => cell.users.join("bob", "team"),
            false => cell.users.leave("bob", "team"),
        }
        cell.sim.run_for(Duration::from_millis(500));
        let told = machine.invalidated.take();
        assert!(told.contains(&format!("entry {:x} secret", dir.0)), "{told:?}");
        assert!(told.contains(&format!("attributes {:x}", file.0)), "{told:?}");
        assert!(
            !told.iter().any(|line| line.starts_with(&format!("entry {:x} ", NodeId::ROOT.0))),
            "{told:?}"
        );
        let here = machine.clone();
        cell.on(&machine, async move {
            let bob = here.user(BOB);
            assert_eq!(is_denied(&bob.venus.open(file, OpenFlags::READ).await), !is_member);
            assert_eq!(is_denied(&bob.names("home").await), !is_member);
            assert_eq!(here.user(ALICE).get("home/secret").await.unwrap(), b"of alice");
        });
    }
}

fn nodes(cell: &Cell, machine: &Client) -> (NodeId, NodeId) {
    let here = machine.clone();
    cell.on(machine, async move {
        let alice = here.user(ALICE);
        (alice.find("home").await.unwrap().node, alice.find("home/secret").await.unwrap().node)
    })
}

#[test]
fn rights_that_were_broken_are_asked_for_again_in_one_call() {
    let (cell, machine) = shared_home(3);
    let here = machine.clone();
    cell.on(&machine, async move {
        let alice = here.user(ALICE);
        for n in 0..20 {
            alice.mkdir(&format!("home/d{n}")).await.unwrap();
            alice.put(&format!("home/d{n}/file"), b"data").await.unwrap();
        }
        walk(&alice).await;
    });
    cell.users.join("alice", "team");
    cell.sim.run_for(Duration::from_millis(500));
    let here = machine.clone();
    cell.on(&machine, async move {
        let before = here.venus.counters();
        walk(&here.user(ALICE)).await;
        assert_eq!(here.calls_since(&before), ["InlineBulkStatus 1"]);
    });
}

#[test]
fn a_user_who_was_removed_has_no_rights_a_second_later() {
    let (cell, machine) = shared_home(4);
    cell.users.remove("alice");
    cell.sim.run_for(Duration::from_secs(1));
    let here = machine.clone();
    cell.on(&machine, async move {
        assert!(is_denied(&here.user(ALICE).get("home/secret").await));
        assert_eq!(here.user(BOB).get("home/secret").await.unwrap(), b"of alice");
    });
}

/// It is told when it can be reached, and has the rights no longer than the promise if it cannot.
#[test]
fn a_machine_that_is_cut_off_keeps_rights_no_longer_than_the_promise() {
    for is_mended in [true, false] {
        let (cell, machine) = shared_home(5);
        let world = cell.sim.world();
        world.cut(machine.node, cell.server);
        world.cut(cell.server, machine.node);
        cell.users.leave("bob", "team");
        cell.sim.run_for(Duration::from_secs(5));
        let here = machine.clone();
        cell.on(&machine, async move {
            assert_eq!(
                here.user(BOB).get("home/secret").await.unwrap(),
                b"of alice",
                "it cannot know better"
            );
        });
        match is_mended {
            true => {
                world.mend(machine.node, cell.server);
                world.mend(cell.server, machine.node);
                cell.sim.run_for(Duration::from_secs(75));
            }
            false => cell.sim.run_for(Duration::from_secs(4 * 3600)),
        }
        let here = machine.clone();
        cell.on(&machine, async move {
            let bob = here.user(BOB).get("home/secret").await;
            assert_eq!(is_denied(&bob), is_mended, "{bob:?}");
            assert!(bob.is_err());
        });
    }
}

#[test]
fn after_a_restart_of_the_server_rights_are_promised_anew() {
    let (cell, machine) = shared_home(6);
    cell.restart_server();
    cell.users.leave("bob", "team");
    cell.sim.run_for(Duration::from_secs(75));
    let here = machine.clone();
    cell.on(&machine, async move {
        assert!(is_denied(&here.user(BOB).get("home/secret").await));
        here.user(ALICE).get("home/secret").await.unwrap();
        let before = here.venus.counters();
        here.env.sleep(Duration::from_secs(30)).await;
        here.user(ALICE).get("home/secret").await.unwrap();
        assert!(here.calls_since(&before).is_empty(), "{:?}", here.calls_since(&before));
    });
    cell.users.join("bob", "team");
    cell.sim.run_for(Duration::from_secs(1));
    let here = machine.clone();
    cell.on(&machine, async move { here.user(BOB).get("home/secret").await.map(drop).unwrap() });
}

#[test]
fn the_rights_of_the_caller_are_asked_for_where_they_are_not_known() {
    let (cell, machine) = shared_home(7);
    let fresh = cell.client(2);
    let here = fresh.clone();
    cell.on(&fresh, async move {
        log_in(&here).await;
        let rights = async |uid: u32, path: &str| {
            let user = here.user(uid);
            let node = user.find(path).await.unwrap().node;
            let text = user.venus.property(node, b"afs.access").await.unwrap();
            String::from_utf8(text.to_vec()).unwrap()
        };
        assert_eq!(rights(ALICE, "home").await, "rlidwka");
        assert_eq!(rights(BOB, "home").await, "rl");
        assert_eq!(rights(NOBODY, "home").await, "");
        assert_eq!(rights(BOB, "home/secret").await, "rl");
        assert_eq!(rights(ALICE, "home/secret").await, "rlidwka");
        here.log_in_as(TokenOwner::Uid(NOBODY), "bob", None).await;
        assert_eq!(rights(NOBODY, "home").await, "rl");
    });
    drop(machine);
}
