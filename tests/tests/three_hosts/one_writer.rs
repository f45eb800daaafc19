//! A read-write volume has one writer: a conversion by force while the old server still runs, and one while it is down and comes
//! back with its volume.

use std::path::Path;
use std::time::Instant;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

use super::changed_keys::Cell;
use super::server::Server;

const NUMBER: u8 = 34;
const ALICE: u32 = 61_032;

pub fn check(scratch: &Scratch) {
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("one_writer", seconds(400), move || unmount_below(&folder));
    let bridge = Bridge::new(NUMBER);
    let mut cell = Cell::new(&bridge, scratch.path());
    let netns = cell.hosts[0].host.netns().alias();
    let alice = User::new(&netns, &cell.hosts[0].state(), scratch.path(), "alice", ALICE);
    cell.fill(&alice);
    for (home, copy) in [("three", 1), ("two", 0)] {
        let site = cell.hosts[copy].address().to_owned();
        cell.hosts[0].andrew(&["vos", "addsite", &site, "a", home]);
        cell.hosts[0].andrew(&["vos", "release", home]);
    }

    // The old server runs: it has no change that the new one does not have after the conversion began.
    let script = scratch.path().join("work.sh");
    std::fs::write(
        &script,
        "n=0; until test -e $STOP; do n=$((n+1)); echo $n > $A/$H/count || exit 3; \
         cat $A/$H/diary > /dev/null || exit 4; echo $n >> $A/$H/all || exit 5; echo $n > $STOP.count; done",
    )
    .unwrap();
    let first = work(&cell, &alice, &script, "three");
    counted(&first.stop, 3);
    convert(&cell, 1, "three");
    let at = read(&first.stop.with_extension("count"));
    counted(&first.stop, at + 3);
    until("the old volume off line", seconds(30), || is_off_line(&cell.hosts[0], &cell.hosts[2], "three"));
    counted(&first.stop, read(&first.stop.with_extension("count")) + 3);
    let last = first.end();
    assert_eq!(cell.content(&alice, "three/count"), last, "what was acknowledged last is read");
    // The file began after the release. Each line that was acknowledged when the conversion was over is in the volume of now.
    let all: Vec<u32> = cell.content(&alice, "three/all").lines().map(|line| line.parse().unwrap()).collect();
    let (first, last) = (all[0], *all.last().unwrap());
    println!("{at} lines when the conversion was over; the new volume has {first} to {last}");
    assert!(first <= at + 1, "lines after {at} are in the old volume alone, up to {first}");
    assert_eq!(all, Vec::from_iter(first..=last));

    // The old server is down, and comes back with its volume.
    let mut work = self::work(&cell, &alice, &script, "two");
    counted(&work.stop, 3);
    work.end();
    cell.hosts[1].process.as_mut().unwrap().kill();
    convert(&cell, 0, "two");
    work = self::work(&cell, &alice, &script, "two");
    counted(&work.stop, 3);
    let begun = Instant::now();
    cell.hosts[1].serve_as_configured();
    until("the returned volume off line", seconds(30), || is_off_line(&cell.hosts[0], &cell.hosts[1], "two"));
    println!("the returned server has its volume off line {:?} after its start", begun.elapsed());
    counted(&work.stop, read(&work.stop.with_extension("count")) + 3);
    let last = work.end();
    assert_eq!(cell.content(&alice, "two/count"), last, "no other copy was written to or read");
    // It forgets neither in a restart, nor what it has.
    cell.hosts[1].process.as_mut().unwrap().kill();
    cell.hosts[1].serve_as_configured();
    assert!(is_off_line(&cell.hosts[0], &cell.hosts[1], "two").is_some());
    cell.hosts[0].andrew(&["down"]);
}

/// A user's program that writes and reads in a home, and ends at the first error.
fn work(cell: &Cell, alice: &User<'_>, script: &Path, home: &str) -> super::changed_keys::Work {
    let stop = cell.hosts[0].home.join("stop");
    let _ = std::fs::remove_file(&stop);
    let count = stop.with_extension("count");
    std::fs::write(&count, "0").unwrap();
    // The user writes the count.
    std::os::unix::fs::chown(&count, Some(ALICE), Some(ALICE)).unwrap();
    let mut command = alice.command("sh", &[script.to_str().unwrap()]);
    command.env("A", &cell.mount).env("H", home).env("STOP", &stop);
    super::changed_keys::Work { child: command.spawn().unwrap(), stop }
}

fn convert(cell: &Cell, to: usize, home: &str) {
    let site = cell.hosts[to].address().to_owned();
    cell.hosts[0].andrew(&["vos", "convertROtoRW", &site, "a", home, "--force"]);
}

fn is_off_line(by: &Server, at: &Server, home: &str) -> Option<()> {
    let listed = by.andrew(&["vos", "listvol", at.address(), "a"]);
    let line = listed.lines().find(|line| line.split_whitespace().next() == Some(home))?;
    line.contains("Off-line").then_some(())
}

fn read(count: &Path) -> u32 {
    std::fs::read_to_string(count).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Waits until the program has counted so far.
fn counted(stop: &Path, least: u32) {
    until("the user's program", seconds(60), || (read(&stop.with_extension("count")) >= least).then_some(()));
}
