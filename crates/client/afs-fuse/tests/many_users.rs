//! Tests of many users on one real mount: what the kernel keeps is not shown to a user without the right to it.
//!
//! They need root, to act as all users, and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use afs_venus::{Limits, Requester, TokenOwner};
use kit::{ALICE, BOB, MountedCell, NOBODY, can_mount};

#[test]
fn the_kernels_cache_for_one_user_is_shown_to_no_other() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    cell.log_in(TokenOwner::Uid(BOB), "bob");
    cell.sh(ALICE, "mkdir $M/home $M/home/sub && echo for all > $M/public").unwrap();
    cell.set_acl("home", &[("alice", "rlidwka")]);
    cell.set_acl("home/sub", &[("alice", "rlidwka")]);
    cell.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    for round in 0..5 {
        // The kernel holds all of it from Alice's requests, and Alice has the file open.
        let all = "exec 3< $M/home/secret; cat $M/home/secret; ls $M/home; stat -c %s $M/home/secret";
        assert_eq!(cell.sh(ALICE, all).unwrap(), "of alice\nsecret\nsub\n9", "round {round}");
        assert!(cell.sh(ALICE, "cat $M/home/missing").unwrap_err().contains("No such file"));
        for other in [BOB, NOBODY] {
            cell.denied(other, "cat $M/home/secret");
            cell.denied(other, "stat $M/home/secret");
            cell.denied(other, "ls $M/home");
            cell.denied(other, "ls $M/home/sub");
            cell.denied(other, "cat $M/home/missing");
            cell.denied(other, "echo x > $M/home/secret");
            assert_eq!(cell.sh(other, "cat $M/public && stat -c %s $M/public").unwrap(), "for all\n8");
        }
    }
    // The name may be public while the attributes of its object are not.
    cell.set_acl("home", &[("alice", "rlidwka"), ("system:anyuser", "l")]);
    assert_eq!(cell.sh(ALICE, "cat $M/home/secret; stat -c %s $M/home/secret").unwrap(), "of alice\n9");
    for other in [BOB, NOBODY] {
        assert_eq!(cell.sh(other, "ls $M/home").unwrap(), "secret\nsub");
        cell.denied(other, "cat $M/home/secret");
        cell.denied(other, "stat $M/home/secret");
    }
}

#[test]
fn rights_that_come_and_go_are_seen_through_the_kernel() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    cell.log_in(TokenOwner::Uid(BOB), "bob");
    cell.sh(ALICE, "mkdir $M/home").unwrap();
    cell.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    cell.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    let look = "cat $M/home/secret && stat -c %s $M/home/secret && ls $M/home";
    for _ in 0..5 {
        assert_eq!(cell.sh(BOB, look).unwrap(), "of alice\n9\nsecret");
        cell.set_acl("home", &[("alice", "rlidwka")]);
        for what in ["cat $M/home/secret", "stat $M/home/secret", "ls $M/home"] {
            cell.denied(BOB, what);
        }
        cell.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    }
    // Rights through a group.
    cell.users.join("bob", "team");
    cell.set_acl("home", &[("alice", "rlidwka"), ("team", "rl")]);
    assert_eq!(cell.sh(BOB, look).unwrap(), "of alice\n9\nsecret");
    cell.users.leave("bob", "team");
    std::thread::sleep(Limits::default().rights_max_age);
    for what in ["stat $M/home/secret", "cat $M/home/secret", "ls $M/home"] {
        cell.denied(BOB, what);
    }
    // A token that is removed, and given to another user.
    cell.system.block_on(cell.venus.remove_token(TokenOwner::Uid(ALICE), None)).unwrap();
    cell.denied(ALICE, "cat $M/home/secret");
    cell.denied(ALICE, "stat $M/home/secret");
    cell.log_in(TokenOwner::Uid(NOBODY), "alice");
    assert_eq!(cell.sh(NOBODY, look).unwrap(), "of alice\n9\nsecret");
    cell.denied(ALICE, "stat $M/home/secret");
}

#[test]
fn a_session_is_found_by_the_environment_of_a_process() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    cell.sh(ALICE, "mkdir $M/home").unwrap();
    cell.set_acl("home", &[("alice", "rlidwka")]);
    cell.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    let session = 0x1234_5678_9abc_def0_1234_5678_9abc_def0;
    cell.log_in(TokenOwner::Session { id: session, uid: BOB }, "alice");
    let look = "cat $M/home/secret && stat -c %s $M/home/secret";
    for _ in 0..3 {
        assert_eq!(cell.sh_in(BOB, Some(session), look).unwrap(), "of alice\n9");
        cell.denied(BOB, "cat $M/home/secret");
        cell.denied(BOB, "stat $M/home/secret");
        assert!(cell.sh_in(NOBODY, Some(session), look).is_err());
        assert!(cell.sh_in(BOB, Some(session + 1), look).is_err());
        // A shell outside of the session continues as a program in it.
        let enter = format!("cat $M/home/secret; ANDREW_SESSION={session:032x}; export ANDREW_SESSION");
        assert_eq!(cell.sh(BOB, &format!("{enter}; exec cat $M/home/secret")).unwrap(), "of alice");
    }
}

/// Alice's private tree: `home` with directories `a/b`, and a file `secret` at the bottom.
fn private_tree(cell: &MountedCell) {
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    cell.log_in(TokenOwner::Uid(BOB), "bob");
    cell.sh(ALICE, "mkdir $M/home").unwrap();
    cell.set_acl("home", &[("alice", "rlidwka")]);
    cell.sh(ALICE, "mkdir -p $M/home/a/b && echo of alice > $M/home/a/b/secret").unwrap();
}

/// Requests for names in `home/a`, and below, and for attributes of the file, that many looks of Alice cost.
fn requests_of_looks(cell: &MountedCell) -> (u64, u64) {
    let look = "for n in 1 2 3 4 5 6 7 8 9 10; do stat -c %s $M/home/a/b/secret; done";
    cell.sh(ALICE, look).unwrap();
    let alice = cell.system.block_on(cell.venus.on_behalf_of(Requester { uid: ALICE, pid: 0 }));
    let node = |path: &str| cell.system.block_on(alice.walk(path.as_bytes(), true)).unwrap().node;
    let nodes = ["home/a/b", "home/a/b/secret"].map(node);
    let count = || {
        let lookups: u64 = nodes.iter().map(|node| cell.venus.lookups(*node)).sum();
        (lookups, cell.venus.counters().status_hits)
    };
    let before = count();
    cell.sh(ALICE, look).unwrap();
    let after = count();
    nodes.iter().for_each(|node| cell.venus.forget(*node, 1));
    (after.0 - before.0, after.1 - before.1)
}

/// Whether the kernel can invalidate all names at once: from Linux 6.16 on.
fn keeps_private_names() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).filter_map(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(16))
}

#[test]
fn a_private_tree_is_kept_for_its_user_and_shown_to_nobody_else() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    private_tree(&cell);
    for round in 0..3 {
        let requests = requests_of_looks(&cell);
        assert!(!keeps_private_names() || requests == (0, 0), "round {round}: {requests:?}");
        for other in [BOB, NOBODY, 0] {
            for path in ["a", "a/b", "a/b/secret", "a/missing", "missing"] {
                cell.denied(other, &format!("stat $M/home/{path}"));
            }
            cell.denied(other, "ls $M/home/a");
            cell.sh(other, "stat $M/home").unwrap();
        }
    }
    // Who may look at a part of the tree sees that part.
    cell.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    cell.set_acl("home/a", &[("alice", "rlidwka"), ("bob", "rl")]);
    assert_eq!(cell.sh(BOB, "ls $M/home/a").unwrap(), "b");
    for _ in 0..3 {
        requests_of_looks(&cell);
        cell.denied(BOB, "stat $M/home/a/b/secret");
        cell.sh(BOB, "stat $M/home/a/b").unwrap();
        cell.denied(NOBODY, "stat $M/home/a/b");
    }
    cell.set_acl("home/a", &[("alice", "rlidwka")]);
    cell.denied(BOB, "stat $M/home/a/b");
}

#[test]
fn a_private_directory_that_is_moved_is_shown_to_nobody_in_its_new_place() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    private_tree(&cell);
    cell.sh(ALICE, "mkdir $M/shared && echo > $M/file").unwrap();
    cell.set_acl("shared", &[("alice", "rlidwka"), ("bob", "rl")]);
    for _ in 0..3 {
        cell.sh(BOB, "ls $M/shared; stat $M/file").unwrap();
        requests_of_looks(&cell);
        cell.sh(ALICE, "mv $M/home/a $M/shared/a; mv $M/file $M/home/file; stat $M/home/file").unwrap();
        cell.sh(BOB, "stat $M/shared/a").unwrap();
        for path in ["shared/a/b", "shared/a/b/secret", "home/file"] {
            cell.denied(BOB, &format!("stat $M/{path}"));
            cell.denied(NOBODY, &format!("stat $M/{path}"));
        }
        cell.sh(ALICE, "mv $M/shared/a $M/home/a; mv $M/home/file $M/file").unwrap();
        cell.denied(BOB, "stat $M/home/a");
    }
}

#[test]
fn after_a_session_has_ended_private_names_are_kept_again() {
    if !can_mount() {
        return;
    }
    let cell = MountedCell::new();
    private_tree(&cell);
    let session = TokenOwner::Session { id: 5, uid: ALICE };
    for _ in 0..2 {
        cell.log_in(session, "bob");
        let requests = requests_of_looks(&cell);
        assert!(requests.0 > 0 && requests.1 > 0, "{requests:?}");
        assert!(cell.sh_in(ALICE, Some(5), "stat $M/home/a/b").is_err());
        cell.system.block_on(cell.venus.remove_token(session, None)).unwrap();
        let requests = requests_of_looks(&cell);
        assert!(!keeps_private_names() || requests == (0, 0), "{requests:?}");
    }
}
