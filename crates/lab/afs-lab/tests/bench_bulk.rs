//! Tests of `andrew-lab bench bulk` on an ordinary directory: reports, refusals, and that nothing is left behind.
#![allow(clippy::unwrap_used)]

use crate::home;

use home::Home;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn every_size_is_stored_and_fetched_and_the_report_has_its_form() {
    let home = Home::new();
    fs::create_dir(home.file("files")).unwrap();
    let pid = std::process::id();
    let line = format!("bench bulk --dir files --size 1,300k --runs 2 --others --pid test={pid}");
    let said: Value = serde_json::from_str(&home.done(&format!("{line} --json"))).unwrap();
    assert_eq!((&said["runs"], &said["others_idle"]["calls"]), (&2.into(), &4000.into()), "{said}");
    let sizes = said["sizes"].as_array().unwrap();
    assert_eq!(
        sizes.iter().map(|size| size["size_bytes"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 300 << 10]
    );
    for size in sizes {
        let measured = size["measured"].as_array().unwrap();
        let operations: Vec<&str> = measured.iter().map(|one| one["operation"].as_str().unwrap()).collect();
        assert_eq!(operations, ["store", "cold_fetch", "warm_fetch"]);
        assert_eq!(
            (&measured[1]["cold_by"], &measured[1]["way"]),
            (&"pages_dropped".into(), &"cached".into())
        );
        for one in measured {
            assert_eq!((&one["directory"], &one["processes"][0]["name"]), (&"files".into(), &"test".into()));
            for value in ["elapsed_seconds", "mb_per_second", "user_seconds", "system_seconds"] {
                let [low, high] = ["min", "max"].map(|end| one[value][end].as_f64().unwrap());
                assert!(low >= 0.0 && low <= high, "{value}: {one}");
            }
        }
    }
    let text = home.done(&line);
    assert!(
        text.contains("\n300.0 KiB\n  in files\n    store ") && text.contains("    warm fetch, cached "),
        "{text}"
    );
    assert_eq!(entries(&home.file("files")), 0);
}

#[test]
fn wrong_options_are_one_line_and_status_2() {
    let home = Home::new();
    let see = "see `andrew-lab bench bulk --help`";
    for (line, want) in [
        ("", format!("the following required arguments were not provided: --dir <DIR>; {see}")),
        ("--dir nowhere", "nowhere is not a directory; give an existing one with --dir".into()),
        (
            "--dir . --read-dir nowhere",
            "nowhere is not a directory; give an existing one with --read-dir".into(),
        ),
        (
            "--dir . --size 1M,0",
            format!("invalid value '0' for '--size <SIZE>': a file to measure has at least one byte; {see}"),
        ),
        ("--dir . --runs 0", format!("invalid value '0' for '--runs <N>': 0 is not in 1..=1000; {see}")),
        (
            "--dir . --pid server",
            format!("invalid value 'server' for '--pid <NAME=PID>': 'server' is not like client=4711; {see}"),
        ),
    ] {
        assert_eq!(home.refused(2, &format!("bench bulk {line}")), format!("andrew-lab: {want}\n"));
    }
    let ended = home.refused(2, "bench bulk --dir . --pid server=4194305");
    assert!(ended.starts_with("andrew-lab: bench: process 4194305: "), "{ended}");
    assert_eq!(entries(home.path()), 0);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let home = Home::new();
    let disk = home.file("disk");
    fs::create_dir(&disk).unwrap();
    let mount = "mount -t tmpfs -o size=2m none disk";
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.current_dir(home.path()).env("HOME", home.path()).output().unwrap()
    };
    if !namespace(mount).status.success() {
        eprintln!("SKIPPED: user namespaces, in which a small disk is mounted, are not permitted");
        return;
    }
    let lab = crate::PROGRAM;
    let output = namespace(&format!(
        "{mount} && {lab} bench bulk --dir disk --size 1M,4M --runs 1; echo $?; ls -A disk"
    ));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("andrew-lab: bench: write disk/andrew-bulk-") && said.contains("No space left"),
        "{said}"
    );
    assert_eq!((said.lines().count(), &*String::from_utf8(output.stdout).unwrap()), (1, "1\n"));
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let home = Home::new();
    fs::create_dir(home.file("files")).unwrap();
    for signal in ["INT", "TERM"] {
        let mut command =
            home.command(&["bench", "bulk", "--dir", "files", "--size", "1M", "--runs", "1000"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The signals are caught before anything is written.
        while entries(&home.file("files")) == 0 {
            std::thread::yield_now();
        }
        assert!(
            Command::new("kill")
                .args([format!("-{signal}"), child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, "andrew-lab: bench: interrupted; what was written is removed\n");
        assert!(output.stdout.is_empty());
        assert_eq!(entries(&home.file("files")), 0);
    }
}

#[test]
fn its_help_page_and_completions_come_from_the_definitions() {
    let home = Home::new();
    let help = home.done("bench bulk --help");
    assert!(
        help.contains("Usage: andrew-lab bench bulk")
            && help.contains("--read-dir")
            && help.contains("--json")
    );
    home.done("man --out pages");
    let page = fs::read_to_string(home.file("pages/andrew-lab-bench-bulk.1")).unwrap();
    assert!(page.contains("cold fetch"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.done(&format!("completions {shell}")).contains("read-dir"), "{shell}");
    }
}
