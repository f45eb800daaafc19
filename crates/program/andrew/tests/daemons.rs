//! Tests of daemons in the background: where their files are, and which signals stop them.
#![allow(clippy::unwrap_used)]

use crate::home;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use home::{Home, free_ports};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Process of a home directory whose command line has a word.
fn process(home: &Home, word: &str) -> Pid {
    let has = |process: &Path, file: &str, part: &str| {
        let text = fs::read(process.join(file)).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|word| word == part.as_bytes())
    };
    let of_home = format!("HOME={}", home.path().display());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mut found = processes.filter(|p| has(p, "environ", &of_home) && has(p, "cmdline", word));
    let number = found.find_map(|process| process.file_name()?.to_str()?.parse().ok());
    Pid::from_raw(number.unwrap()).unwrap()
}

/// A drive, which is stopped at the end of a test.
struct Drive(Pid);

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::TERM);
    }
}

/// Waits until a log has a text; nextest ends a test for which it never comes.
fn wait_for(log: &Path, text: &str) {
    while !fs::read_to_string(log).unwrap_or_default().contains(text) {
        std::thread::yield_now();
    }
}

#[test]
fn a_drive_in_the_background_stays_in_the_directory_that_it_was_given() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let started = home.done(&format!("drive serve --dir disks/one --listen {port} --detach --json"));
    let drive = Drive(process(&home, "disks/one"));
    let key = serde_json::from_str::<Value>(&started).unwrap()["join_key"].as_str().unwrap().to_owned();
    let seen = home.refused(2, &format!("drive add one --address {port} --join-key {key}"));
    assert!(seen.contains("every user of this machine can see"), "{seen}");
    afs_files::secret_file::write(&home.file("join-key"), key.as_bytes()).unwrap();
    home.done(&format!("drive add one --address {port} --join-key join-key"));
    let stores = || fs::read_dir(home.file("disks/one")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(stores().any(|name| name.to_str().is_some_and(|name| name.starts_with("store"))));
    let working_directory = fs::read_link(format!("/proc/{}/cwd", drive.0.as_raw_pid())).unwrap();
    assert_eq!(working_directory, Path::new("/"), "nothing of the path is relative to it");
}

#[test]
fn the_signal_of_a_terminal_that_is_gone_stops_nothing_in_the_background() {
    let home = Home::new();
    let base = free_ports();
    home.done(&format!("serve --state cell --base-port {base} --detach"));
    kill_process(process(&home, "serve"), Signal::HUP).unwrap();
    wait_for(&home.file("cell/log"), "signal 1");
    assert!(home.done(&format!("vos listvldb --servers localhost --base-port {base}")).contains("root.cell"));
    assert_eq!(home.done("down"), "cell andrew.local is down\n");
}

/// The file of the standard error of a process.
fn standard_error(process: Pid) -> PathBuf {
    fs::read_link(format!("/proc/{}/fd/2", process.as_raw_pid())).unwrap()
}

/// What an attacker has written into the log in years is played by a file with a hole.
fn fill(log: &Path) {
    fs::File::options().append(true).open(log).unwrap().set_len(16 << 20).unwrap();
}

#[test]
fn the_log_is_set_aside_at_a_start_and_while_its_process_runs_and_standard_error_goes_with_it() {
    let home = Home::new();
    let start = format!("serve --state cell --base-port {} --detach", free_ports());
    let log = home.file("cell/log");
    let older = |n: u32| home.file(&format!("cell/log.{n}"));
    home.done(&start);
    for n in 1..6 {
        fill(&log);
        let running = process(&home, "serve");
        kill_process(running, Signal::HUP).unwrap();
        while fs::metadata(&log).is_ok_and(|log| log.len() == 16 << 20) {
            std::thread::yield_now();
        }
        wait_for(&log, "signal 1");
        assert_eq!(fs::metadata(older(1)).unwrap().len(), 16 << 20, "round {n}");
        assert_eq!(standard_error(running), fs::canonicalize(&log).unwrap(), "round {n}");
    }
    home.done("down --state cell");
    fill(&log);
    home.done(&start);
    assert!(fs::metadata(&log).unwrap().len() < 1 << 20);
    let files = fs::read_dir(home.file("cell")).unwrap().flatten().map(|entry| entry.file_name());
    let mut logs: Vec<_> =
        files.filter(|name| name.to_str().is_some_and(|n| n == "log" || n.starts_with("log."))).collect();
    logs.sort();
    assert_eq!(logs, ["log", "log.1", "log.2", "log.3", "log.4"]);
    home.done("down --state cell");
}
