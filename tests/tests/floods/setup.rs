//! A cell on a network of its own, honest clients on one host, and the crowd on another.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use afs_auth::keys::KeyRing;
use andrew_tests::hostile::process::resident_kib;
use andrew_tests::live::cell::{Cell, CellOptions, command};
use andrew_tests::live::exclusive::Exclusive;
use andrew_tests::live::lan::Lan;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::PATH;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::setup::clear;
use andrew_tests::live::watchdog::Watchdog;
use andrew_tests::sim::identities::Keys;

use super::crowd::{Crowd, NETWORK};
use super::honest_clients::HonestClients;
use super::sink::Sink;

/// Hosts by number: the servers, the honest clients, the crowd.
pub const SERVER: u8 = 1;
pub const CLIENTS: u8 = 21;
pub const CROWD: u8 = 66;
/// The user with a token.
pub const USER: &str = "alice";

/// The hosts of one test. The fields are dropped in this order.
pub struct Setup {
    pub honest: HonestClients,
    pub crowd: Crowd,
    pub cell: Cell,
    pub lan: Lan,
    pub scratch: Scratch,
    _sink: Sink,
    _watchdog: Watchdog,
    _turn: Exclusive,
}

impl Setup {
    /// For the test with that name; prints a note and returns None if this process may not create it.
    pub fn new(name: &'static str) -> Option<Self> {
        if !all_there(&[Need::Root]) {
            return None;
        }
        let turn = Exclusive::take();
        let scratch = Scratch::new(name);
        let folder = scratch.path().to_owned();
        let limit = super::flood::round().saturating_mul(12) + seconds(180);
        let watchdog = Watchdog::new(name, limit, move || clear(&folder));
        let lan = Lan::new("flood", &[SERVER, CLIENTS, CROWD]);
        let crowd_address = lan.address(CROWD);
        // No address of the crowd is resolved by ARP: the kernel would keep some thousands of entries only.
        ip(&["-n", "flood-66", "route", "add", "local", NETWORK, "dev", "lo"]);
        ip(&["-n", "flood-1", "route", "add", NETWORK, "via", &crowd_address]);
        let netns = lan.netns(SERVER);
        let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at(&lan.address(SERVER), "rlidwka"));
        let state = cell.state().to_string_lossy().into_owned();
        let _ = command(&netns, &["pts", "createuser", USER, "--state", &state]);
        let keys = std::fs::read(cell.state().join("keys/KeyFileExt")).unwrap();
        let keys = Keys::of(KeyRing::from_key_file_ext(&keys).unwrap());
        let honest = HonestClients::new(lan.netns(CLIENTS), &keys, USER);
        let crowd = Crowd::new(&lan.netns(CROWD));
        let sink = Sink::new(&netns);
        Some(Self { honest, crowd, cell, lan, scratch, _sink: sink, _watchdog: watchdog, _turn: turn })
    }

    /// An `andrew` command of the cell's administrator.
    pub fn andrew(&self, words: &[&str]) -> String {
        let state = self.cell.state().to_string_lossy();
        command(&self.lan.netns(SERVER), &[words, &["--state", &state]].concat())
    }

    /// Memory of the servers' process, in KiB.
    pub fn memory(&self) -> u64 {
        resident_kib(self.cell.process.pid())
    }
}

/// The servers' address.
fn server() -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, SERVER)
}

/// A port of the servers.
pub fn server_at(port: u16) -> SocketAddr {
    (server(), port).into()
}

fn ip(words: &[&str]) {
    let mut command = Command::new("ip");
    command.env("PATH", PATH).args(words);
    run(command, seconds(60));
}
