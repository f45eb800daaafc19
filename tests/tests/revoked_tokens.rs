//! Revoked tokens on real mounts: of a user whose laptop is lost, of a host that was broken into.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::Instant;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_021;
const BOB: u32 = 61_022;
const SERVER: &str = "127.0.0.1";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

#[test]
fn a_stolen_laptop_is_one_command() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("revoked-tokens");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("revoked-tokens", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-revoked");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rl"));
    let laptop = Mount::new(&netns, CELL, SERVER, scratch.path(), "laptop", &["--allow-other"]);
    let users = [("alice", ALICE), ("bob", BOB)]
        .map(|(name, uid)| (name, User::new(&netns, cell.state(), scratch.path(), name, uid)));
    let [(_, alice), (_, bob)] = &users;
    let state = cell.state().display().to_string();
    let owner = |words: &[&str]| command(&netns, &[words, &["--state", &state]].concat());
    for (name, user) in &users {
        let home = cell.mount().join(name);
        fs::create_dir(&home).unwrap();
        let _ =
            command(&netns, &["fs", "setacl", home.to_str().unwrap(), name, "all", "system:anyuser", "none"]);
        user.log_in(CELL, SERVER);
        let written = user.sh(laptop.path(), &format!("echo diary > $A/{name}/diary; cat $A/{name}/diary"));
        assert_eq!(said(&written), "diary");
    }
    let reads = |user: &User<'_>, name: &str| {
        let found = [cell.mount(), laptop.path()].map(|top| user.sh(top, &format!("cat $A/{name}/diary")));
        let [one, other] = found.map(|output| output.status.success());
        (one == other).then_some(one)
    };
    let refused = |name: &str, user: &User<'_>| {
        let since = Instant::now();
        until("the end of the tokens", seconds(20), || (reads(user, name) == Some(false)).then_some(()));
        println!("{name} reads nothing {:?} after the command", since.elapsed());
    };

    // Of one user, with a program that has the file open.
    let mut held =
        alice.command("sh", &["-c", "exec 3< $A/alice/diary; read go; cat <&3; cat $A/alice/diary"]);
    held.env("A", laptop.path()).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut held = held.spawn().unwrap();
    let output = owner(&["revoke", "alice"]);
    assert!(output.contains("alice: all tokens of before now are revoked"), "{output}");
    refused("alice", alice);
    drop(held.stdin.take());
    assert!(!held.wait().unwrap().success(), "the program opens it no more");
    let written = alice.sh(laptop.path(), "echo theft > $A/alice/diary");
    assert!(!written.status.success() && said(&written).contains("denied"), "{}", said(&written));
    assert_eq!(reads(bob, "bob"), Some(true), "the other user of both machines");
    alice.log_in(CELL, SERVER);
    assert_eq!(reads(alice, "alice"), Some(true));

    // By herself, of everybody who has logged in from the host, and for good.
    let output = alice.andrew(&["revoke", "alice", "--cell", CELL, "--servers", SERVER]);
    assert!(output.contains("alice: all tokens"), "{output}");
    refused("alice", alice);
    alice.log_in(CELL, SERVER);
    let output = owner(&["revoke", "--host", SERVER]);
    assert!(output.contains("alice: all") && output.contains("bob: all"), "{output}");
    refused("alice", alice);
    refused("bob", bob);
    bob.log_in(CELL, SERVER);
    cell.residents_log_in(SERVER);
    let output = owner(&["revoke", "alice", "--lock"]);
    assert!(output.contains("can log in no more"), "{output}");
    let secret = alice.home().join("passphrase").display().to_string();
    let again = alice.sh(
        laptop.path(),
        &format!(
            "{} login alice --cell {CELL} --servers {SERVER} --passphrase-file {secret}",
            andrew_tests::live::cell::andrew().display()
        ),
    );
    assert!(!again.status.success(), "{}", said(&again));
    assert_eq!(reads(bob, "bob"), Some(true));
    // The mount of the cell's owner lives by the key, whatever happens to the tokens of its name.
    owner(&["revoke", "admin"]);
    fs::write(cell.mount().join("of-the-owner"), "written").unwrap();
    drop(laptop);
    cell.stop();
}
