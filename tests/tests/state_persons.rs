//! Persons in the audit log: root and another user act through a cell's state directory and with its key file.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use afs_rpc::Person;
use andrew_tests::live::cell::{Cell, CellOptions, andrew, command};
use andrew_tests::live::loopback::own_address;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::user::User;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

/// An account that every machine has.
const DAEMON: u32 = 1;

#[test]
fn what_is_done_through_the_state_directory_has_the_persons_name_in_the_audit_log() {
    let scratch = Scratch::new("state-persons");
    let _watchdog = Watchdog::new("state_persons", seconds(120), || ());
    let (netns, servers) = (Netns::machine(), own_address(1).to_string());
    let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at(&servers, "rl"));
    let state = cell.state().to_owned();
    let shown = state.to_str().unwrap();
    drop(command(&netns, &["pts", "--state", shown, "creategroup", "persons"]));
    for words in
        [&["pts", "createuser", "alice"][..], &["revoke", "alice", "--lock"], &["drive", "use", "local"]]
    {
        logged_in(&netns, &[words, &["--state", shown]].concat());
    }
    create_as_root(&netns, shown);
    create_as_daemon(&netns, scratch.path(), &state, &servers);
    cell.stop();

    let changes = records(&state);
    let by_key = changes.iter().filter(|record| record["who"] == "(cell key)");
    let people = |is_it: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let found = by_key.clone().filter(|record| is_it(record));
        found.map(|record| record["person"].as_str().unwrap_or("nobody").to_owned()).collect()
    };
    let [by_root, by_sudo] = people_as_root();
    let by_login = if has_logins(&netns) { "1 daemon" } else { &by_root };
    for (object, person) in [
        ("persons", by_root.as_str()),
        ("alice", by_login),
        ("alice, with their ways to log in", by_login),
        ("local", by_login),
    ] {
        let found = people(&|record| record["object"] == object);
        assert_eq!(found, [person], "{object}, by the control socket: {changes:#?}");
    }
    let created = people(&|record| record["call"] == "CreateVolume");
    assert!(created.ends_with(&[by_root, by_sudo, "1 daemon".into()]), "{created:?}");
}

const LOG_IN: &str = "{ echo 1 > /proc/self/loginuid; }";

/// Runs a command as root in a login session of `daemon`, where the kernel knows of login sessions.
fn logged_in(netns: &Netns, words: &[&str]) {
    let mut command = netns.command("sh");
    command.args(["-c", &format!("{LOG_IN} 2>/dev/null; exec \"$0\" \"$@\"")]).arg(andrew()).args(words);
    drop(run(command, seconds(60)));
}

fn has_logins(netns: &Netns) -> bool {
    netns.command("sh").args(["-c", LOG_IN]).status().unwrap().success()
}

fn create_as_root(netns: &Netns, state: &str) {
    for (name, sudo) in [("of.root", None), ("of.sudo", Some(DAEMON.to_string()))] {
        let mut command = netns.command(andrew());
        command.args(["vos", "--state", state, "create", name]).env_remove("SUDO_UID");
        command.envs(sudo.map(|uid| ("SUDO_UID", uid)));
        drop(run(command, seconds(60)));
    }
}

/// Another user has a copy of the cell's keys.
fn create_as_daemon(netns: &Netns, folder: &Path, state: &Path, servers: &str) {
    let user = User::known(netns, folder, "daemon", DAEMON);
    fs::create_dir(user.home()).unwrap();
    let keys = user.home().join("KeyFileExt");
    fs::copy(state.join("keys/KeyFileExt"), &keys).unwrap();
    for path in [user.home(), &keys] {
        chown(path, Some(DAEMON), Some(DAEMON)).unwrap();
    }
    let key_file = keys.to_str().unwrap();
    let as_cell = ["vos", "--servers", servers, "--localauth", "--key-file", key_file, "create", "of.daemon"];
    drop(user.andrew(&as_cell));
}

/// Who root is, without and with sudo, where nobody has logged in. Else the login says it.
fn people_as_root() -> [String; 2] {
    let login = fs::read_to_string("/proc/self/loginuid").unwrap_or_default();
    let nobody = login.is_empty() || login == u32::MAX.to_string();
    let of_login = || Person::of_user(login.parse().unwrap(), name_of(&login).as_deref()).to_string();
    if nobody { ["0 root".into(), "1 daemon".into()] } else { [of_login(), of_login()] }
}

fn name_of(uid: &str) -> Option<String> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let of_uid = |line: &&str| line.split(':').nth(2) == Some(uid);
    accounts.lines().find(of_uid).and_then(|line| line.split(':').next()).map(str::to_owned)
}

fn records(state: &Path) -> Vec<Value> {
    let text = fs::read_to_string(state.join("audit.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
