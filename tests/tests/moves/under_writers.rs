//! A volume is moved back and forth while clients write to it.

use std::time::{SystemTime, UNIX_EPOCH};

use andrew_tests::live::cell::CELL;
use andrew_tests::live::fleet::Fleet;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

use crate::moves::writer::Writer;

const MOVES: usize = 20;
/// Operations of each writer before the first move, and of Andrew's writer between moves.
const BEFORE: u64 = 250;
const BETWEEN: u64 = 25;

/// In the unit of the writers' histories.
fn seconds_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
fn twenty_moves_under_our_client_and_openafs_lose_nothing_and_nobody_sees_an_error() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("moves-under-writers");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("moves_under_writers", seconds(600), move || unmount_below(&folder));
    let hosts = Hosts::around_our_cell(scratch.path(), 24, CELL);
    hosts.add("vice2", 7);
    let both = [("vice", 5), ("vice2", 7)].map(|(host, number)| (hosts.netns(host), hosts.address(number)));
    let fleet = Fleet::start(&scratch.folder("cell"), both.into());
    fleet.make_volume(0, "v");
    let vice = hosts.address(5);
    let mount = |name| Mount::new(&hosts.netns("venus"), CELL, &vice, scratch.path(), name, &[]);
    let (ours, theirs) = (mount("ours"), scratch.folder("theirs"));
    hosts.mount("cl1", &theirs);
    let top = theirs.join(CELL).join("v");
    let writers = [Writer::start(&ours.path().join("v/ours"), 1), Writer::start(&top.join("theirs"), 2)];
    writers.iter().for_each(|writer| writer.wait_for_more(BEFORE));

    let (mut busy, mut ended) = (Vec::new(), Vec::new());
    for turn in 0..MOVES {
        let to = fleet.address((turn + 1) % 2);
        let moved = fleet.vos(&["move", "v", to, "a"]);
        busy.push(moved["busy_ms"].as_u64().unwrap());
        ended.push(seconds_now());
        writers[0].wait_for_more(BETWEEN);
        // OpenAFS's client waits for some seconds after each refusal because a volume is busy.
        writers[1].wait_for_more(if turn % 5 == 4 { BETWEEN } else { 0 });
    }
    let written = writers.map(Writer::finish);
    for (who, written) in ["ours", "theirs"].iter().zip(&written) {
        let (count, bytes, slowest) = (written.count, written.bytes(), written.slowest);
        eprintln!("{who}: {count} operations, {bytes} bytes at the end, the slowest took {slowest:.2?}");
        assert_eq!(written.errors, Vec::<String>::new(), "{who}");
    }
    eprintln!("the volume was busy for {busy:?} ms");
    eprintln!("the moves ended at {ended:?}");
    let fresh = mount("fresh");
    let nothing = Vec::<String>::new();
    assert_eq!(written[1].differences(&top.join("theirs")), nothing);
    for mount in [&fresh, &ours] {
        let at = |name| mount.path().join("v").join(name);
        assert_eq!(written[0].differences(&at("ours")), nothing);
        // OpenAFS's client stores some time after `close` has returned.
        until_equal("what OpenAFS's client wrote", &nothing, || written[1].differences(&at("theirs")));
    }
    hosts.umount(&theirs);
}
