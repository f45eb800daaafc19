//! OpenAFS's own client, unmodified, on an Andrew cell.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;

use afs_sim::SimRng;
use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::exercise::{Views, everything};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::residents::{Home, Residents};
use andrew_tests::live::saver::{Saver, Stopwatch};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;
use andrew_tests::sim::history::History;

const NEEDS: &[Need] = &[Need::Root, Need::Fuse, Need::OpenAfs];

#[test]
fn openafs_clients_and_ours_work_in_our_cell() {
    if !all_there(NEEDS) {
        return;
    }
    let scratch = Scratch::new("openafs-client");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("openafs_client", seconds(600), move || unmount_below(&folder));
    let hosts = Hosts::around_our_cell(scratch.path(), 11, CELL);
    let vice = hosts.address(5);
    let cell = Cell::serve(&hosts.netns("vice"), scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    let (first, second) = (scratch.folder("first"), scratch.folder("second"));
    hosts.mount("cl1", &first);
    hosts.mount("cl2", &second);
    let ours = Mount::new(&hosts.netns("venus"), CELL, &vice, scratch.path(), "ours", &["--allow-other"]);
    let home = Home { state: cell.state(), cell: CELL, servers: &vice, site: &[], top: ours.path() };
    let residents = Residents::of_served(&hosts.netns("venus"), scratch.path(), &home);
    let (first_top, second_top) = (first.join(CELL), second.join(CELL));

    // One alone, two together, and each with Andrew's client.
    for (name, here, there) in [
        ("alone", &first_top, &first_top),
        ("together", &first_top, &second_top),
        ("to-ours", &first_top, &ours.path().to_owned()),
        ("from-ours", &ours.path().to_owned(), &first_top),
    ] {
        eprintln!("{name}");
        fs::create_dir(here.join(name)).unwrap();
        let seen = there.join(name);
        until_equal("the folder", &true, || seen.is_dir());
        everything(&Views::new(&here.join(name), &seen));
        fs::remove_dir(here.join(name)).unwrap();
    }
    mounts_of_every_kind_save_and_read_the_same_files(&hosts, &vice, &scratch, [ours.path(), &first_top]);
    // A file that is modified back and forth many times is never stale for long: the server breaks the promise.
    for round in 0..20 {
        let (here, there) =
            if round % 2 == 0 { (&first_top, &second_top) } else { (&second_top, &first_top) };
        fs::write(here.join("ball"), format!("round {round}")).unwrap();
        until_equal("ball", &Ok(format!("round {round}")), || {
            fs::read_to_string(there.join("ball")).map_err(|error| error.to_string())
        });
    }
    residents.check();
    hosts.umount(&first);
    hosts.umount(&second);
}

/// Andrew's mounts with leases and without them, and OpenAFS's: what each sees of the others' files is checked against the model of
/// `tests/contents`.
fn mounts_of_every_kind_save_and_read_the_same_files(
    hosts: &Hosts,
    vice: &str,
    scratch: &Scratch,
    [ours, theirs]: [&Path; 2],
) {
    hosts.host("lessee", 7);
    let lessee = Mount::new(&hosts.netns("lessee"), CELL, vice, scratch.path(), "lessee", &["--lease"]);
    let history = History::new(Stopwatch::start());
    let tops = [ours, lessee.path(), theirs].map(|top| top.join("saved"));
    let savers = [0, 1, 2].map(|number| {
        let (top, history) = (tops[number].clone(), history.clone());
        Saver { number, top, history, is_late: number == 2 }
    });
    let (dirs, files) = (["dir0", "dir1"], ["file0", "file1", "file2"]);
    fs::create_dir(&tops[0]).unwrap();
    savers[0].prepare(&dirs, &files).unwrap();
    history.never_empty();
    until_equal("the last directory", &true, || tops[2].join("dir1/file2").exists());
    std::thread::scope(|scope| {
        for saver in &savers {
            let rng = SimRng::new(saver.number as u64);
            let (dirs, files) = (&dirs, &files);
            scope.spawn(move || saver.work(dirs, files, 40, rng).unwrap());
        }
    });
    history.check().unwrap_or_else(|what| panic!("{what}"));
    let told = command(&hosts.netns("lessee"), &["--json", "status"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let mounts = told["mounts"].as_array().unwrap();
    let its = mounts.iter().find(|mount| mount["directory"] == lessee.path().to_str().unwrap()).unwrap();
    assert!(its["leases"]["taken"].as_u64() > Some(0), "no lease was taken: {its}");
    drop(lessee);
    fs::remove_dir_all(&tops[0]).unwrap();
}
