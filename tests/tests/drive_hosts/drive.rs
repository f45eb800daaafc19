//! A drive on a host: the process `andrew drive serve`, which can be killed and started again.

use std::path::{Path, PathBuf};

use andrew_tests::live::cell::andrew;
use andrew_tests::live::join_key;
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, seconds};

/// A drive, with its directory.
pub struct Drive {
    pub name: &'static str,
    pub address: String,
    netns: Netns,
    directory: PathBuf,
    process: Daemon,
}

impl Drive {
    pub fn start(netns: Netns, folder: &Path, name: &'static str, address: &str) -> Self {
        let directory = folder.join(format!("drive-{name}"));
        let process = serve(&netns, &directory, address);
        Self { name, address: address.to_owned(), netns, directory, process }
    }

    /// File with what a file server needs to take it.
    pub fn join_key_file(&self) -> String {
        join_key::file(&self.process.said(), &self.directory.with_extension("join-key"))
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn again(&mut self) {
        self.process.end(seconds(10));
        self.process = serve(&self.netns, &self.directory, &self.address);
    }
}

fn serve(netns: &Netns, directory: &Path, address: &str) -> Daemon {
    let mut command = netns.command(andrew());
    command.args(["drive", "serve", "--listen", address, "--dir"]).arg(directory);
    // Each start has a log of its own.
    let log = (0..).map(|n| directory.with_extension(format!("log{n}"))).find(|log| !log.exists());
    let mut process = Daemon::start(command, &log.unwrap());
    wait_for_word(&mut process, "the drive listens at");
    process
}
