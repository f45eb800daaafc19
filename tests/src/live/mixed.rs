//! A cell of OpenAFS's servers, srv1 and srv2, with one Andrew file server, vice. The host venus has a mount of
//! Andrew's whose user is an administrator, cl1 has OpenAFS's own client.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::exclusive::Exclusive;
use super::host_server::{HostOptions, HostServer};
use super::manifest::{Manifest, fs_do, manifest};
use super::mount::Mount;
use super::peers::Hosts;
use super::process::seconds;
use super::scratch::{Scratch, unmount_below};
use super::tree::make;
use super::watchdog::Watchdog;

/// The cell and its clients.
#[derive(Debug)]
pub struct Mixed {
    ours: Mount,
    theirs: PathBuf,
    /// The Andrew file server.
    pub vice: HostServer,
    hosts: Hosts,
    admin: String,
    scratch: Scratch,
    _watchdog: Watchdog,
    _turn: Exclusive,
}

impl Mixed {
    /// For the test with that name; `number` is that of [`Hosts::with_servers`].
    #[must_use]
    pub fn new(name: &'static str, number: u8) -> Self {
        let turn = Exclusive::take();
        let scratch = Scratch::new(name);
        let folder = scratch.path().to_owned();
        let watchdog = Watchdog::new(name, seconds(900), move || unmount_below(&folder));
        let hosts = Hosts::with_servers(scratch.path(), number, CELL);
        hosts.host("vice", 5);
        let keys = hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt");
        let (address, database) = (hosts.address(5), hosts.address(11));
        let options = HostOptions {
            cell: CELL,
            listen: &address,
            databases: &[&database],
            key_file: Some(&keys),
            partitions: &["a", "b"],
        };
        let vice = HostServer::start(hosts.netns("vice"), &scratch.path().join("vice"), &options);
        let ours = Mount::new(&hosts.netns("venus"), CELL, &database, scratch.path(), "ours", &[]);
        let admin = hosts.kinit("admin");
        let home = scratch.folder("home");
        let said = hosts.andrew_with("venus", &admin, &home, &["login", "--kerberos", "--cell", CELL]);
        assert!(said.contains("admin is logged in"), "{said}");
        let theirs = scratch.folder("theirs");
        hosts.mount("cl1", &theirs);
        Self { ours, theirs, vice, hosts, admin, scratch, _watchdog: watchdog, _turn: turn }
    }

    /// Its hosts.
    #[must_use]
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The test's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs OpenAFS's `vos` with the cell's key; it must succeed. OURS, SRV1 and SRV2 stand for the servers.
    pub fn vos(&self, line: &str) -> String {
        let line = self.line(line);
        let words = ["vos"].into_iter().chain(line.split(' ')).chain(["-localauth"]);
        self.hosts.tool("cl1", &words.collect::<Vec<_>>())
    }

    /// Runs Andrew's `vos`, likewise.
    pub fn andrew_vos(&self, line: &str) -> String {
        let line = self.line(line);
        let keys = self.hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt");
        let (keys, database) = (keys.to_string_lossy(), self.hosts.address(11));
        let with = ["--servers", &database, "--localauth", "--key-file", &keys];
        let words: Vec<&str> = ["vos"].into_iter().chain(line.split(' ')).chain(with).collect();
        self.hosts.andrew_with("venus", &self.admin, &self.scratch.path().join("home"), &words)
    }

    /// A line with the addresses of the servers in place of their names.
    #[must_use]
    pub fn line(&self, line: &str) -> String {
        [("OURS", 5), ("SRV1", 11), ("SRV2", 12)]
            .into_iter()
            .fold(line.to_owned(), |line, (name, host)| line.replace(name, &self.hosts.address(host)))
    }

    /// Mounts a volume where all users may write, under its name; returns its path in Andrew's mount.
    #[must_use]
    pub fn mounted(&self, volume: &str) -> PathBuf {
        let point = self.ours.path().join("scratch").join(volume);
        fs_do("mkmount", &[point.as_os_str(), OsStr::new(volume)]);
        point
    }

    /// Path of such a volume in OpenAFS's client.
    #[must_use]
    pub fn seen_by_theirs(&self, volume: &str) -> PathBuf {
        self.theirs.join(CELL).join("scratch").join(volume)
    }

    /// Creates a volume with a tree, of which one file has `blocks` blocks of 64 KiB.
    #[must_use]
    pub fn volume_with_tree(&self, volume: &str, place: &str, blocks: u64) -> (PathBuf, Manifest) {
        self.vos(&format!("create {place} {volume} -maxquota 1000000"));
        let point = self.mounted(volume);
        make(&point, blocks);
        let seen = manifest(&point);
        (point, seen)
    }
}

impl Drop for Mixed {
    /// A test that fails prints the warnings of the Andrew server: OpenAFS's tools show at most a code.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.vice.process.said();
            let warnings: Vec<&str> =
                log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).collect();
            eprintln!("the server of ours warned:\n{}", warnings.join("\n"));
        }
    }
}

const CELL: &str = "mixed.test";
