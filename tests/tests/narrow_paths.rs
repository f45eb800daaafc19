//! A machine behind a network that swallows large packets without a word, as tunnels do.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use andrew_tests::live::cell::{CELL, Cell, CellOptions};
use andrew_tests::live::lan::Lan;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::properties::property;
use andrew_tests::live::residents::{Home, Residents};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

const SERVER: u8 = 1;
const WIDE: u8 = 2;
const NARROW: u8 = 3;
/// Packets of AFS-3 have up to 1,472 bytes with the headers of IP and UDP.
const SWALLOWED_OVER: u32 = 1400;
const LARGEST: usize = 5_000_000;

#[test]
fn a_machine_behind_a_path_that_swallows_large_packets_reads_and_writes() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("narrow-paths");
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("narrow_paths", seconds(240), move || unmount_below(&below));
    let lan = Lan::new("narrow", &[SERVER, WIDE, NARROW]);
    let vice = lan.address(SERVER);
    let cell = Cell::serve(&lan.netns(SERVER), scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    lan.narrow(NARROW, SWALLOWED_OVER);
    let mount =
        |host, name| Mount::new(&lan.netns(host), CELL, &vice, scratch.path(), name, &["--allow-other"]);
    let (wide, narrow) = (mount(WIDE, "wide"), mount(NARROW, "narrow"));
    let home = Home { state: cell.state(), cell: CELL, servers: &vice, site: &[], top: narrow.path() };
    let residents = Residents::of_served(&lan.netns(NARROW), scratch.path(), &home);
    files_pass(narrow.path(), wide.path(), "narrow to wide");
    files_pass(wide.path(), narrow.path(), "wide to narrow");
    for (what, mount) in [("narrow", &narrow), ("wide", &wide)] {
        let by_streams = ["stored", "fetched"].map(|how| by_streams(mount.path(), how));
        assert!(by_streams.iter().all(|bytes| *bytes >= LARGEST as u64), "{what}: {by_streams:?}");
    }
    residents.check();

    // A path that was wide until now.
    lan.narrow(WIDE, SWALLOWED_OVER);
    files_pass(wide.path(), narrow.path(), "both narrow");
    files_pass(narrow.path(), wide.path(), "both narrow, back");
    residents.check();
}

/// Bytes of files that a mount has stored or fetched over the data path.
fn by_streams(mount: &Path, how: &str) -> u64 {
    let counters: Value = serde_json::from_str(&property(mount, "afs.counters")).unwrap();
    counters["data_path"][format!("bytes_{how}")].as_u64().unwrap_or_else(|| panic!("{counters}"))
}

/// Files of many sizes, written at one machine and read at another.
fn files_pass(here: &Path, there: &Path, what: &str) {
    for len in [0, 1_000, 1_300, 30_000, 300_000, LARGEST] {
        let (name, data, began) = (format!("{what} {len}"), content(len), Instant::now());
        fs::write(here.join(&name), &data).unwrap();
        let written = began.elapsed();
        until_equal(&name, &Ok(data), || fs::read(there.join(&name)).map_err(|error| error.to_string()));
        eprintln!("{name}: written in {written:?}, read after {:?}", began.elapsed());
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}
