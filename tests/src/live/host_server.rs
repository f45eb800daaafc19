//! One host of a cell, as `andrew serve --config` runs it: next to servers of ours, or in a cell of OpenAFS's.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::cell::andrew;
use super::mount::wait_for_word;
use super::netns::Netns;
use super::process::{Daemon, seconds};

/// What a host is to be.
#[derive(Clone, Debug)]
pub struct HostOptions<'a> {
    /// The cell.
    pub cell: &'a str,
    /// Its address.
    pub listen: &'a str,
    /// Addresses of the cell's database servers; none: it is the one, and makes itself a key for rxkad.
    pub databases: &'a [&'a str],
    /// The cell's keys, where they are not in its own state.
    pub key_file: Option<&'a Path>,
    /// Letters of its partitions.
    pub partitions: &'a [&'a str],
}

/// A running host. Stopped when this is dropped; what it keeps stays in its folder.
#[derive(Debug)]
pub struct HostServer {
    /// Its process.
    pub process: Daemon,
    netns: Netns,
    folder: PathBuf,
}

impl HostServer {
    /// Starts a host that keeps everything below `folder`.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start(netns: Netns, folder: &Path, options: &HostOptions<'_>) -> Self {
        let made = std::fs::create_dir_all(folder);
        let written = made.and_then(|()| std::fs::write(folder.join("server.toml"), options.file()));
        written.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let process = run(&netns, folder);
        Self { process, netns, folder: folder.to_owned() }
    }

    /// What it keeps.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its keys, where they are in its own state.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys/KeyFileExt")
    }

    /// Kills it where it stands.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it anew, after it was killed or stopped.
    pub fn restart(&mut self) {
        self.process.end(seconds(30));
        self.process = run(&self.netns, &self.folder);
    }
}

impl HostOptions<'_> {
    fn file(&self) -> String {
        let mut text = format!("cell = \"{}\"\nlisten = \"{}\"\nstate = \".\"\n", self.cell, self.listen);
        if self.databases.is_empty() {
            text.push_str("rxkad = true\n");
        } else {
            let _ = writeln!(text, "roles = [\"files\"]\ndatabase_servers = {:?}", self.databases);
        }
        if let Some(keys) = self.key_file {
            let _ = writeln!(text, "key_file = {keys:?}");
        }
        for letter in self.partitions {
            let _ = writeln!(text, "[[partition]]\nname = \"{letter}\"\npath = \"vicep{letter}\"");
        }
        text
    }
}

fn run(netns: &Netns, folder: &Path) -> Daemon {
    let mut command = netns.command(andrew());
    command.args(["serve", "--config"]).arg(folder.join("server.toml"));
    // Each start has a log of its own, so that a word in it is of this start.
    let log = (0..).map(|n| folder.join(format!("log{n}"))).find(|log| !log.exists());
    let mut process = Daemon::start(command, &log.unwrap_or_else(|| folder.join("log")));
    wait_for_word(&mut process, "its state is in");
    process
}
