//! Mounts of ours on a cell of ours: each sees at once what the other has done.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::symlink;

use andrew_tests::live::cell::{CELL, Cell, CellOptions};
use andrew_tests::live::exercise::{Views, everything};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

#[test]
fn mounts_see_at_once_what_others_have_done() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("own-mounts");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("own_mounts", seconds(400), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-own");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    let (owner, guest) = (cell.mount().to_owned(), other.path().to_owned());
    for (name, here, there) in
        [("owner", &owner, &owner), ("to-guest", &owner, &guest), ("to-owner", &guest, &owner)]
    {
        // Anonymous may do in a folder what its list says, and a new folder has that of the one above.
        fs::create_dir(guest.join(name)).unwrap();
        everything(&Views::of_ours(&here.join(name), &there.join(name)));
        fs::remove_dir(here.join(name)).unwrap();
        assert!(!there.join(name).exists());
    }
    symlink("somewhere/else", guest.join("link")).unwrap();
    assert_eq!(fs::read_link(owner.join("link")).unwrap().to_str(), Some("somewhere/else"));
    // Back and forth: neither ever sees what was there before.
    for round in 0..200 {
        let (here, there) = if round % 2 == 0 { (&owner, &guest) } else { (&guest, &owner) };
        fs::write(here.join("ball"), format!("round {round}")).unwrap();
        assert_eq!(fs::read_to_string(there.join("ball")).unwrap(), format!("round {round}"));
        fs::rename(here.join("ball"), here.join(format!("ball{round}"))).unwrap();
        assert!(!there.join("ball").exists());
        fs::rename(there.join(format!("ball{round}")), there.join("ball")).unwrap();
    }
    drop(other);
    cell.stop();
}
