//! A part of the gate of programs: CPython's tests, copies of trees and an installation by pip, on the mounts beside the machine's disk.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use andrew_tests::live::cell::andrew;
use andrew_tests::live::needs::{Need, all_there, root};
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

/// `scripts/programs` with these words, in a folder that every user may enter.
fn programs(scratch: &Scratch, words: &[&str]) -> Output {
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Without `__pycache__` in the project's folder; Debian's Python is the one whose tests are installed.
    let mut command = Command::new("/usr/bin/python3");
    command.arg("-B").arg(root().join("scripts/programs")).args(words).arg("--json");
    command.arg("--andrew").arg(andrew()).arg("--scratch").arg(scratch.path().join("gate"));
    run_any(command, seconds(850))
}

#[test]
fn programs_of_others_differ_from_the_disk_only_where_the_list_says_so() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Copiers, Need::PythonTests]) {
        return;
    }
    let scratch = Scratch::new("programs");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("programs", seconds(900), move || unmount_below(&folder));
    // A mount with passthrough and one without, the one with leases; `make programs` has all kinds.
    let done = programs(&scratch, &["--brief", "--mount", "shared", "lease"]);
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{complaint}");
    let said: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    for suite in ["copies", "cpython", "work"] {
        let rows = said["figures"].as_array().unwrap().iter().filter(|row| row["suite"] == suite);
        let passed: Vec<u64> = rows.map(|row| row["passed"].as_u64().unwrap()).collect();
        assert_eq!(passed.len(), 2, "{suite}: {said}");
        assert!(passed.iter().all(|&passed| passed > 0), "{suite}: {said}");
    }
}

/// A list that allows nothing, or too much, is a fault: one of a line that says so of a case that is the same everywhere.
#[test]
fn what_is_not_in_the_list_or_no_longer_differs_fails() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Copiers, Need::PythonTests]) {
        return;
    }
    let scratch = Scratch::new("programs-list");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("programs-list", seconds(900), move || unmount_below(&folder));
    let list = scratch.path().join("list.toml");
    let line =
        "[[difference]]\nsuite = \"copies\"\ncases = [\"cp in\"]\nwhen = \"always\"\nreason = \"a test\"\n";
    fs::write(&list, line).unwrap();
    let words = ["--only", "copies", "--mount", "shared", "--list", path(&list)];
    let done = programs(&scratch, &words);
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("cp in no longer differs"), "{complaint}");
    assert!(complaint.contains("extended attributes: "), "{complaint}");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
