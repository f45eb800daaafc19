//! A host of the cell: its etcd, its `andrew serve`, and the commands of whoever works on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use andrew_tests::live::bridge::{Bridge, Host};
use andrew_tests::live::cell::andrew;
use andrew_tests::live::etcd::Etcd;
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::process::{Daemon, run, run_any, seconds};

/// A host, with a home directory of its own.
#[derive(Debug)]
pub struct Server {
    pub etcd: Option<Etcd>,
    pub process: Option<Daemon>,
    pub host: Host,
    pub home: PathBuf,
}

impl Server {
    /// The host with that number. Nothing runs on it yet.
    pub fn new(bridge: &Bridge, folder: &Path, number: u8) -> Self {
        let home = folder.join(format!("h{number}"));
        std::fs::create_dir_all(&home).unwrap();
        Self { etcd: None, process: None, host: bridge.host(number), home }
    }

    pub fn address(&self) -> &str {
        self.host.address()
    }

    /// Where it keeps what it knows: the usual place.
    pub fn state(&self) -> PathBuf {
        self.home.join(".local/state/andrew")
    }

    /// `andrew` on this host, as its administrator types it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.netns().command(andrew());
        command.env("HOME", &self.home).env("XDG_RUNTIME_DIR", self.home.join("run"));
        command
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(&self.home)
            .args(words);
        command
    }

    /// A command that must succeed; answers what it prints.
    pub fn andrew(&self, words: &[&str]) -> String {
        run(self.command(words), seconds(60))
    }

    /// A command, whatever comes of it.
    pub fn try_andrew(&self, words: &[&str]) -> Output {
        run_any(self.command(words), seconds(60))
    }

    /// `andrew serve`, in a process of the test's own, so that it can be killed.
    pub fn serve(&mut self, words: &[&str]) {
        self.start(&[&["serve"], words].concat());
    }

    /// `andrew serve` or `andrew up`, with all their words.
    pub fn start(&mut self, words: &[&str]) {
        let log = (0..).map(|n| self.home.join(format!("serve{n}.log"))).find(|log| !log.exists()).unwrap();
        let mut process = Daemon::start(self.command(words), &log);
        wait_for_word(&mut process, "its state is in");
        self.process = Some(process);
    }

    /// `andrew serve` with the configuration that it has.
    pub fn serve_as_configured(&mut self) {
        let config = self.state().join("server.toml");
        self.serve(&["--config", config.to_str().unwrap()]);
    }

    /// Kills all that runs on it where it stands.
    pub fn kill(&mut self) {
        self.process.as_mut().unwrap().kill();
        self.etcd.as_mut().unwrap().kill();
    }

    /// Starts all that ran on it.
    pub fn again(&mut self) {
        self.etcd.as_mut().unwrap().again(self.host.netns());
        self.serve_as_configured();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that cannot reach its etcd any more would take its time to stop.
        self.process.take();
        self.etcd.take();
    }
}
