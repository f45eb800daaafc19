//! Snapshots from a user's point of view: in the root directory of a volume, under a real kernel.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command, try_command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

#[test]
fn users_find_what_was_in_a_directory_of_the_volume() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("snapshots");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("snapshots", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-snap");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwk"));
    let state = cell.state().to_str().unwrap().to_owned();
    let vos = |words: &[&str]| command(&netns, &[&["vos", "--state", &state], words].concat());
    let home = cell.mount().join("home");
    vos(&["create", "home"]);
    let _ = command(&netns, &["fs", "mkmount", home.to_str().unwrap(), "home"]);
    let _ = command(&netns, &["fs", "setacl", home.to_str().unwrap(), "system:anyuser", "rl"]);
    fs::create_dir(home.join("letters")).unwrap();
    fs::write(home.join("letters/to-ann"), "first words").unwrap();
    vos(&["snapshot", "create", "home", "monday"]);
    fs::write(home.join("letters/to-ann"), "other words").unwrap();
    fs::remove_file(home.join("letters/to-ann")).unwrap();
    fs::write(home.join("letters/to-bob"), "dear Bob").unwrap();

    let shown = home.join(".snapshots");
    until_equal("the snapshots", &vec!["monday".to_owned()], || names(&shown));
    assert!(!names(&home).contains(&".snapshots".to_owned()), "found, not listed");
    let then = shown.join("monday/letters");
    assert_eq!(fs::read_to_string(then.join("to-ann")).unwrap(), "first words");
    assert_eq!(names(&then), ["to-ann"]);
    assert_eq!(names(&home.join("letters")), ["to-bob"]);

    for refused in [
        fs::write(then.join("to-ann"), "x"),
        fs::write(then.join("new"), "x"),
        fs::remove_file(then.join("to-ann")),
        fs::create_dir(then.join("new")),
        fs::create_dir(shown.join("tuesday")),
        fs::rename(then.join("to-ann"), then.join("to-eve")),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    }
    fs::copy(then.join("to-ann"), home.join("letters/to-ann")).unwrap();
    assert_eq!(fs::read_to_string(home.join("letters/to-ann")).unwrap(), "first words");

    another_name_and_none(&netns, scratch.path());
    whole_volume_goes_back(&vos, &home);
    vos(&["snapshot", "remove", "home", "monday"]);
    until_equal("the snapshots", &Vec::new(), || names(&shown));
    let again = try_command(&netns, &["vos", "--state", &state, "snapshot", "restore", "home", "monday"]);
    assert!(!again.status.success());
    cell.stop();
}

fn another_name_and_none(netns: &Netns, folder: &Path) {
    let other = Mount::new(netns, CELL, "127.0.0.1", folder, "other", &["--snapshots", "~past"]);
    assert_eq!(names(&other.path().join("home/~past")), ["monday"]);
    assert!(!other.path().join("home/.snapshots").exists());
    let none = Mount::new(netns, CELL, "127.0.0.1", folder, "none", &["--snapshots", "off"]);
    assert!(!none.path().join("home/.snapshots").exists());
}

fn whole_volume_goes_back(vos: &dyn Fn(&[&str]) -> String, home: &Path) {
    vos(&["snapshot", "restore", "home", "monday"]);
    until_equal("what the volume has", &vec!["to-ann".to_owned()], || names(&home.join("letters")));
    assert_eq!(fs::read_to_string(home.join("letters/to-ann")).unwrap(), "first words");
}

/// The names in a directory, sorted; empty if it does not exist.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
