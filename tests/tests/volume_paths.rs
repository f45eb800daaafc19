//! Volumes between two live servers by the data path, with TLS: a move, a release, a dump and a restore. The logs of the
//! servers tell which way the dumps went. Takes some seconds.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;

use andrew_tests::live::fleet::Fleet;
use andrew_tests::live::lan::Lan;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::Scratch;

/// How often a server has noted something in its log.
fn noted(folder: &Path, server: usize, what: &str) -> usize {
    let log = fs::read_to_string(folder.join(format!("server{server}.0.log"))).unwrap();
    log.lines().filter(|line| line.contains(what)).count()
}

const COMES: &str = "a dump comes by the data path";
const LEAVES: &str = "a dump leaves by the data path";

#[test]
fn volumes_travel_by_the_data_path_between_two_servers() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let (scratch, lan) = (Scratch::new("volume-paths"), Lan::new("vpath", &[1, 2]));
    let folder = scratch.path();
    let fleet = Fleet::start(folder, [1, 2].map(|host| (lan.netns(host), lan.address(host))).into());
    fleet.make_volume(0, "v");
    let file = fleet.owner().join("v/file");
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
    fs::write(&file, &bytes).unwrap();

    let _ = fleet.vos(&["move", "v", fleet.address(1), "a"]);
    assert!(noted(folder, 1, COMES) >= 1, "the move went by calls");
    assert!(fs::read(&file).unwrap() == bytes);

    let _ = fleet.vos(&["addsite", fleet.address(0), "a", "v"]);
    let _ = fleet.vos(&["release", "v"]);
    assert_eq!(noted(folder, 0, COMES), 1, "the release went by calls");

    let dump = folder.join("v.dump");
    let dump = dump.to_string_lossy();
    let _ = run(fleet.tool(0, &["vos", "dump", "v", "--file", &dump]), seconds(60));
    let left = noted(folder, 0, LEAVES) + noted(folder, 1, LEAVES);
    assert_eq!(left, 1, "the dump went by calls");
    let _ = run(fleet.tool(0, &["vos", "restore", fleet.address(1), "a", "w", "--file", &dump]), seconds(60));
    assert!(noted(folder, 1, COMES) >= 2, "the restore went by calls");
    let again = folder.join("w.dump");
    let _ = run(fleet.tool(0, &["vos", "dump", "w", "--file", &again.to_string_lossy()]), seconds(60));
    assert_eq!(fs::metadata(again).unwrap().len(), fs::metadata(&*dump).unwrap().len());
}
