//! The drives and organisations that a run of a test program may name: bytes are there, travel so, and outlive power failures.

use super::common::Cell;
use super::*;

/// How bytes of a file came: by the file server's data path, and from drives.
#[derive(PartialEq, Eq, Debug)]
struct Came {
    by_path: bool,
    from_drives: bool,
}

/// A cell on drives of a name, in which a file of three mebibytes is read after a power failure of the file server.
fn read_after_a_power_failure(name: &str) -> (Cell, Came) {
    let cell = Cell::made(1, Some(DrivePlan::named(name).unwrap()), |_| {});
    let (a, b) = (cell.client(1), cell.client(2));
    let (big, warm) = (pattern(3 * MIB, 7), pattern(3 * MIB, 8));
    let (here, files) = (a.clone(), [("warm", warm), ("big", big.clone())]);
    cell.on(&a, async move {
        for (path, bytes) in files {
            here.put(path, &bytes).await.unwrap();
        }
    });
    cell.restart_server();
    let read = |path: &'static str| {
        let here = b.clone();
        let got = cell.on(&b, async move { here.get(path).await.unwrap() });
        cell.sim.run_for(OPENING);
        got
    };
    // A read goes by calls until there is a connection.
    read("warm");
    let before = b.venus.counters();
    assert!(read("big") == big, "{name}");
    let after = b.venus.counters();
    let came = Came {
        by_path: after.path_bytes_fetched > before.path_bytes_fetched,
        from_drives: after.drive_bytes_fetched > before.drive_bytes_fetched,
    };
    (cell, came)
}

#[test]
fn bytes_are_on_the_drives_that_a_run_names_and_outlive_a_power_failure() {
    for kind in ["remote", "bucket", "host", "files", "memory", "copies", "round", "own"] {
        let (cell, came) = read_after_a_power_failure(&format!("{kind}/nasd"));
        assert_eq!(cell.machine.disk.filled() > 2 * MIB as u64, kind == "own", "{kind}");
        let is_reached = !["files", "memory", "own"].contains(&kind);
        assert_eq!(came.from_drives, is_reached, "{kind}");
        assert!(came.by_path || is_reached, "{kind}");
    }
}

#[test]
fn bytes_travel_in_the_organisation_that_a_run_names() {
    for (route, by_path, from_drives) in
        [("sad", false, false), ("sid", true, false), ("netscsi", false, true), ("nasd", false, true)]
    {
        let (_, came) = read_after_a_power_failure(&format!("remote/{route}"));
        assert_eq!(came, Came { by_path, from_drives }, "{route}");
    }
}
