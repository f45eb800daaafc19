//! The scripts of benchmarks: each explains itself, and the one of large files measures what it says, briefly.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use andrew_tests::live::cell::andrew;
use andrew_tests::live::needs::{Need, all_there, root};
use andrew_tests::live::process::{run, run_any, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

fn scripts() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("scripts")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with("benchmarks")).collect()
}

/// Without `__pycache__` in the project's folder.
fn python(words: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("-B").args(words);
    command
}

#[test]
fn every_script_explains_itself_and_refuses_what_it_does_not_know() {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("SKIPPED: no python3");
        return;
    }
    let scripts = scripts();
    assert!(scripts.len() >= 8, "{scripts:?}");
    for script in scripts {
        let path = script.to_str().unwrap();
        let said = run(python(&[path, "--help"]), seconds(60));
        let name = script.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(&format!("scripts/{name} ")), "{said}");
        let refused = run_any(python(&[path, "--nonsense"]), seconds(60));
        let complaint = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && !complaint.contains("Traceback"), "{complaint}");
    }
}

#[test]
fn large_files_are_fetched_by_each_way_beside_openafs_and_everything_is_taken_down() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("benchmarks-bulk");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("benchmarks_bulk", seconds(400), move || unmount_below(&folder));
    let script = root().join("scripts/benchmarks-bulk");
    let state = scratch.path().join("state");
    let words = ["--brief", "--only", "fetch,others", "--json", "--scratch", state.to_str().unwrap()];
    let mut command = python(&[script.to_str().unwrap()]);
    command.args(words).arg("--andrew").arg(andrew());
    let said: serde_json::Value = serde_json::from_str(&run(command, seconds(350))).unwrap();
    for size in ["1M", "4M"] {
        for way in ["OpenAFS, cached", "cached", "bypass alone", "data path alone", "both"] {
            let row = &said[format!("{size}, {way}: elapsed, s")];
            assert!(row[0][0].as_f64().unwrap() > 0.0, "{size}, {way}: {said}");
        }
    }
    assert!(said["p99 beside a stream / idle"][0][0].as_f64().unwrap() > 0.0, "{said}");
    let hosts = fs::read_dir("/run/netns").into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = hosts.filter(|host| host.to_str().unwrap().starts_with("bb-")).collect();
    assert!(left.is_empty(), "{left:?}");
}
