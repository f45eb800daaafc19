//! A second host is added, gets volumes, is emptied and removed again, as docs/servers.md describes.

use std::path::Path;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::files::Pattern;
use andrew_tests::live::process::{Daemon, seconds};
use andrew_tests::live::residents::{Home, Residents};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

use super::cell::CELL;
use super::server::Server;

const NUMBER: u8 = 31;
const VOLUMES: [&str; 5] = ["copied", "backed", "plain", "large", "only-here"];
/// Blocks of the file in each volume: large enough that some are still to be moved when the first emptying is
/// interrupted.
const BLOCKS: u64 = 40;

pub fn check(scratch: &Scratch) {
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("two_hosts", seconds(300), move || unmount_below(&folder));
    let bridge = Bridge::new(NUMBER);
    let mut first = Server::new(&bridge, scratch.path(), 11);
    let mut second = Server::new(&bridge, scratch.path(), 12);
    let address = first.address().to_owned();
    let mount = scratch.path().join("afs");
    let (point, listen) = (mount.to_str().unwrap(), ["--listen", &address, "--cell", CELL]);
    first.start(&[&["up", "--mount", point, "--allow-other"], &listen[..]].concat());
    let join = first.home.join("join.toml");
    let join = join.to_str().unwrap();
    first.andrew(&["server", "add", "--listen", second.address(), "--roles", "files", "--out", join]);
    second.serve(&["--join", join]);
    until("a second server", seconds(60), || {
        listed(&first, &second).filter(|server| server["uuid"].is_string())
    });

    let (state, site) = (first.state(), [second.address(), "a"]);
    let home = Home { state: &state, cell: CELL, servers: &address, site: &site, top: &mount };
    let residents = Residents::of(first.host.netns(), scratch.path(), &home);
    fill(&first, &second, &mount);
    let server = listed(&first, &second).unwrap();
    assert_eq!((&server["read_write"], &server["read_only"]), (&Value::from(6), &Value::from(2)), "{server}");
    assert_eq!(
        (&server["up"], &server["services"]),
        (&true.into(), &serde_json::json!(["files", "volumes"]))
    );
    assert!(server["partitions"][0]["free_bytes"].as_i64() > Some(0), "{server}");

    emptied_though_interrupted(&first, &second);
    for volume in VOLUMES {
        let same = Pattern(1).check(&mount.join(volume).join("file"), BLOCKS).unwrap();
        assert_eq!(same, Ok(()), "{volume}");
    }
    residents.check();
    let all = first.andrew(&["vos", "listvldb"]);
    assert!(!all.contains(second.address()), "{all}");
    let volumes = first.andrew(&["vos", "listvol", &address]);
    for name in ["copied.readonly", "only-here.readonly", "backed.backup", "plain.monday"] {
        assert!(volumes.contains(name), "{volumes}");
    }
    assert!(
        first.andrew(&["vos", "snapshot", "list", "plain"]).contains("monday"),
        "still one of its snapshots"
    );
    removed(&first, &mut second);
}

/// The entry of a server in `andrew server list`.
fn listed(by: &Server, server: &Server) -> Option<Value> {
    let all: Value = serde_json::from_str(&by.andrew(&["server", "list", "--json"])).unwrap();
    all.as_array().unwrap().iter().find(|one| one["address"] == server.address()).cloned()
}

/// Volumes on the second server: one with a copy on both, one with a backup volume, one with its only copy there.
fn fill(first: &Server, second: &Server, mount: &Path) {
    for volume in VOLUMES {
        first.andrew(&["vos", "create", second.address(), "a", volume]);
        let folder = mount.join(volume);
        first.andrew(&["fs", "mkmount", folder.to_str().unwrap(), volume, "-rw"]);
        Pattern(1).write(&folder.join("file"), BLOCKS).unwrap();
    }
    for (volume, site) in [("copied", first), ("copied", second), ("only-here", second)] {
        first.andrew(&["vos", "addsite", site.address(), "a", volume]);
    }
    for volume in ["copied", "only-here"] {
        first.andrew(&["vos", "release", volume]);
    }
    first.andrew(&["vos", "backup", "backed"]);
}

fn emptied_though_interrupted(first: &Server, second: &Server) {
    let refused = first.try_andrew(&["server", "remove", second.address()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("6 volumes are on it"), "{said}");
    let before = first.andrew(&["vos", "listvldb"]);
    let plan = first.andrew(&["server", "empty", second.address(), "--plan"]);
    assert!(plan.contains("only-here") && plan.contains("a read-only copy on"), "{plan}");
    assert_eq!(first.andrew(&["vos", "listvldb"]), before, "a plan has changed something");
    first.andrew(&["vos", "snapshot", "create", "plain", "monday"]);

    let mut work = Daemon::start(
        first.command(&["server", "empty", second.address(), "--jobs", "1"]),
        &first.home.join("empty.log"),
    );
    until("the second move of an emptying", seconds(60), || {
        (work.said().matches("cloning").count() >= 2 || work.is_over()).then_some(())
    });
    work.kill();
    // The servers undo or complete interrupted operations; until then the volume is locked by another operation.
    until("an empty server", seconds(120), || {
        let emptied = first.try_andrew(&["server", "empty", second.address()]);
        emptied.status.success().then_some(())
    });
    let nothing = first.andrew(&["server", "empty", second.address()]);
    assert!(nothing.contains("has no volumes"), "{nothing}");
}

fn removed(first: &Server, second: &mut Server) {
    second.process.as_mut().unwrap().kill();
    assert_eq!(listed(first, second).unwrap()["up"], false);
    let said = first.andrew(&["server", "remove", second.address()]);
    assert!(said.contains("andrew down"), "{said}");
    assert_eq!(listed(first, second), None);
    let again = first.try_andrew(&["server", "remove", second.address()]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
}
