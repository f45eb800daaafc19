//! An Andrew cell on two hosts, with OpenAFS's tools on a third host and an administrator's mount on a fourth.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::cell::andrew;
use super::exclusive::Exclusive;
use super::host_server::{HostOptions, HostServer};
use super::manifest::{Manifest, fs_do, manifest};
use super::mount::Mount;
use super::peers::Hosts;
use super::process::{run, seconds};
use super::residents::{Home, Residents};
use super::scratch::{Scratch, unmount_below};
use super::tree::make;
use super::watchdog::Watchdog;

/// A cell of another name than those of other tests: root logs in to it, and a token goes to all mounts of its cell on the machine,
/// so also to those of a test that runs beside this one.
const CELL: &str = "pair.test";

/// The two hosts with their clients and tools. Each host has the partitions a and b.
#[derive(Debug)]
pub struct Pair {
    residents: Option<Residents>,
    mount: Mount,
    /// The second host, which has volumes only.
    pub second: HostServer,
    /// The first host, which has the databases too.
    pub first: HostServer,
    hosts: Hosts,
    scratch: Scratch,
    _watchdog: Watchdog,
    _turn: Exclusive,
}

impl Pair {
    /// For the test with that name; `number` is that of [`Hosts::around_our_cell`].
    #[must_use]
    pub fn new(name: &'static str, number: u8) -> Self {
        let turn = Exclusive::take();
        let scratch = Scratch::new(name);
        let folder = scratch.path().to_owned();
        let watchdog = Watchdog::new(name, seconds(600), move || unmount_below(&folder));
        let hosts = Hosts::around_our_cell(scratch.path(), number, CELL);
        hosts.host("vice2", 7);
        let start = |host: &str, options: &HostOptions<'_>| {
            HostServer::start(hosts.netns(host), &scratch.path().join(host), options)
        };
        let (one, two) = (hosts.address(5), hosts.address(7));
        let alone =
            HostOptions { cell: CELL, listen: &one, databases: &[], key_file: None, partitions: &["a", "b"] };
        let first = start("vice", &alone);
        let keys = first.keys();
        let joined = HostOptions { listen: &two, databases: &[&one], key_file: Some(&keys), ..alone };
        let second = start("vice2", &joined);
        hosts.give_keys("cl1", CELL, &one, &keys);
        let mount = Mount::new(&hosts.netns("venus"), CELL, &one, scratch.path(), "afs", &["--allow-other"]);
        let mut pair =
            Self { residents: None, mount, second, first, hosts, scratch, _watchdog: watchdog, _turn: turn };
        pair.become_admin();
        let home = Home {
            state: pair.first.folder(),
            cell: CELL,
            servers: &one,
            site: &[&two, "b"],
            top: pair.mount.path(),
        };
        let residents = Residents::of(&pair.hosts.netns("venus"), pair.scratch.path(), &home);
        pair.residents = Some(residents);
        pair
    }

    /// The user of the mount is an administrator; the cell also has a user alice.
    fn become_admin(&self) {
        let state = self.first.folder().to_string_lossy().into_owned();
        let file = self.scratch.path().join("passphrase");
        let written = std::fs::write(&file, "nobody guesses this one\n");
        written.and_then(|()| std::fs::set_permissions(&file, Permissions::from_mode(0o600))).unwrap();
        let file = file.to_string_lossy();
        self.andrew(&["passwd", "admin", "--passphrase-file", &file, "--state", &state]);
        self.andrew(&["pts", "createuser", "alice", "--state", &state]);
        let servers = self.one();
        self.andrew(&["login", "admin", "--passphrase-file", &file, "--cell", CELL, "--servers", &servers]);
    }

    /// Runs an `andrew` command on the mount's host that must succeed.
    pub fn andrew(&self, words: &[&str]) -> String {
        let mut command: Command = self.hosts.netns("venus").command(andrew());
        command.args(words).env("XDG_STATE_HOME", self.scratch.path().join("home"));
        run(command, seconds(120))
    }

    /// Address of the first host.
    #[must_use]
    pub fn one(&self) -> String {
        self.hosts.address(5)
    }

    /// Address of the second host.
    #[must_use]
    pub fn two(&self) -> String {
        self.hosts.address(7)
    }

    /// The other hosts: `cl1` and `cl2` with OpenAFS's programs, `cl1` with the cell's key.
    #[must_use]
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The test's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs OpenAFS's `vos` with the cell's key; it must succeed. ONE and TWO stand for the hosts.
    pub fn vos(&self, line: &str) -> String {
        let line = self.line(line);
        self.hosts.tool("cl1", &line.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// As [`Pair::vos`], with any outcome.
    pub fn try_vos(&self, line: &str) -> Output {
        let line = self.line(line);
        self.hosts.try_tool("cl1", &line.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// As [`Pair::vos`], but it must fail; returns its error output.
    ///
    /// # Panics
    /// If it succeeds.
    pub fn vos_refused(&self, line: &str) -> String {
        let output = self.try_vos(line);
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success(), "vos {line} succeeded: {said}");
        said
    }

    fn line(&self, line: &str) -> Vec<String> {
        let (one, two) = (self.one(), self.two());
        let word = |word: &str| match word {
            "ONE" => one.clone(),
            "TWO" => two.clone(),
            other => other.to_owned(),
        };
        let words = ["env", "TZ=UTC", "vos"].into_iter().chain(line.split(' ')).chain(["-localauth"]);
        words.map(word).collect()
    }

    /// Mounts a volume in the cell's top directory, under its name; returns the path.
    #[must_use]
    pub fn mounted(&self, volume: &str) -> PathBuf {
        let point = self.mount.path().join(volume);
        fs_do("mkmount", &[point.as_os_str(), OsStr::new(volume)]);
        point
    }

    /// Creates a volume with a tree, at a site given as in `ONE a`; returns its mount point and its manifest.
    #[must_use]
    pub fn volume_with_tree(&self, volume: &str, place: &str) -> (PathBuf, Manifest) {
        self.vos(&format!("create {place} {volume} -maxquota 100000"));
        let point = self.mounted(volume);
        make(&point, 20);
        let seen = manifest(&point);
        (point, seen)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.first.process.is_over() && !self.second.process.is_over() {
            self.residents.iter().for_each(Residents::check);
        }
    }
}
