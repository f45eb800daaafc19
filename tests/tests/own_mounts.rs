//! Mounts of ours on a cell of ours: each sees at once what the other has done.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::FileExt;
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

#[test]
fn a_descriptor_that_outlives_an_orderly_stop_changes_nothing_that_is_read_later() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("outlived-mounts");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("outlived_mounts", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-late");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mounted = || Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    // Written to after the stop, and after the next start; before the stop, too, or not.
    for (round, (dirty, late)) in
        [(false, false), (false, true), (true, false), (true, true)].into_iter().enumerate()
    {
        let other = mounted();
        let (name, path) = (format!("file{round}"), other.path().join(format!("file{round}")));
        fs::write(&path, "OLDOLDOLD").unwrap();
        let open = fs::File::options().read(true).write(true).open(&path).unwrap();
        if dirty {
            open.write_all_at(b"HALF", 0).unwrap();
        }
        drop(other);
        let left = fs::read_to_string(scratch.path().join("other.cache/left-open.json")).unwrap();
        assert!(left.contains(&*path.to_string_lossy()), "{left}");
        let write = || drop(open.write_all_at(b"NEW, LONGER", 0));
        let stored = if dirty { "HALFLDOLD" } else { "OLDOLDOLD" };
        if !late {
            write();
        }
        let again = mounted();
        if late {
            assert_eq!(fs::read_to_string(&path).unwrap(), stored);
            write();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), stored);
        assert_eq!(fs::read_to_string(cell.mount().join(&name)).unwrap(), stored);
        assert_eq!(fs::metadata(&path).unwrap().len(), 9);
        drop(again);
    }
    cell.stop();
}
