//! A cell of several servers of ours: databases and volumes on the first, volumes on the others.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::cell::{CELL, andrew};
use super::mount::wait_for_word;
use super::netns::Netns;
use super::process::{Daemon, run, run_any, seconds};
use super::scratch::unmount;

/// The servers of a cell, each a process on a host of its own. Stopped when this is dropped.
#[derive(Debug)]
pub struct Fleet {
    folder: PathBuf,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    netns: Netns,
    address: String,
    /// How it is started anew.
    words: Vec<String>,
    process: Option<Daemon>,
}

impl Fleet {
    /// Starts a server on each host, given by its namespace and address. The first is `andrew up`, whose mount is the
    /// owner's; everybody may do everything in the top directory. What they keep is below `folder`.
    ///
    /// # Panics
    /// If one of them does not come up in two minutes.
    #[must_use]
    pub fn start(folder: &Path, hosts: Vec<(Netns, String)>) -> Self {
        let mut fleet = Self { folder: folder.to_owned(), members: Vec::new() };
        for (netns, address) in hosts {
            let words = match fleet.members.len() {
                0 => fleet.words_of_first("up", &address),
                number => fleet.join(number, &address),
            };
            fleet.members.push(Member { netns, address, words, process: None });
            fleet.begin(fleet.members.len() - 1);
        }
        fleet.members.iter_mut().enumerate().skip(1).for_each(|(number, member)| {
            let config = folder.join(format!("state{number}/server.toml"));
            member.words = words(&["serve", "--config", &config.to_string_lossy()]);
        });
        fleet
    }

    fn words_of_first(&self, verb: &str, address: &str) -> Vec<String> {
        let state = self.state();
        let mut words =
            words(&[verb, "--state", &state, "--cell", CELL, "--listen", address, "--anyuser", "rlidwka"]);
        if verb == "up" {
            words.extend(["--mount".to_owned(), self.owner().to_string_lossy().into_owned()]);
        }
        words
    }

    /// Has the first host write what makes another one a server.
    fn join(&self, number: usize, address: &str) -> Vec<String> {
        let file = self.folder.join(format!("join{number}.toml"));
        let (file, state) = (file.to_string_lossy(), self.folder.join(format!("state{number}")));
        let _ = run(
            self.tool(0, &["server", "add", "--listen", address, "--roles", "files", "--out", &file]),
            seconds(60),
        );
        words(&["serve", "--join", &file, "--state", &state.to_string_lossy()])
    }

    /// Where the owner has mounted the cell.
    #[must_use]
    pub fn owner(&self) -> PathBuf {
        self.folder.join("owner")
    }

    /// What the first server keeps.
    #[must_use]
    pub fn state(&self) -> String {
        self.folder.join("state0").to_string_lossy().into_owned()
    }

    /// The address of a server.
    #[must_use]
    pub fn address(&self, number: usize) -> &str {
        &self.members[number].address
    }

    /// The owner's mount goes, and the first server becomes one without.
    ///
    /// # Panics
    /// If it does not end, or not come up again.
    pub fn without_owner(&mut self) {
        self.members[0].words = self.words_of_first("serve", self.address(0));
        let ended = self.members[0].process.take().and_then(|mut process| process.end(seconds(60)));
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        self.begin(0);
    }

    /// Kills a server where it stands.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.members[number].process.take() {
            process.kill();
        }
        if number == 0 {
            unmount(&self.owner());
        }
    }

    /// Starts a server that was killed.
    ///
    /// # Panics
    /// If it does not come up in two minutes.
    pub fn begin(&mut self, number: usize) {
        let member = &self.members[number];
        let mut command = member.netns.command(andrew());
        command.args(&member.words);
        // Each start has a log of its own, so that a word in it is of this start.
        let log =
            (0..).map(|n| self.folder.join(format!("server{number}.{n}.log"))).find(|log| !log.exists());
        let mut process = Daemon::start(command, &log.unwrap_or_else(|| self.folder.join("server.log")));
        wait_for_word(&mut process, "its state is in");
        self.members[number].process = Some(process);
    }

    /// An `andrew` command on the host of a server, as the owner of the cell.
    #[must_use]
    pub fn tool(&self, host: usize, words: &[&str]) -> Command {
        self.tool_at(&self.members[host].netns, words)
    }

    /// The same on any host.
    #[must_use]
    pub fn tool_at(&self, netns: &Netns, words: &[&str]) -> Command {
        let mut command = netns.command(andrew());
        command.args(words).args(["--state", &self.state()]);
        command
    }

    /// A `vos` command that must succeed; answers its JSON.
    ///
    /// # Panics
    /// If it fails.
    pub fn vos(&self, words: &[&str]) -> Value {
        let said = run(self.tool(0, &[&["vos", "--json"], words].concat()), seconds(300));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{words:?}: {error} in {said}"))
    }

    /// A `vos` command, whatever comes of it.
    #[must_use]
    pub fn try_vos(&self, words: &[&str]) -> Output {
        run_any(self.tool(0, &[&["vos", "--json"], words].concat()), seconds(300))
    }

    /// Makes a volume on a server, mounted in the top directory under its name, where everybody may do everything. Needs
    /// the owner's mount.
    pub fn make_volume(&self, server: usize, name: &str) {
        let _ = self.vos(&["create", self.address(server), "a", name, "--maxquota", "0"]);
        let point = self.owner().join(name);
        let point = point.to_string_lossy();
        let fs = |words: &[&str]| {
            let mut command = self.members[0].netns.command(andrew());
            command.args(words);
            drop(run(command, seconds(60)));
        };
        fs(&["fs", "mkmount", &point, name]);
        fs(&["fs", "setacl", &point, "system:anyuser", "all"]);
    }

    /// What the servers have said, for a test that fails.
    #[must_use]
    pub fn said(&self) -> String {
        let all = self.members.iter().filter_map(|m| m.process.as_ref()).map(Daemon::said);
        all.collect::<Vec<_>>().join("\n--\n")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // The databases last: the others tell them nothing when they stop, but might ask.
        while let Some(mut member) = self.members.pop() {
            if let Some(mut process) = member.process.take() {
                process.end(seconds(20));
            }
        }
        unmount(&self.owner());
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
