//! Everything that takes part in a move is killed at every step of it, by the journal's own words.

use std::fs;

use andrew_tests::hostile::scribe::Scribes;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

use crate::ground::{DATABASES, Ground, SOURCE, TARGET, Victim};
use crate::released;
use crate::whole;

/// Tries to see a step before it has passed.
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
    let mut ground = Ground::new(name, scratch.path(), |fleet| {
        moved.iter().for_each(|step| fleet.make_volume(SOURCE, &volume(step)));
        released.iter().enumerate().for_each(|(number, step)| released::prepare(fleet, number, step));
    });
    let scribes: Vec<_> = moved.iter().map(|step| strike_a_move(&mut ground, step, victim)).collect();
    released.iter().for_each(|step| released::strike(&mut ground, step, victim));
    ground.settle();
    whole::check(&ground.fleet);
    let fresh = ground.mount("fresh");
    for (step, scribes) in moved.iter().zip(scribes) {
        scribes.finish().verify(&fresh.path().join(volume(step)).join("folder"));
    }
    drop(fresh);
    released.iter().for_each(|step| released::check(&mut ground, step));
    whole::check(&ground.fleet);
}

/// As the product has them, so that a new one is not forgotten.
fn steps(operation: &str) -> &'static [&'static str] {
    afs_admin::steps_of(operation).unwrap()
}

fn volume(step: &str) -> String {
    format!("m-{step}")
}

/// Moves the volume of a step, under a user, and kills when the step is in the journal.
fn strike_a_move(ground: &mut Ground, step: &str, victim: Victim) -> Scribes {
    let name = volume(step);
    let folder = ground.path(&name).join("folder");
    // The client may take the server that was killed before for dead a little longer.
    until("a folder", seconds(60), || (fs::create_dir(&folder).is_ok() || folder.is_dir()).then_some(()));
    let scribes = Scribes::start(&folder, 1, u64::from(step.as_bytes()[0]));
    scribes.wait_for_more(20);
    let caught = (0..TRIES).any(|_| {
        let to = elsewhere(ground, &name);
        ground.begin(&name, &["move", &name, &to, "a"]);
        if step == "undo" {
            fail(ground, &name);
        }
        ground.caught(&name, step)
    });
    assert!(caught, "step {step} of a move was never seen");
    ground.strike(victim);
    scribes.stop();
    scribes
}

/// The one of source and target where a volume is not.
fn elsewhere(ground: &Ground, name: &str) -> String {
    let entry = ground.fleet.vos(&["listvldb", name]);
    let here = entry[0]["sites"][0]["server"].as_str().unwrap().to_owned();
    let (source, target) = (ground.fleet.address(SOURCE), ground.fleet.address(TARGET));
    if here == source { target.to_owned() } else { source.to_owned() }
}

/// Makes a move fail before its switch: an administrator ends the transaction at its target.
fn fail(ground: &mut Ground, name: &str) {
    let entry = ground.fleet.vos(&["listvldb", name]);
    assert!(ground.caught(name, "send"), "the move of {name} was over before it could fail");
    ground.end_transaction(TARGET, entry[0]["read_write_id"].as_u64().unwrap());
}
