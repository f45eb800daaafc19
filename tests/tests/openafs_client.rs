//! OpenAFS's own client, unmodified, on an Andrew cell.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;

use andrew_tests::live::cell::{CELL, Cell, CellOptions};
use andrew_tests::live::exercise::{Views, everything};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

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
    let _cell = Cell::serve(&hosts.netns("vice"), scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    let (first, second) = (scratch.folder("first"), scratch.folder("second"));
    hosts.mount("cl1", &first);
    hosts.mount("cl2", &second);
    let ours = Mount::new(&hosts.netns("venus"), CELL, &vice, scratch.path(), "ours", &[]);
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
    // A file that is modified back and forth many times is never stale for long: the server breaks the promise.
    for round in 0..20 {
        let (here, there) =
            if round % 2 == 0 { (&first_top, &second_top) } else { (&second_top, &first_top) };
        fs::write(here.join("ball"), format!("round {round}")).unwrap();
        until_equal("ball", &Ok(format!("round {round}")), || {
            fs::read_to_string(there.join("ball")).map_err(|error| error.to_string())
        });
    }
    hosts.umount(&first);
    hosts.umount(&second);
}
