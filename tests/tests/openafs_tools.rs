//! OpenAFS's tools, unmodified, against an Andrew server.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::scratch::Scratch;

#[test]
fn rxdebug_and_vos_understand_our_servers() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-tools");
    let hosts = Hosts::around_our_cell(scratch.path(), 12, CELL);
    let vice = hosts.address(5);
    let netns = hosts.netns("vice");
    let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at(&vice, "rlidwka"));
    let state = cell.state().to_string_lossy().into_owned();
    let _ = command(&netns, &["vos", "create", "--state", &state, "projects"]);

    let version = hosts.tool("cl1", &["rxdebug", &vice, "7000", "-version"]);
    assert!(version.contains("Andrew"), "{version}");
    for port in ["7000", "7003", "7005"] {
        let answer = hosts.tool("cl1", &["rxdebug", &vice, port, "-rxstats", "-allconnections"]);
        assert!(
            answer.contains("Free packets:") && answer.contains("packets read: data"),
            "port {port}: {answer}"
        );
    }
    let listed = hosts.tool("cl1", &["vos", "listvldb", "-noauth"]);
    for volume in ["root.cell", "root.afs", "projects"] {
        assert!(listed.lines().any(|line| line.trim() == volume), "{volume} is missing:\n{listed}");
    }
    let volumes = hosts.tool("cl1", &["vos", "listvol", &vice, "-noauth"]);
    assert!(volumes.contains("root.cell") && volumes.contains("On-line"), "{volumes}");
    let examined = hosts.tool("cl1", &["vos", "examine", "projects", "-noauth"]);
    assert!(examined.contains("RWrite:") && examined.contains("/vicepa"), "{examined}");
    // An unauthenticated caller may not change anything.
    let refused = hosts.try_tool("cl1", &["vos", "remove", &vice, "a", "projects", "-noauth"]);
    assert!(!refused.status.success(), "anybody may remove a volume: {refused:?}");
    assert!(hosts.tool("cl1", &["vos", "listvldb", "-noauth"]).contains("projects"));
}
