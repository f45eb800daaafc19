//! Every process that takes part in a move is killed at every step that the journal names.

use std::fs;

use andrew_tests::hostile::writers::Writers;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

use crate::moves::consistency;
use crate::moves::released;
use crate::moves::setup::{DATABASES, SOURCE, Setup, TARGET, Victim};

/// Attempts at observing a step before it is over.
const TRIES: usize = 5;

#[test]
fn tools_killed_at_every_step_leave_volumes_whole() {
    die("mv-tool", Victim::Tool);
}

#[test]
fn sources_killed_at_every_step_have_volumes_whole_afterwards() {
    die("mv-src", Victim::Server(SOURCE));
}

#[test]
fn targets_killed_at_every_step_have_volumes_whole_afterwards() {
    die("mv-dst", Victim::Server(TARGET));
}

#[test]
fn databases_killed_at_every_step_have_volumes_whole_afterwards() {
    die("mv-db", Victim::Server(DATABASES));
}

fn die(name: &'static str, victim: Victim) {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new(name);
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new(name, seconds(500), move || unmount_below(&folder));
    let (moved, released) = (steps("move"), steps("release"));
    let mut setup = Setup::new(name, scratch.path(), |fleet| {
        moved.iter().for_each(|step| fleet.make_volume(SOURCE, &volume(step)));
        released.iter().enumerate().for_each(|(number, step)| released::prepare(fleet, number, step));
    });
    let writers: Vec<_> = moved.iter().map(|step| kill_during_move(&mut setup, step, victim)).collect();
    released.iter().for_each(|step| released::kill(&mut setup, step, victim));
    setup.settle();
    consistency::check(&setup.fleet);
    let fresh = setup.mount("fresh");
    for (step, writers) in moved.iter().zip(writers) {
        writers.finish().verify(&fresh.path().join(volume(step)).join("folder"));
    }
    drop(fresh);
    released.iter().for_each(|step| released::check(&mut setup, step));
    consistency::check(&setup.fleet);
}

/// The journal's own list, so that a new step is covered.
fn steps(operation: &str) -> &'static [&'static str] {
    afs_admin::steps_of(operation).unwrap()
}

fn volume(step: &str) -> String {
    format!("m-{step}")
}

/// Moves the volume of a step while a user writes to it, and kills the victim when the journal shows the step.
fn kill_during_move(setup: &mut Setup, step: &str, victim: Victim) -> Writers {
    let name = volume(step);
    let folder = setup.path(&name).join("folder");
    // The client may consider the killed server down a little longer.
    until("a folder", seconds(60), || (fs::create_dir(&folder).is_ok() || folder.is_dir()).then_some(()));
    let writers = Writers::start(&folder, 1, u64::from(step.as_bytes()[0]));
    writers.wait_for_more(20);
    let caught = (0..TRIES).any(|_| {
        let to = elsewhere(setup, &name);
        setup.begin(&name, &["move", &name, &to, "a"]);
        if step == "undo" {
            fail(setup, &name);
        }
        setup.wait_for_step(&name, step)
    });
    assert!(caught, "step {step} of a move was never seen");
    setup.kill(victim);
    writers.stop();
    writers
}

/// The source or the target, whichever does not have the volume.
fn elsewhere(setup: &Setup, name: &str) -> String {
    let entry = setup.fleet.vos(&["listvldb", name]);
    let here = entry[0]["sites"][0]["server"].as_str().unwrap().to_owned();
    let (source, target) = (setup.fleet.address(SOURCE), setup.fleet.address(TARGET));
    if here == source { target.to_owned() } else { source.to_owned() }
}

/// Makes a move fail before its switch: an administrator aborts the transaction at its target.
fn fail(setup: &mut Setup, name: &str) {
    let entry = setup.fleet.vos(&["listvldb", name]);
    assert!(setup.wait_for_step(name, "send"), "the move of {name} was over before it could fail");
    setup.end_transaction(TARGET, entry[0]["read_write_id"].as_u64().unwrap());
}
