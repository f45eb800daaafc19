//! A cell of several Andrew servers: databases and volumes on the first, volumes on the others.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::cell::{CELL, andrew};
use super::mount::wait_for_word;
use super::netns::Netns;
use super::process::{Daemon, run, run_any, seconds};
use super::residents::{Home, Residents};
use super::scratch::unmount;

/// What the servers log: by which way dumps travel, beside warnings.
const LOGGED: &str = "warn,fuser=off,afs_server::volumes=info";

/// The servers of a cell, each a process on a host of its own; stopped when this is dropped.
#[derive(Debug)]
pub struct Fleet {
    folder: PathBuf,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    netns: Netns,
    address: String,
    /// Arguments to start it again.
    words: Vec<String>,
    process: Option<Daemon>,
}

impl Fleet {
    /// Starts a server on each host, given by its namespace and address. The first is `andrew up`, with the owner's
    /// mount; every user has all rights in the top directory. The state is below `folder`.
    ///
    /// # Panics
    /// If one of them does not start within two minutes.
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
            words.extend(["--allow-other", "--mount"].map(str::to_owned));
            words.push(self.owner().to_string_lossy().into_owned());
        }
        words
    }

    /// Writes a join file on the first host; returns the arguments that start the new server with it.
    fn join(&self, number: usize, address: &str) -> Vec<String> {
        let file = self.folder.join(format!("join{number}.toml"));
        let (file, state) = (file.to_string_lossy(), self.folder.join(format!("state{number}")));
        let _ = run(
            self.tool(0, &["server", "add", "--listen", address, "--roles", "files", "--out", &file]),
            seconds(60),
        );
        words(&["serve", "--join", &file, "--state", &state.to_string_lossy()])
    }

    /// Mount point of the owner's mount.
    #[must_use]
    pub fn owner(&self) -> PathBuf {
        self.folder.join("owner")
    }

    /// State directory of the first server.
    #[must_use]
    pub fn state(&self) -> String {
        self.folder.join("state0").to_string_lossy().into_owned()
    }

    /// The residents of the cell, whose volume is on the server with that number. Needs the owner's mount.
    #[must_use]
    pub fn residents(&self, server: usize) -> Residents {
        let site = [self.address(server), "a"];
        let (state, top) = (self.state(), self.owner());
        let home = Home { site: &site, ..self.home(Path::new(&state), &top) };
        Residents::of(&self.members[0].netns, &self.folder, &home)
    }

    /// Where residents live who come to a mount of the cell.
    #[must_use]
    pub fn home<'a>(&'a self, state: &'a Path, top: &'a Path) -> Home<'a> {
        Home { state, cell: CELL, servers: self.address(0), site: &[], top }
    }

    /// Address of a server.
    #[must_use]
    pub fn address(&self, number: usize) -> &str {
        &self.members[number].address
    }

    /// Restarts the first server without the owner's mount.
    ///
    /// # Panics
    /// If it does not stop, or not start again.
    pub fn without_owner(&mut self) {
        self.members[0].words = self.words_of_first("serve", self.address(0));
        let ended = self.members[0].process.take().and_then(|mut process| process.end(seconds(60)));
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        self.begin(0);
    }

    /// Kills a server with SIGKILL.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.members[number].process.take() {
            process.kill();
        }
        if number == 0 {
            unmount(&self.owner());
        }
    }

    /// Starts a killed server.
    ///
    /// # Panics
    /// If it does not start within two minutes.
    pub fn begin(&mut self, number: usize) {
        let member = &self.members[number];
        let mut command = member.netns.command(andrew());
        command.args(&member.words).env("ANDREW_LOG", LOGGED);
        // Each start has a log of its own, so that a line in it belongs to this start.
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

    /// As [`Fleet::tool`], in any namespace.
    #[must_use]
    pub fn tool_at(&self, netns: &Netns, words: &[&str]) -> Command {
        let mut command = netns.command(andrew());
        command.args(words).args(["--state", &self.state()]);
        command
    }

    /// Runs a `vos` command that must succeed; returns its JSON.
    ///
    /// # Panics
    /// If it fails.
    pub fn vos(&self, words: &[&str]) -> Value {
        let said = run(self.tool(0, &[&["vos", "--json"], words].concat()), seconds(300));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{words:?}: {error} in {said}"))
    }

    /// Runs a `vos` command with any outcome.
    #[must_use]
    pub fn try_vos(&self, words: &[&str]) -> Output {
        run_any(self.tool(0, &[&["vos", "--json"], words].concat()), seconds(300))
    }

    /// Creates a volume on a server, mounted in the top directory under its name, where every user has all rights.
    /// Needs the owner's mount.
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

    /// Output of all servers, for a test that fails.
    #[must_use]
    pub fn said(&self) -> String {
        let all = self.members.iter().filter_map(|m| m.process.as_ref()).map(Daemon::said);
        all.collect::<Vec<_>>().join("\n--\n")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // The databases last: the other servers call them until they have stopped.
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
