//! Many users on one real mount: what the kernel keeps is shown to nobody who may not see it.
//!
//! Must be run as root, to be all of them, with `/dev/fuse`; elsewhere it says so and passes, but not where `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
mod scene;

use afs_venus::{Limits, TokenOwner};
use scene::{ALICE, BOB, NOBODY, Scene, can_mount};

#[test]
fn what_the_kernel_keeps_for_one_user_is_shown_to_no_other() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    scene.log_in(TokenOwner::Uid(ALICE), "alice");
    scene.log_in(TokenOwner::Uid(BOB), "bob");
    scene.sh(ALICE, "mkdir $M/home $M/home/sub && echo for all > $M/public").unwrap();
    scene.set_acl("home", &[("alice", "rlidwka")]);
    scene.set_acl("home/sub", &[("alice", "rlidwka")]);
    scene.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    for round in 0..5 {
        // The kernel knows it all from Alice, and Alice has it open.
        let all = "exec 3< $M/home/secret; cat $M/home/secret; ls $M/home; stat -c %s $M/home/secret";
        assert_eq!(scene.sh(ALICE, all).unwrap(), "of alice\nsecret\nsub\n9", "round {round}");
        assert!(scene.sh(ALICE, "cat $M/home/missing").unwrap_err().contains("No such file"));
        for other in [BOB, NOBODY] {
            scene.denied(other, "cat $M/home/secret");
            scene.denied(other, "stat $M/home/secret");
            scene.denied(other, "ls $M/home");
            scene.denied(other, "ls $M/home/sub");
            scene.denied(other, "cat $M/home/missing");
            scene.denied(other, "echo x > $M/home/secret");
            assert_eq!(scene.sh(other, "cat $M/public && stat -c %s $M/public").unwrap(), "for all\n8");
        }
    }
    // A name may be known to all while what it stands for is not.
    scene.set_acl("home", &[("alice", "rlidwka"), ("system:anyuser", "l")]);
    assert_eq!(scene.sh(ALICE, "cat $M/home/secret; stat -c %s $M/home/secret").unwrap(), "of alice\n9");
    for other in [BOB, NOBODY] {
        assert_eq!(scene.sh(other, "ls $M/home").unwrap(), "secret\nsub");
        scene.denied(other, "cat $M/home/secret");
        scene.denied(other, "stat $M/home/secret");
    }
}

#[test]
fn rights_that_come_and_go_are_seen_through_the_kernel() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    scene.log_in(TokenOwner::Uid(ALICE), "alice");
    scene.log_in(TokenOwner::Uid(BOB), "bob");
    scene.sh(ALICE, "mkdir $M/home").unwrap();
    scene.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    scene.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    let look = "cat $M/home/secret && stat -c %s $M/home/secret && ls $M/home";
    for _ in 0..5 {
        assert_eq!(scene.sh(BOB, look).unwrap(), "of alice\n9\nsecret");
        scene.set_acl("home", &[("alice", "rlidwka")]);
        for what in ["cat $M/home/secret", "stat $M/home/secret", "ls $M/home"] {
            scene.denied(BOB, what);
        }
        scene.set_acl("home", &[("alice", "rlidwka"), ("bob", "rl")]);
    }
    // A group.
    scene.users.join("bob", "team");
    scene.set_acl("home", &[("alice", "rlidwka"), ("team", "rl")]);
    assert_eq!(scene.sh(BOB, look).unwrap(), "of alice\n9\nsecret");
    scene.users.leave("bob", "team");
    std::thread::sleep(Limits::default().rights_max_age);
    for what in ["stat $M/home/secret", "cat $M/home/secret", "ls $M/home"] {
        scene.denied(BOB, what);
    }
    // A token, taken away and given to another.
    scene.system.block_on(scene.venus.remove_token(TokenOwner::Uid(ALICE), None)).unwrap();
    scene.denied(ALICE, "cat $M/home/secret");
    scene.denied(ALICE, "stat $M/home/secret");
    scene.log_in(TokenOwner::Uid(NOBODY), "alice");
    assert_eq!(scene.sh(NOBODY, look).unwrap(), "of alice\n9\nsecret");
    scene.denied(ALICE, "stat $M/home/secret");
}

#[test]
fn a_session_is_found_by_the_environment_of_a_process() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    scene.log_in(TokenOwner::Uid(ALICE), "alice");
    scene.sh(ALICE, "mkdir $M/home").unwrap();
    scene.set_acl("home", &[("alice", "rlidwka")]);
    scene.sh(ALICE, "echo of alice > $M/home/secret").unwrap();
    let session = 0x1234_5678_9abc_def0_1234_5678_9abc_def0;
    scene.log_in(TokenOwner::Session { id: session, uid: BOB }, "alice");
    let look = "cat $M/home/secret && stat -c %s $M/home/secret";
    for _ in 0..3 {
        assert_eq!(scene.sh_in(BOB, Some(session), look).unwrap(), "of alice\n9");
        scene.denied(BOB, "cat $M/home/secret");
        scene.denied(BOB, "stat $M/home/secret");
        assert!(scene.sh_in(NOBODY, Some(session), look).is_err());
        assert!(scene.sh_in(BOB, Some(session + 1), look).is_err());
        // A shell that was not in the session goes on as a program that is.
        let enter = format!("cat $M/home/secret; ANDREW_SESSION={session:032x}; export ANDREW_SESSION");
        assert_eq!(scene.sh(BOB, &format!("{enter}; exec cat $M/home/secret")).unwrap(), "of alice");
    }
}
