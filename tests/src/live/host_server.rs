//! One host of a cell that runs `andrew serve --config`: beside other Andrew servers, or in a cell of OpenAFS's.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::cell::andrew;
use super::mount::wait_for_word;
use super::netns::Netns;
use super::process::{Daemon, seconds};

/// Options of a host.
#[derive(Clone, Debug)]
pub struct HostOptions<'a> {
    /// The cell.
    pub cell: &'a str,
    /// Its address.
    pub listen: &'a str,
    /// Addresses of the cell's database servers; if empty, this host is the only one, and creates a key for rxkad.
    pub databases: &'a [&'a str],
    /// File with the cell's keys, if they are not in its own state directory.
    pub key_file: Option<&'a Path>,
    /// Letters of its partitions.
    pub partitions: &'a [&'a str],
}

/// A running host; stopped when this is dropped, while its state stays in its folder.
#[derive(Debug)]
pub struct HostServer {
    /// Its process.
    pub process: Daemon,
    netns: Netns,
    folder: PathBuf,
}

impl HostServer {
    /// Starts a host with its state below `folder`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(netns: Netns, folder: &Path, options: &HostOptions<'_>) -> Self {
        let made = std::fs::create_dir_all(folder);
        let written = made.and_then(|()| std::fs::write(folder.join("server.toml"), options.file()));
        written.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let process = run(&netns, folder);
        Self { process, netns, folder: folder.to_owned() }
    }

    /// Folder of its state.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its key file, if that is in its own state directory.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys/KeyFileExt")
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again, after it was killed or stopped.
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
    // Each start has a log of its own, so that a line in it belongs to this start.
    let log = (0..).map(|n| folder.join(format!("log{n}"))).find(|log| !log.exists());
    let mut process = Daemon::start(command, &log.unwrap_or_else(|| folder.join("log")));
    wait_for_word(&mut process, "its state is in");
    process
}
