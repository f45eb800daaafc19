//! A release with a process killed at every step of it: every site has one complete state, the old one or the new one.

use std::path::Path;
use std::{fs, io};

use andrew_tests::live::fleet::Fleet;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::wait::until;
use serde_json::Value;

use crate::moves::setup::{DATABASES, SOURCE, Setup, TARGET, Victim};

/// Files of a volume.
const FILES: usize = 30;
const TRIES: usize = 5;

fn volume(step: &str) -> String {
    format!("r-{step}")
}

/// A volume with two sites in its old state. Every other volume has a third site, so that its clone is kept.
pub fn prepare(fleet: &Fleet, number: usize, step: &str) {
    let name = volume(step);
    fleet.make_volume(SOURCE, &name);
    write(&fleet.owner().join(&name), "old").unwrap();
    let first = if number.is_multiple_of(2) { SOURCE } else { DATABASES };
    for site in [first, TARGET] {
        let _ = fleet.vos(&["addsite", fleet.address(site), "a", &name]);
    }
    let _ = fleet.vos(&["release", &name]);
}

/// A file's contents: its number, and the state it belongs to.
fn line(state: &str, number: usize) -> String {
    format!("<{state} state of file {number}>")
}

fn write(folder: &Path, state: &str) -> io::Result<()> {
    let one = |number| fs::write(folder.join(format!("file{number}")), line(state, number));
    (0..FILES).try_for_each(one)
}

/// Releases the new state of the volume of a step, and kills the victim when the journal shows the step.
pub fn kill(setup: &mut Setup, step: &str, victim: Victim) {
    let name = volume(step);
    // The client may consider the killed server down a little longer.
    until("the new state", seconds(60), || write(&setup.path(&name), "new").ok());
    let words: &[&str] =
        if step == "back-out" { &["release", &name, "--back-out"] } else { &["release", &name, "--force"] };
    let caught = (0..TRIES).any(|_| {
        setup.begin(&name, words);
        setup.wait_for_step(&name, step)
    });
    assert!(caught, "step {step} of a release was never seen");
    setup.kill(victim);
}

/// Each site has the old state or the new one, and after one more release the new one.
pub fn check(setup: &mut Setup, step: &str) {
    let name = volume(step);
    for (server, state) in states(setup, &name) {
        assert!(state.is_some(), "the copy of {name} on {server} is not whole");
    }
    let _ = setup.fleet.vos(&["release", &name]);
    for (server, state) in states(setup, &name) {
        assert_eq!(state, Some("new"), "{name} on {server} after one more release");
    }
}

/// The state on each server with a copy, read from a dump of it; `None` is a mixture.
fn states(setup: &Setup, name: &str) -> Vec<(String, Option<&'static str>)> {
    let entry = setup.fleet.vos(&["listvldb", name]);
    let is_copy = |site: &&Value| site["role"] == "read-only" && site["state"] != "Not released";
    let sites = entry[0]["sites"].as_array().unwrap().iter().filter(is_copy);
    let servers = sites.map(|site| site["server"].as_str().unwrap().to_owned());
    servers.map(|server| (server.clone(), state(setup, name, &server))).collect()
}

fn state(setup: &Setup, name: &str, server: &str) -> Option<&'static str> {
    let copy = format!("{name}.readonly");
    let words = ["vos", "dump", &copy, "--server", server, "--partition", "a", "--file", "-"];
    let dump = run(setup.fleet.tool(DATABASES, &words), seconds(60));
    let has = |state: &str| (0..FILES).filter(|number| dump.contains(&line(state, *number))).count();
    match (has("old"), has("new")) {
        (FILES, 0) => Some("old"),
        (0, FILES) => Some("new"),
        _ => None,
    }
}
