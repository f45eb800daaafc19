//! Homes as `andrew user add` makes them: private from the first minute, in the present and in snapshots.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, andrew, command, try_command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_021;
const STRANGER: u32 = 61_022;
const SERVER: &str = "127.0.0.1";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

/// A line of the shell as a user in a mount, which must succeed.
fn does(user: &User<'_>, top: &Path, line: &str) {
    let output = user.sh(top, &format!("andrew() {{ {} \"$@\"; }}; {line}", andrew().display()));
    assert!(output.status.success(), "{line}: {}", said(&output));
}

/// Whether a user reads a file on each of some mounts; the answer is the same on all of them in the end.
fn reads(user: &User<'_>, tops: &[&Path], file: &str, expected: bool) {
    for top in tops {
        let line = format!("cat $A/{file}");
        until(&format!("{file} on {}: {expected}", top.display()), seconds(30), || {
            let output = user.sh(top, &line);
            let is_denied = said(&output).contains("Permission denied");
            assert!(output.status.success() || is_denied, "{}", said(&output));
            (output.status.success() == expected).then_some(())
        });
    }
}

#[test]
fn a_home_is_private_and_what_is_closed_in_it_is_closed_in_its_snapshots() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("private-homes");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("private-homes", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-homes");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rl"));
    let other = Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &["--allow-other"]);
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let stranger = User::known(&netns, scratch.path(), "stranger", STRANGER);
    let state = cell.state().display().to_string();
    let owner = |words: &[&str]| command(&netns, words);
    let home = cell.mount().join("alice");
    let told =
        owner(&["user", "add", "alice", home.to_str().unwrap(), "--quota", "100000", "--state", &state]);
    assert!(told.contains("volume home.alice") && told.contains("andrew login alice"), "{told}");
    let again = try_command(&netns, &["user", "add", "alice", home.to_str().unwrap(), "--state", &state]);
    assert!(!again.status.success() && said(&again).contains("exists"), "{}", said(&again));
    alice.log_in(CELL, SERVER);
    let tops = [cell.mount(), other.path()];

    // A home of before: nobody looks into it, whatever modes files in it have.
    does(&alice, cell.mount(), "echo mine > $A/alice/plan && chmod 644 $A/alice/plan");
    reads(&alice, &tops, "alice/plan", true);
    reads(&stranger, &tops, "alice/plan", false);

    // Alice opens it, and modes close again what is not for others.
    let open = "andrew fs setacl $A/alice system:anyuser rl && mkdir $A/alice/public && echo dear > $A/alice/public/letter";
    does(&alice, cell.mount(), open);
    does(&alice, cell.mount(), "umask 077 && mkdir $A/alice/.ssh && echo secret > $A/alice/.ssh/id_ed25519");
    reads(&stranger, &tops, "alice/public/letter", true);
    reads(&stranger, &tops, "alice/.ssh/id_ed25519", false);
    does(&alice, cell.mount(), "andrew fs explain $A/alice/public/letter | grep -v 'others:'");
    does(&alice, cell.mount(), "chmod 600 $A/alice/public/letter && cat $A/alice/public/letter");
    does(&alice, cell.mount(), "andrew fs explain $A/alice/public/letter | grep 'mode 600 keeps nobody out'");

    // What is closed today is closed in the snapshot, on the mount that closed it and on the other.
    owner(&["vos", "--state", &state, "snapshot", "create", "home.alice", "one"]);
    let then = "alice/.snapshots/one/public/letter";
    reads(&stranger, &tops, then, true);
    does(&alice, other.path(), "rm $A/alice/public/letter && chmod go-rwx $A/alice/public");
    reads(&stranger, &tops, then, false);
    reads(&alice, &tops, then, true);

    // The past is closed to everybody, and the user cannot open it.
    does(&alice, cell.mount(), "andrew fs setacl $A/alice/public system:anyuser rl");
    reads(&stranger, &tops, then, true);
    let line = format!("{} fs snapshots --close $A/alice/public", andrew().display());
    assert!(!stranger.sh(cell.mount(), &line).status.success());
    does(&alice, cell.mount(), "andrew fs snapshots --close $A/alice/public && rmdir $A/alice/public");
    reads(&stranger, &tops, then, false);
    reads(&alice, &tops, then, false);
    does(&alice, cell.mount(), "mkdir $A/alice/public && andrew fs snapshots $A/alice | grep rlidwka");
    let removed = cell.mount().join("alice/.snapshots/one/public");
    let line = format!("{} fs snapshots --open {}", andrew().display(), removed.display());
    let refused = alice.sh(cell.mount(), &line);
    assert!(said(&refused).contains("only administrators"), "{}", said(&refused));
    owner(&["fs", "snapshots", "--open", removed.to_str().unwrap()]);
    reads(&alice, &tops, then, true);
    cell.stop();
}
