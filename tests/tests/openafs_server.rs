//! Andrew's client on a cell of OpenAFS's servers.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use andrew_tests::hostile::counters::number;
use andrew_tests::live::closing::close;
use andrew_tests::live::exercise::{Views, everything};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

const CELL: &str = "open.test";

#[test]
fn our_client_works_in_an_openafs_cell() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-server");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("openafs_server", seconds(600), move || unmount_below(&folder));
    let hosts = Hosts::with_servers(scratch.path(), 13, CELL);
    let ours = Mount::new(&hosts.netns("venus"), CELL, &hosts.address(11), scratch.path(), "ours", &[]);
    let theirs = scratch.folder("theirs");
    hosts.mount("cl1", &theirs);

    // The cell's root volume is read-only for all users; its volume `scratch` is not.
    let refused = fs::write(ours.path().join("no"), "no").unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(13 | 30)), "{refused}");
    let (our_top, their_top) = (ours.path().join("scratch"), theirs.join(CELL).join("scratch"));
    for (name, here, there) in [
        ("alone", &our_top, &our_top),
        ("to-theirs", &our_top, &their_top),
        ("from-theirs", &their_top, &our_top),
    ] {
        eprintln!("{name}");
        fs::create_dir(here.join(name)).unwrap();
        let seen = there.join(name);
        until_equal("the folder", &true, || seen.is_dir());
        everything(&Views::new(&here.join(name), &seen));
        fs::remove_dir(here.join(name)).unwrap();
    }
    holes_are_not_sent(&ours, &our_top, &their_top);
    their_changes_reach_us(&hosts, &our_top);
    hosts.umount(&theirs);
}

/// The server takes one range a call, and represents a gap by a hole of its own.
fn holes_are_not_sent(ours: &Mount, our_top: &Path, their_top: &Path) {
    const GIB: u64 = 1 << 30;
    const PLACES: [u64; 3] = [0, GIB, 2 * GIB - 1];
    let (file, seen) = (our_top.join("sparse"), their_top.join("sparse"));
    let before = number(ours.path(), "bytes_stored");
    let open = fs::File::create(&file).unwrap();
    PLACES.iter().for_each(|place| open.write_all_at(b"x", *place).unwrap());
    close(open).unwrap();
    let stored = number(ours.path(), "bytes_stored") - before;
    assert!((3..=3 * (64 << 10)).contains(&stored), "{stored} bytes");
    until_equal("the length", &(2 * GIB), || fs::metadata(&seen).map_or(0, |status| status.len()));
    let theirs = fs::File::open(&seen).unwrap();
    for place in PLACES {
        let mut bytes = [0; 2];
        let n = theirs.read_at(&mut bytes, place).unwrap();
        assert_eq!(bytes[..n], [b'x', 0][..n], "at {place}");
    }
    drop(theirs);
    fs::remove_file(&file).unwrap();
}

/// A change by another client breaks the promise of Andrew's client: the cached contents are not used again.
fn their_changes_reach_us(hosts: &Hosts, our_top: &Path) {
    let file = our_top.join("called-back");
    fs::write(&file, "ours").unwrap();
    for round in 0..5 {
        let text = format!("theirs, round {round}");
        let put = format!("printf '{text}' | afsx -noauth put scratch:/called-back");
        hosts.tool("cl1", &["sh", "-c", &put]);
        // afsx has stored the file when it ends, and the server replies to it only after the break.
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::remove_file(&file).unwrap();
}
