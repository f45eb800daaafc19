//! The scripts of `tests/peers`: their messages when something is missing, and that they leave no part of a cell
//! behind.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use andrew_tests::live::needs::{Need, all_there, peer};
use andrew_tests::live::process::{run, run_any, seconds};
use andrew_tests::live::scratch::Scratch;

#[test]
fn errors_name_the_missing_cell_or_host() {
    if !all_there(&[Need::Root, Need::OpenAfs, Need::Guest]) {
        return;
    }
    let scratch = Scratch::new("peers-errors");
    let hosts = Scripted { number: 1, state: scratch.path() };
    refused(hosts.cell(&["status"]), "no cell is here");
    refused(hosts.cell(&["run", "cl1", "true"]), "no cell is here");
    refused(hosts.cell(&["umount", "x"]), "no cell is here");
    let state = scratch.path().to_str().unwrap();
    let guest = ["run", "--state", state, "--bridge", "none", "--ip", "10.1.1.1/24", "--afs-cell", "x"];
    let mut command = Command::new(peer("guest"));
    command.args(guest).args(["--vlserver", "10.1.1.2", "--", "true"]);
    refused(command, "no image is here");

    let mut command = Command::new(peer("guest"));
    command.args([
        "run",
        "--state",
        state,
        "--bridge",
        "none",
        "--ip",
        "10.1.1.1/24",
        "--afs-cell",
        "x",
        "--",
        "true",
    ]);
    refused(command, "--afs-cell needs --vlserver");
    let lab = |program: &Path| {
        let mut command = Command::new(peer("nfs-lab"));
        command.args(["--guest", state, "--out", state, "--state"]).arg(scratch.path().join("lab"));
        command.arg("--andrew").arg(program).args(["--prefix", "peer1", "--", "howard88.table11"]);
        command
    };
    refused(lab(Path::new("/nowhere/andrew")), "no such program");
    refused(lab(Path::new("/bin/true")), "no image by these scripts is here");

    // Hosts, and a state folder that is in use.
    let _ = run(hosts.cell(&["client-only", "--servers", "10.1.1.2"]), seconds(120));
    refused(hosts.cell(&["client-only", "--servers", "10.1.1.2"]), "a cell is here already");
    let elsewhere = scratch.path().join("elsewhere");
    let other = Scripted { number: 1, state: &elsewhere };
    refused(
        other.cell(&["client-only", "--servers", "10.1.1.2"]),
        "hosts with this --prefix are there already",
    );
    assert!(!elsewhere.exists());
    refused(hosts.cell(&["run", "cl3", "true"]), "no host cl3; there are: cl1 cl2");
    refused(hosts.cell(&["run", "cl1"]), "the program is missing");
    refused(hosts.cell(&["umount", "x"]), "no host of this cell has mounted it");
    let _ = run(hosts.cell(&["down"]), seconds(120));
    assert_eq!(hosts.left(), Vec::<String>::new());
}

/// A program's output and exit status are the result of `run`, and each host has partitions of its own.
#[test]
fn programs_run_on_their_hosts() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("peers-hosts");
    let hosts = Scripted { number: 2, state: scratch.path() };
    let _ = run(hosts.cell(&["client-only", "--servers", "10.1.1.2"]), seconds(120));
    let script = "hostname; ip -4 -o addr show eth0; touch /vicepa/$(hostname); ls /vicepa; cat /etc/openafs/ThisCell; exit 3";
    let output = run_any(hosts.cell(&["run", "cl2", "sh", "-c", script]), seconds(60));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        matches!(lines.as_slice(), ["cl2", address, "cl2", "example.test"] if address.contains("10.199.2.22/24")),
        "{said}"
    );
    assert_eq!(run(hosts.cell(&["run", "cl1", "ls", "/vicepa"]), seconds(60)), "");
    let _ = run(hosts.cell(&["down"]), seconds(120));
    assert_eq!(hosts.left(), Vec::<String>::new());
    assert!(!Path::new("/vicepa/cl2").exists());
}

/// The remains of a killed run: processes on hosts, one of them without a name, and no list of the hosts.
#[test]
fn the_remains_of_a_killed_run_are_removed() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("peers-down");
    let hosts = Scripted { number: 3, state: scratch.path() };
    let _ = run(hosts.cell(&["client-only", "--servers", "10.1.1.2"]), seconds(120));
    let _ = run(
        hosts.cell(&["run", "cl1", "sh", "-c", "trap '' TERM; sleep 1000 >/dev/null 2>&1 &"]),
        seconds(60),
    );
    let netns = |host: &str| format!("{}-{host}", hosts.prefix());
    let pids = ["cl1", "cl2"].map(|host| run(ip(&["netns", "pids", &netns(host)]), seconds(60))).concat();
    assert_eq!(pids.lines().count(), 3, "{pids}");
    assert_eq!(hosts.left().len(), 5, "{:?}", hosts.left());
    fs::remove_file(scratch.path().join("cell.json")).unwrap();
    // In a mount namespace of its own, which ended with the run: the namespace exists as long as its processes.
    let _ = run(ip(&["netns", "del", &netns("cl2")]), seconds(60));

    let _ = run(hosts.cell(&["down"]), seconds(120));
    assert_eq!(hosts.left(), Vec::<String>::new());
    // A process number that is used again belongs to another program; a process that has not been reaped has no command
    // line.
    let lines = pids.lines().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
    assert_eq!(lines.filter(|line| line.starts_with("sleep")).count(), 0);
    let _ = run(hosts.cell(&["down"]), seconds(60));
}

/// Hosts whose names and addresses no other test has.
struct Scripted<'a> {
    number: u8,
    state: &'a Path,
}

impl Scripted<'_> {
    fn prefix(&self) -> String {
        format!("peer{}", self.number)
    }

    fn cell(&self, words: &[&str]) -> Command {
        let mut command = Command::new(peer("openafs-cell"));
        command.args(["--prefix", &self.prefix(), "--net", &format!("10.199.{}", self.number)]);
        command.arg("--state").arg(self.state).args(words);
        command
    }

    /// Namespaces, cables and bridges that exist.
    fn left(&self) -> Vec<String> {
        let names =
            |folder| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let all = names("/run/netns").chain(names("/sys/class/net"));
        all.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with(&self.prefix())).collect()
    }
}

fn refused(command: Command, why: &str) {
    let Output { status, stderr, .. } = run_any(command, seconds(60));
    let said = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && said.contains(why) && !said.contains("Traceback"), "{status}: {said}");
}

fn ip(words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(words);
    command
}
