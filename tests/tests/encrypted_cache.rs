//! Encrypted cache of a real mount: the disk of a laptop shows nothing of a private home, and opens for its user alone.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::fuse_for_all::fuse_for_all;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_041;
const SERVER: &str = "127.0.0.1";
const CLOSED: &str = "--encrypt-cache";
/// In a file, in the name of one, and in what a symbolic link refers to.
const WORDS: [&str; 3] = ["letters-to-nobody-else", "name-of-a-plan", "where-a-link-leads"];
/// Writes them, and reads them back.
const WORK: &str = "cd $A/alice && seq 1 200000 > numbers && for n in $(seq 300); do echo letters-to-nobody-else $n; done > diary && \
    mkdir -p name-of-a-plan && ln -sf where-a-link-leads link && ls -l . name-of-a-plan link > /dev/null && seq 1 200000 | cmp - numbers && \
    echo more >> diary && tail -n 1 diary";
const READ: &str = "cd $A/alice && seq 1 200000 | cmp - numbers && readlink link && test -d name-of-a-plan && tail -n 1 diary";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

/// The words that are found anywhere below a directory: in a file or a name.
fn found(below: &Path) -> Vec<&'static str> {
    let mut words = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let bytes = match path.is_dir() {
            true => {
                words.extend(found(&path));
                Vec::new()
            }
            false => fs::read(&path).unwrap(),
        };
        let is_in = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        words.extend(WORDS.into_iter().filter(|word| is_in(word)));
    }
    words.sort_unstable();
    words.dedup();
    words
}

#[test]
fn a_stolen_disk_shows_nothing_and_opens_for_its_user_until_that_is_locked() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("encrypted-cache");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("encrypted-cache", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-encrypted");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rl"));
    let (_fuse, users) = fuse_for_all(&netns, scratch.path(), &[ALICE]);
    let alice = User::new(&users, cell.state(), scratch.path(), "alice", ALICE);
    let state = cell.state().display().to_string();
    let home = cell.mount().join("alice");
    fs::create_dir(&home).unwrap();
    let list = ["fs", "setacl", home.to_str().unwrap(), "alice", "all", "system:anyuser", "none"];
    let _ = command(&netns, &list);
    let (cache, place) = (alice.home().join("laptop.cache"), alice.home().join("laptop"));
    let mount = |more: &[&str]| {
        let (cache, place) = (cache.display().to_string(), place.display().to_string());
        let words = ["mount", "--cell", CELL, "--servers", SERVER, "--cache", &cache, &place];
        said(&alice.andrew_any(&[&words, more].concat()))
    };

    let refused = mount(&[CLOSED]);
    assert!(refused.contains(&format!("log in first: andrew login YOU --cell {CELL}")), "{refused}");
    alice.log_in(CELL, SERVER);
    let laptop = Mount::of_user_with(&alice, CELL, SERVER, "laptop", &[CLOSED]);
    assert_eq!(said(&alice.sh(laptop.path(), WORK)), "more");
    // A program has a file open when the mount is stopped.
    let mut writer = alice.command(
        "sh",
        &["-c", "exec 3> $A/alice/name-of-a-plan/step; echo letters-to-nobody-else >&3; exec sleep 60"],
    );
    let mut writer = writer.env("A", laptop.path()).spawn().unwrap();
    let step = "test -s $A/alice/name-of-a-plan/step";
    until("a file that is open", seconds(20), || {
        alice.sh(laptop.path(), step).status.success().then_some(())
    });
    drop(laptop);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(found(&cache), [""; 0], "in the encrypted cache");
    let refused = mount(&[]);
    assert!(refused.contains("encrypted with the key of alice") && refused.contains(CLOSED), "{refused}");

    // The cache is used again, also after the process was killed.
    let mut laptop = Mount::of_user_with(&alice, CELL, SERVER, "laptop", &[CLOSED]);
    assert_eq!(said(&alice.sh(laptop.path(), READ)), "where-a-link-leads\nmore");
    laptop.kill();
    drop(laptop);
    let laptop = Mount::of_user_with(&alice, CELL, SERVER, "laptop", &[CLOSED]);
    assert_eq!(said(&alice.sh(laptop.path(), READ)), "where-a-link-leads\nmore");
    drop(laptop);
    assert_eq!(found(&cache), [""; 0], "in the encrypted cache");

    // A cache that is not encrypted shows it, and does not become encrypted.
    let plain = Mount::of_user(&alice, CELL, SERVER, "plain");
    assert_eq!(said(&alice.sh(plain.path(), WORK)), "more");
    drop(plain);
    let shown = found(&alice.home().join("plain.cache"));
    assert!(shown.contains(&WORDS[0]), "{shown:?}");
    fs::rename(&cache, alice.home().join("kept.cache")).unwrap();
    fs::rename(alice.home().join("plain.cache"), &cache).unwrap();
    let refused = mount(&[CLOSED]);
    assert!(refused.contains("not encrypted") && refused.contains("--cache"), "{refused}");
    fs::remove_dir_all(&cache).unwrap();
    fs::rename(alice.home().join("kept.cache"), &cache).unwrap();

    // The thief has the disk, with the token that was kept on it.
    let locked = command(&netns, &["revoke", "alice", "--lock", "--state", &state]);
    assert!(locked.contains("can log in no more"), "{locked}");
    let refused = mount(&[CLOSED]);
    assert!(refused.contains("the token of alice") && refused.contains("counts no more"), "{refused}");
    cell.stop();
}
