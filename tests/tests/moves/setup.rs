//! A cell of three servers, a client, and a tools host whose link is so slow that every step of an operation can be
//! observed.

use std::path::{Path, PathBuf};

use andrew_tests::live::cell::CELL;
use andrew_tests::live::fleet::Fleet;
use andrew_tests::live::lan::Lan;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, run_any, seconds};
use andrew_tests::live::residents::Residents;
use andrew_tests::live::wait::until;
use serde_json::Value;

/// The servers by number: the first also has the databases. Volumes start on the second, and are moved to the third.
pub const DATABASES: usize = 0;
pub const SOURCE: usize = 1;
pub const TARGET: usize = 2;

/// Hosts: servers, a client, tools. Tools that wait for a server send too, and would use up the bandwidth of the
/// others, so each has a host.
const HOSTS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const CLIENTS: u8 = 4;
const TOOLS: [u8; 4] = [5, 6, 7, 8];

/// Bandwidth of a tools host: about a tenth of a second for the smallest datagram.
const SLOW: u32 = 1500;

/// The process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    Tool,
    Server(usize),
}

/// The hosts described above.
pub struct Setup {
    residents: Option<Residents>,
    // In the order in which they must be dropped.
    pub client: Option<Mount>,
    pub fleet: Fleet,
    slow: Vec<Netns>,
    clients: Netns,
    folder: PathBuf,
    tools: Vec<(String, Daemon)>,
    _lan: Lan,
}

impl Setup {
    /// `name`: at most six letters. `prepare` creates volumes, with the owner's mount.
    pub fn new(name: &str, folder: &Path, prepare: impl FnOnce(&Fleet)) -> Self {
        let lan = Lan::new(name, &HOSTS);
        let servers = HOSTS[..3].iter().map(|host| (lan.netns(*host), lan.address(*host)));
        let mut fleet = Fleet::start(folder, servers.collect());
        prepare(&fleet);
        // Their volume is where no database is.
        let residents = fleet.residents(SOURCE);
        fleet.without_owner();
        TOOLS.iter().for_each(|host| lan.slow_down(*host, SLOW));
        let (slow, clients) = (TOOLS.map(|host| lan.netns(host)).into(), lan.netns(CLIENTS));
        let mut setup = Self {
            residents: None,
            client: None,
            fleet,
            slow,
            clients,
            folder: folder.to_owned(),
            tools: Vec::new(),
            _lan: lan,
        };
        let client = setup.mount("client");
        let state = setup.fleet.state();
        let home = setup.fleet.home(Path::new(&state), client.path());
        setup.residents = Some(residents.at(&setup.clients, &home));
        setup.client = Some(client);
        setup
    }

    /// Mounts the cell on one more client.
    pub fn mount(&self, name: &str) -> Mount {
        Mount::new(&self.clients, CELL, self.fleet.address(DATABASES), &self.folder, name, &["--allow-other"])
    }

    /// A path on the client's mount.
    pub fn path(&self, below: &str) -> PathBuf {
        self.client.as_ref().map(|client| client.path().join(below)).unwrap_or_default()
    }

    /// The journal's operations: volume names and steps.
    pub fn journal(&self) -> Vec<(String, String)> {
        let output = run_any(self.fleet.tool(TARGET, &["vos", "--json", "operations"]), seconds(60));
        // While the databases are down the command prints nothing.
        let all: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        all.as_array().into_iter().flatten().map(|one| (word(one, "name"), word(one, "step"))).collect()
    }

    /// Starts a tool on a slow host.
    pub fn begin(&mut self, volume: &str, words: &[&str]) {
        let host = &self.slow[self.tools.len() % self.slow.len()];
        let command = self.fleet.tool_at(host, &[&["vos", "--verbose"], words].concat());
        let log = (0..).map(|n| self.folder.join(format!("tool-{volume}{n}.log"))).find(|log| !log.exists());
        self.tools.push((volume.to_owned(), Daemon::start(command, &log.unwrap())));
    }

    /// Waits until the operation on a volume is at a step; false if it ended before the step was observed.
    pub fn wait_for_step(&mut self, volume: &str, step: &str) -> bool {
        let seen = until(&format!("step {step} of {volume}"), seconds(120), || {
            let over = self.tools.last_mut().is_none_or(|(_, tool)| tool.is_over());
            let now = self.journal().into_iter().find(|(name, _)| name == volume).map(|(_, step)| step);
            match now {
                Some(now) if now == step => Some(true),
                _ if over => Some(false),
                _ => None,
            }
        });
        if !seen {
            let said = self.tools.last().map(|(_, tool)| tool.said());
            eprintln!("{volume}: nobody saw step {step}: {}", said.unwrap_or_default());
        }
        seen
    }

    /// Kills the victim; a server is restarted.
    pub fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Tool => self.tools.last_mut().unwrap().1.kill(),
            Victim::Server(number) => {
                self.fleet.kill(number);
                self.fleet.begin(number);
            }
        }
    }

    /// Waits until all running tools have failed or completed, and the servers have finished the interrupted
    /// operations.
    pub fn settle(&mut self) {
        for (volume, tool) in &mut self.tools {
            until(&format!("the end of the tool for {volume}"), seconds(240), || {
                tool.is_over().then_some(())
            });
        }
        until("the end of all operations", seconds(120), || {
            let output = self.fleet.try_vos(&["operations"]);
            (output.status.success() && output.stdout.trim_ascii() == b"[]").then_some(())
        });
    }

    /// Aborts a volume's transaction at a server, as an administrator would.
    pub fn end_transaction(&self, server: usize, volume: u64) {
        let address = self.fleet.address(server);
        until("the transaction of the move at its target", seconds(60), || {
            let all = self.fleet.vos(&["status", address]);
            let open = all["transactions"].as_array()?;
            let held = open.iter().find(|one| one["volume_id"].as_u64() == Some(volume))?;
            let number = held["id"].as_i64()?.to_string();
            self.fleet.try_vos(&["endtrans", address, &number]).status.success().then_some(())
        });
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.client.is_some() {
            self.residents.iter().for_each(Residents::check);
        }
    }
}
