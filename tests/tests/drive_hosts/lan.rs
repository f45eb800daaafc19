//! Hosts of a cell with drives: the file server on one of them, drives on this one and others, mounts of ours and of OpenAFS.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::properties::property;
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::wait::until;
use serde_json::Value;

use crate::drive_hosts::drive::Drive;

/// The file server's host.
const SERVER: u8 = 5;
/// Hosts of drives and of mounts, from these numbers on.
const DRIVES: u8 = 31;
const MOUNTS: u8 = 51;

/// The hosts and what runs there. Dropped in this order.
pub struct Lan<'a> {
    drives: Vec<Drive>,
    cell: Cell,
    hosts: Hosts,
    scratch: &'a Scratch,
}

impl<'a> Lan<'a> {
    /// The first drive is on the file server's host, each other one on a host of its own; all of them belong to the file server.
    pub fn new(scratch: &'a Scratch, number: u8, drives: &[&'static str]) -> Self {
        let hosts = Hosts::around_our_cell(scratch.path(), number, CELL);
        let address = hosts.address(SERVER);
        let cell = Cell::up(&hosts.netns("vice"), scratch.path(), &CellOptions::at(&address, "rlidwk"));
        let mut lan = Self { drives: Vec::new(), cell, hosts, scratch };
        for (number, name) in (DRIVES..).zip(drives.iter().copied()) {
            lan.add_drive(name, if number == DRIVES { SERVER } else { number });
        }
        lan
    }

    fn add_drive(&mut self, name: &'static str, number: u8) {
        let netns = match number {
            SERVER => self.hosts.netns("vice"),
            _ => self.host(name, number),
        };
        let drive = Drive::start(netns, self.scratch.path(), name, &self.hosts.address(number));
        let said =
            self.drive(&["add", name, "--address", &drive.address, "--join-key", &drive.join_key_file()]);
        assert!(said.contains("belongs to this file server"), "{said}");
        self.drives.push(drive);
    }

    fn host(&self, name: &str, number: u8) -> Netns {
        self.hosts.add(name, number);
        self.hosts.netns(name)
    }

    /// `andrew drive` at the file server.
    pub fn drive(&self, words: &[&str]) -> String {
        self.administer(&[&["drive"], words].concat())
    }

    fn administer(&self, words: &[&str]) -> String {
        self.command(&[words, &["--state", self.cell.state().to_str().unwrap()]].concat())
    }

    /// A command on the file server's host. Mounts of this machine are found from every host.
    pub fn command(&self, words: &[&str]) -> String {
        command(&self.hosts.netns("vice"), words)
    }

    /// New data go to the first, copies to the others.
    pub fn use_drives(&self, names: &[&str]) {
        let copies = names[1..].iter().flat_map(|name| ["--copy", name]);
        let words: Vec<_> = ["use", names[0]].into_iter().chain(copies).collect();
        let _ = self.drive(&words);
    }

    /// A volume whose files are read and stored at the drives, where every user has all rights.
    pub fn make_volume(&self, name: &str) {
        self.administer(&["vos", "create", &self.hosts.address(SERVER), "a", name, "--maxquota", "0"]);
        self.administer(&["vos", "setpath", name, "nasd"]);
        let point = self.cell.mount().join(name);
        let point = point.to_str().unwrap();
        self.command(&["fs", "mkmount", point, name]);
        self.command(&["fs", "setacl", point, "system:anyuser", "all"]);
    }

    /// The data of a volume are on so many drives when a store is complete, and those of each file go round so many.
    pub fn place(&self, name: &str, copies: u8, width: u8) {
        self.administer(&["vos", "setcopies", name, &copies.to_string()]);
        self.administer(&["vos", "setwidth", name, &width.to_string()]);
        let said: Value =
            serde_json::from_str(&self.administer(&["vos", "examine", name, "--json"])).unwrap();
        assert_eq!((&said["copies"], &said["width"]), (&copies.into(), &width.into()), "{said}");
    }

    /// A mount of ours, on a host of its own.
    pub fn mount(&self, name: &str) -> Mount {
        let taken = (MOUNTS..).find(|number| !self.marker(*number).exists()).unwrap();
        std::fs::create_dir_all(self.marker(taken)).unwrap();
        let netns = self.host(name, taken);
        Mount::new(&netns, CELL, &self.hosts.address(SERVER), self.scratch.path(), name, &[])
    }

    fn marker(&self, number: u8) -> PathBuf {
        self.scratch.path().join(format!("host-{number}"))
    }

    /// What is done in a mount of OpenAFS's client on a host, which has not mounted before.
    pub fn openafs(&self, host: &str, work: impl FnOnce(&Path)) {
        let folder = self.scratch.folder(&format!("openafs-{host}"));
        self.hosts.mount(host, &folder);
        work(&folder.join(CELL));
        self.hosts.umount(&folder);
    }

    pub fn kill(&mut self, name: &str) {
        self.named(name).kill();
    }

    pub fn again(&mut self, name: &str) {
        self.named(name).again();
    }

    fn named(&mut self, name: &str) -> &mut Drive {
        self.drives.iter_mut().find(|drive| drive.name == name).unwrap()
    }

    /// Where a drive is.
    pub fn at(&self, name: &str) -> &str {
        &self.drives.iter().find(|drive| drive.name == name).unwrap().address
    }

    /// Waits until each chunk of a drive has a copy on another one, and both can be read. A drive that is back gets its copies at once,
    /// what else is missing with the next pass, which comes each minute.
    pub fn wait_for_copies(&self, of: &str, on: &str) {
        let chunks = |name: &str| {
            let said: Value = serde_json::from_str(&self.drive(&["check", name, "--json"])).unwrap();
            assert_eq!(said["bad"], 0, "{name}: {said}");
            said["chunks"].as_u64().unwrap()
        };
        until("copies of all chunks", seconds(240), || {
            let (of, on) = (chunks(of), chunks(on));
            (of > 0 && of == on).then_some(())
        });
    }

    /// Output of the file server.
    pub fn server_said(&self) -> String {
        let mut said = self.cell.process.said();
        let _ = write!(said, "\n(of the process {})", self.cell.process.pid());
        said
    }
}

/// Bytes that a mount has fetched or stored at drives.
pub fn at_drives(mount: &Path, what: &str) -> u64 {
    let counters: Value = serde_json::from_str(&property(mount, "afs.counters")).unwrap();
    counters["data_path"][format!("{what}_at_drives")].as_u64().unwrap_or_else(|| panic!("{counters}"))
}
