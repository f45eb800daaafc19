//! Keys and tokens of a cell of three hosts, while a user works on two of them: a key is rotated, a host that was down gets it
//! later, the old key is removed, and the tokens of a user are revoked at every host.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

use super::cell::CELL;
use super::server::Server;

const NUMBER: u8 = 33;
const ALICE: u32 = 61_031;
/// Homes of alice, one on each host.
const HOMES: [&str; 3] = ["one", "two", "three"];

/// Three hosts, and a mount on the first.
pub(super) struct Cell {
    pub(super) hosts: [Server; 3],
    pub(super) mount: std::path::PathBuf,
}

pub fn check(scratch: &Scratch) {
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("changed_keys", seconds(400), move || unmount_below(&folder));
    let bridge = Bridge::new(NUMBER);
    let mut cell = Cell::new(&bridge, scratch.path());
    let first = &cell.hosts[0];
    let address = first.address().to_owned();
    let netns = first.host.netns().alias();
    let alice = User::new(&netns, &first.state(), scratch.path(), "alice", ALICE);
    cell.fill(&alice);
    let mut work = cell.work(&alice, &HOMES);

    // Every host uses the key, and nobody has noticed.
    let listed = first.andrew(&["key", "rotate"]);
    assert!(listed.contains("number   2") && !listed.contains("not used"), "{listed}");
    cell.all_have(2);
    alice.log_in(CELL, &address);
    cell.reads(&alice, &HOMES, true);
    first.andrew(&["vos", "create", cell.hosts[1].address(), "a", "after"]);

    // A host that is down: no key is made until it is named; it gets the key afterwards.
    work.goes_on();
    work.end();
    cell.hosts[2].process.as_mut().unwrap().kill();
    let mut work = cell.work(&alice, &HOMES[..2]);
    let refused = cell.hosts[0].try_andrew(&["key", "rotate"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--without"), "{said}");
    assert!(said.contains(cell.hosts[2].address()), "{said}");
    let listed = cell.hosts[0].andrew(&["key", "list"]);
    assert!(!listed.contains("number   3"), "{listed}");
    alice.log_in(CELL, &address);
    cell.reads(&alice, &HOMES[..2], true);
    let without = cell.hosts[2].address().to_owned();
    cell.hosts[0].andrew(&["key", "rotate", "--without", &without]);
    alice.log_in(CELL, &address);
    cell.reads(&alice, &HOMES[..2], true);
    cell.hosts[2].serve_as_configured();
    cell.hosts[0].andrew(&["key", "add", "--rxgk"]);
    cell.all_have(3);
    until("the third host", seconds(30), || cell.can_read(&alice, "three").then_some(()));

    // The old keys open nothing more: the first one was removed by rotating, also where the host was down.
    cell.hosts[0].andrew(&["key", "rotate"]);
    cell.all_have(4);
    alice.log_in(CELL, &address);
    cell.hosts[0].andrew(&["key", "remove", "--kind", "rxgk", "--kvno", "3"]);
    for host in &cell.hosts {
        let listed = host.andrew(&["key", "list"]);
        assert!(!["1", "2", "3"].iter().any(|old| listed.contains(&format!("number   {old}"))), "{listed}");
    }
    work.goes_on();
    cell.reads(&alice, &HOMES, true);
    work.end();

    // One command ends the tokens at every host.
    let begun = Instant::now();
    cell.hosts[0].andrew(&["revoke", "alice"]);
    for home in HOMES {
        until("the end of the tokens", seconds(20), || (!cell.can_read(&alice, home)).then_some(()));
        println!("{home}: no token counts {:?} after the command began", begun.elapsed());
    }
    alice.log_in(CELL, &address);
    cell.reads(&alice, &HOMES, true);
    cell.hosts[0].andrew(&["down"]);
}

impl Cell {
    pub(super) fn new(bridge: &Bridge, folder: &Path) -> Self {
        let mut hosts = [11, 12, 13].map(|number| Server::new(bridge, folder, number));
        let (mount, address) = (folder.join("afs"), hosts[0].address().to_owned());
        let listen = ["--listen", &address, "--cell", CELL];
        hosts[0].start(&[&["up", "--mount", mount.to_str().unwrap(), "--allow-other"], &listen[..]].concat());
        for number in 1..3 {
            let join = hosts[0].home.join(format!("join{number}.toml"));
            let (join, listen) = (join.to_str().unwrap().to_owned(), hosts[number].address().to_owned());
            hosts[0].andrew(&["server", "add", "--listen", &listen, "--roles", "files", "--out", &join]);
            hosts[number].serve(&["--join", &join]);
            until("a server more", seconds(60), || {
                let listed = hosts[0].andrew(&["server", "list", "--json"]);
                let all: serde_json::Value = serde_json::from_str(&listed).unwrap();
                all.as_array()?
                    .iter()
                    .find(|one| one["address"] == *listen && one["uuid"].is_string())
                    .map(drop)
            });
        }
        Self { hosts, mount }
    }

    /// A home of alice on each host, that nobody else reads.
    pub(super) fn fill(&self, alice: &User<'_>) {
        let first = &self.hosts[0];
        for (home, host) in HOMES.iter().zip(&self.hosts) {
            first.andrew(&["vos", "create", host.address(), "a", home]);
            let top = self.mount.join(home);
            let top = top.to_str().unwrap();
            first.andrew(&["fs", "mkmount", top, home]);
            first.andrew(&["fs", "setacl", top, "alice", "all", "system:anyuser", "none"]);
        }
        alice.log_in(CELL, first.address());
        for home in HOMES {
            let written = alice.sh(&self.mount, &format!("echo diary > $A/{home}/diary"));
            assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        }
    }

    /// The content of a file, as alice reads it.
    pub(super) fn content(&self, alice: &User<'_>, path: &str) -> String {
        String::from_utf8_lossy(&alice.sh(&self.mount, &format!("cat $A/{path}")).stdout).into_owned()
    }

    fn can_read(&self, alice: &User<'_>, home: &str) -> bool {
        // A new name each time, so that a server has to be asked.
        let line = format!("cat $A/{home}/diary && date +%N > $A/{home}/seen");
        alice.sh(&self.mount, &line).status.success()
    }

    fn reads(&self, alice: &User<'_>, homes: &[&str], expected: bool) {
        for home in homes {
            assert_eq!(self.can_read(alice, home), expected, "{home}");
        }
    }

    fn all_have(&self, number: u32) {
        for host in &self.hosts {
            let listed = host.andrew(&["key", "list"]);
            assert!(
                listed.contains(&format!("number {number:3}")) && !listed.contains("not used"),
                "{listed}"
            );
        }
    }

    /// A program of alice's that reads and writes in homes, and ends at the first error.
    fn work(&self, alice: &User<'_>, homes: &[&str]) -> Work {
        let stop = self.hosts[0].home.join("stop");
        let _ = std::fs::remove_file(&stop);
        let line = format!(
            "n=0; until test -e {}; do n=$((n+1)); for h in {}; do echo $n > $A/$h/line && cat $A/$h/line > /dev/null \
             && cat $A/$h/diary > /dev/null && mv $A/$h/line $A/$h/line2 || exit 3; done; done",
            stop.display(),
            homes.join(" ")
        );
        let mut command = alice.command("sh", &["-c", &line]);
        command.env("A", &self.mount).stderr(Stdio::inherit());
        Work { child: command.spawn().unwrap(), stop }
    }
}

/// A program that works.
pub(super) struct Work {
    pub(super) child: Child,
    pub(super) stop: std::path::PathBuf,
}

impl Work {
    fn goes_on(&mut self) {
        assert_eq!(
            self.child.try_wait().unwrap().map(|status| status.code()),
            None,
            "the user's program ended"
        );
    }

    /// Ends it; returns what it has counted, if it counts.
    pub(super) fn end(mut self) -> String {
        std::fs::write(&self.stop, "").unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the user's program saw an error: {status}");
        std::fs::read_to_string(self.stop.with_extension("count")).unwrap_or_default()
    }
}
