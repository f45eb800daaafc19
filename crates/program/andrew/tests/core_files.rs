//! Test that other users cannot see the memory of a server or a mount (keys, tokens, files).
#![allow(clippy::unwrap_used)]

use crate::home;

use home::{Home, free_ports};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// An ordinary user. Root may inspect every process, so that as root the programs run as this user.
const USER: u32 = 65_534;
/// Files of `/proc` that show a process's memory.
const MEMORY: [&str; 4] = ["mem", "environ", "maps", "auxv"];

/// Starts a program as an ordinary user in `folder`, with core files of any size.
fn started(folder: &Path, program: &Path, words: &[&str]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]).arg(program).args(words);
    command.current_dir(folder).env("HOME", folder).env("ANDREW_RUN", folder.join("run"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    if rustix::process::getuid().is_root() {
        command.uid(USER).gid(USER);
    }
    command.spawn().unwrap()
}

/// Files with a process's memory that the same user can open.
fn shown(folder: &Path, process: &Child) -> Vec<&'static str> {
    let opens = |name: &&&'static str| {
        let path = format!("/proc/{}/{name}", process.id());
        started(folder, Path::new("sh"), &["-c", ": 2>/dev/null <\"$1\"", "sh", &path])
            .wait()
            .unwrap()
            .success()
    };
    MEMORY.iter().filter(opens).copied().collect()
}

/// Whether a program that aborts leaves a core file, or would in another directory.
fn leaves_core(folder: &Path, mut process: Child) -> bool {
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let status = process.wait().unwrap();
    assert_eq!(status.signal(), Some(6), "{status}");
    let is_core = |name: &str| name == "core" || name.starts_with("core.");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let found = files.filter(|entry| entry.file_name().to_str().is_some_and(is_core)).count();
    status.core_dumped() || found > 0
}

fn first_line(process: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_server_that_aborts_leaves_no_core_file_and_nobody_looks_into_its_memory() {
    let home = Home::new();
    let folder = home.path();
    let andrew = folder.join("andrew");
    std::fs::copy(env!("CARGO_BIN_EXE_andrew"), &andrew).unwrap();
    if rustix::process::getuid().is_root() {
        chown(folder, Some(USER), Some(USER)).unwrap();
    }
    let base = free_ports().to_string();
    let mut server = started(folder, &andrew, &["serve", "--base-port", &base]);
    let said = first_line(&mut server);
    assert!(said.starts_with("cell andrew.local is served"), "{said}");
    assert_eq!(shown(folder, &server), Vec::<&str>::new());
    assert!(!leaves_core(folder, server));
    // Shows that the check works: an ordinary program in the same directory.
    let mut ordinary = started(folder, Path::new("sh"), &["-c", "echo; read line"]);
    first_line(&mut ordinary);
    let seen = shown(folder, &ordinary);
    assert!(seen.contains(&"environ"), "{seen:?}");
    if !leaves_core(folder, ordinary) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this machine lets no program leave a core file");
    }
}
