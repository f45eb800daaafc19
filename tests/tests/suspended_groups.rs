//! A user of a real mount who works without the rights of a group, for a while or for one program.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, andrew, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_011;
const SERVER: &str = "127.0.0.1";
const GROUP: &str = "alice:project";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

/// Runs a line of the shell in a session without the group.
fn without(user: &User<'_>, top: &Path, line: &str) -> Output {
    let program = andrew().display().to_string();
    let mut command = user.command(&program, &["run-with-token", "--without", GROUP, "--cell", CELL]);
    command.args(["--", "sh", "-c", line]).env("A", top).env("ANDREW", program);
    run_any(command, seconds(60))
}

fn log_in(user: &User<'_>, more: &[&str]) -> String {
    let secret = user.home().join("passphrase").display().to_string();
    let words = ["login", "alice", "--cell", CELL, "--servers", SERVER, "--passphrase-file", &secret];
    user.andrew(&[&words, more].concat())
}

#[test]
fn a_user_works_without_the_rights_of_a_group_on_all_mounts() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("suspended-groups");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("suspended-groups", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-suspended");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rl"));
    let other = Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &["--allow-other"]);
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let state = cell.state().display().to_string();
    let owner = |words: &[&str]| command(&netns, &[words, &["--state", &state]].concat());
    owner(&["pts", "creategroup", GROUP, "-owner", "alice"]);
    owner(&["pts", "adduser", "alice", GROUP]);
    let project = cell.mount().join("project");
    fs::create_dir(&project).unwrap();
    let _ = command(
        &netns,
        &["fs", "setacl", project.to_str().unwrap(), GROUP, "rlidwk", "system:anyuser", "none"],
    );
    let tops = [cell.mount(), other.path()];
    let reads = |expected: bool| {
        for top in tops {
            let output = alice.sh(top, "cat $A/project/plan");
            assert_eq!(output.status.success(), expected, "{}: {}", top.display(), said(&output));
            let denied = said(&output).contains("Permission denied");
            assert_eq!(denied, !expected, "{}", said(&output));
        }
    };
    log_in(&alice, &[]);
    assert!(alice.sh(cell.mount(), "echo secret > $A/project/plan").status.success());
    reads(true);

    // For one program, whatever the others read meanwhile.
    let mut looping =
        alice.command("sh", &["-c", "for n in $(seq 500); do cat $A/project/plan || exit 1; done"]);
    looping.env("A", cell.mount()).stdout(std::process::Stdio::null());
    let mut looping = looping.spawn().unwrap();
    for top in tops {
        let script = "cat $A/project/plan && exit 1; ls $A/project && exit 2; echo x > $A/project/new && exit 3; \
                      $ANDREW fs getcalleraccess $A/project; $ANDREW tokens; exit 0";
        let output = without(&alice, top, script);
        assert!(output.status.success(), "{}: {}", top.display(), said(&output));
        assert!(said(&output).contains("is none"), "{}", said(&output));
        assert!(said(&output).contains("without the rights of alice:project"), "{}", said(&output));
    }
    assert!(looping.wait().unwrap().success(), "the other programs of the user have the rights");

    // By default, until another login.
    let output = log_in(&alice, &["--without", GROUP]);
    assert!(
        output.contains("alice is logged in") && output.contains("without the rights of alice:project"),
        "{output}"
    );
    reads(false);
    let output = alice.sh(cell.mount(), &format!("{} fs access $A/project", andrew().display()));
    assert!(!said(&output).contains("from alice:project"), "{}", said(&output));
    log_in(&alice, &[]);
    reads(true);

    // For a while, without the passphrase; also a mount that starts meanwhile.
    alice.andrew(&["groups", "disable", GROUP, "--cell", CELL]);
    reads(false);
    let third = Mount::new(&netns, CELL, SERVER, scratch.path(), "third", &["--allow-other"]);
    assert!(!alice.sh(third.path(), "cat $A/project/plan").status.success());
    alice.andrew(&["groups", "enable", GROUP, "--cell", CELL]);
    reads(true);
    assert!(alice.sh(third.path(), "cat $A/project/plan").status.success());

    // A mount that begins while a session runs learns of it.
    let script = "until test -e $A/../go; do sleep 0.1; done; sleep 2; cat $A/project/plan && exit 1; exit 0";
    let fourth = scratch.path().join("fourth");
    let program = andrew().display().to_string();
    let mut session = alice.command(&program, &["run-with-token", "--without", GROUP, "--cell", CELL]);
    session.args(["--", "sh", "-c", script]).env("A", &fourth).stdout(std::process::Stdio::null());
    let mut session = session.spawn().unwrap();
    let fourth = Mount::new(&netns, CELL, SERVER, scratch.path(), "fourth", &["--allow-other"]);
    log_in(&alice, &[]);
    assert!(alice.sh(fourth.path(), "cat $A/project/plan").status.success());
    fs::write(scratch.path().join("go"), "").unwrap();
    until("the end of the session", seconds(30), || session.try_wait().unwrap());
    assert!(session.wait().unwrap().success(), "the session reads what the user may");
    drop((third, fourth, other));
    cell.stop();
}
