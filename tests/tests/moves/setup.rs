//! A cell of three servers, a client, and a host for tools that is so slow that every step of theirs can be seen.

use std::path::{Path, PathBuf};

use andrew_tests::live::cell::CELL;
use andrew_tests::live::fleet::Fleet;
use andrew_tests::live::lan::Lan;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, run_any, seconds};
use andrew_tests::live::wait::until;
use serde_json::Value;

/// The servers by number: the first has the databases too. Volumes are on the second when they are moved, to the third.
pub const DATABASES: usize = 0;
pub const SOURCE: usize = 1;
pub const TARGET: usize = 2;

/// Hosts: servers, a client, tools. Those that wait for a server send too, and would take the others' turns.
const HOSTS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const CLIENTS: u8 = 4;
const TOOLS: [u8; 4] = [5, 6, 7, 8];

/// What the tools' host sends: about a tenth of a second for the smallest datagram.
const SLOW: u32 = 1500;

/// Who dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    Tool,
    Server(usize),
}

/// See this file's head.
pub struct Setup {
    // In the order in which they have to go.
    pub client: Option<Mount>,
    pub fleet: Fleet,
    slow: Vec<Netns>,
    clients: Netns,
    folder: PathBuf,
    tools: Vec<(String, Daemon)>,
    _lan: Lan,
}

impl Setup {
    /// `name`: at most six letters. `prepare` makes volumes, with the owner's mount.
    pub fn new(name: &str, folder: &Path, prepare: impl FnOnce(&Fleet)) -> Self {
        let lan = Lan::new(name, &HOSTS);
        let servers = HOSTS[..3].iter().map(|host| (lan.netns(*host), lan.address(*host)));
        let mut fleet = Fleet::start(folder, servers.collect());
        prepare(&fleet);
        fleet.without_owner();
        TOOLS.iter().for_each(|host| lan.slow_down(*host, SLOW));
        let (slow, clients) = (TOOLS.map(|host| lan.netns(host)).into(), lan.netns(CLIENTS));
        let mut setup = Self {
            client: None,
            fleet,
            slow,
            clients,
            folder: folder.to_owned(),
            tools: Vec::new(),
            _lan: lan,
        };
        setup.client = Some(setup.mount("client"));
        setup
    }

    /// One more client.
    pub fn mount(&self, name: &str) -> Mount {
        Mount::new(&self.clients, CELL, self.fleet.address(DATABASES), &self.folder, name, &[])
    }

    /// A folder on the client's mount.
    pub fn path(&self, below: &str) -> PathBuf {
        self.client.as_ref().map(|client| client.path().join(below)).unwrap_or_default()
    }

    /// What is under way: volumes' names and steps.
    pub fn journal(&self) -> Vec<(String, String)> {
        let output = run_any(self.fleet.tool(TARGET, &["vos", "--json", "operations"]), seconds(60));
        // While the databases are away there is no answer.
        let all: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        all.as_array().into_iter().flatten().map(|one| (word(one, "name"), word(one, "step"))).collect()
    }

    /// Starts a tool on the slow host.
    pub fn begin(&mut self, volume: &str, words: &[&str]) {
        let host = &self.slow[self.tools.len() % self.slow.len()];
        let command = self.fleet.tool_at(host, &[&["vos", "--verbose"], words].concat());
        let log = (0..).map(|n| self.folder.join(format!("tool-{volume}{n}.log"))).find(|log| !log.exists());
        self.tools.push((volume.to_owned(), Daemon::start(command, &log.unwrap())));
    }

    /// Waits until a volume's operation is at a step; false if it ended before anybody saw it there.
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

    /// Kills, and starts again what is a server.
    pub fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Tool => self.tools.last_mut().unwrap().1.kill(),
            Victim::Server(number) => {
                self.fleet.kill(number);
                self.fleet.begin(number);
            }
        }
    }

    /// Waits until the tools that live have given up or are done, and the servers have ended what was left.
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

    /// Makes a transaction on a volume at a server end, as an administrator would.
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
