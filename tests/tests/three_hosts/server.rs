//! A host of the cell: its etcd, its `andrew serve`, and commands run on it.

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
    /// The host with that number. No process runs on it yet.
    pub fn new(bridge: &Bridge, folder: &Path, number: u8) -> Self {
        let home = folder.join(format!("h{number}"));
        std::fs::create_dir_all(&home).unwrap();
        Self { etcd: None, process: None, host: bridge.host(number), home }
    }

    pub fn address(&self) -> &str {
        self.host.address()
    }

    /// Its state directory: the default path.
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

    /// A command that must succeed; returns its output.
    pub fn andrew(&self, words: &[&str]) -> String {
        run(self.command(words), seconds(60))
    }

    /// A command that may fail.
    pub fn try_andrew(&self, words: &[&str]) -> Output {
        run_any(self.command(words), seconds(60))
    }

    /// `andrew serve`, in a process of the test's own, so that it can be killed.
    pub fn serve(&mut self, words: &[&str]) {
        self.start(&[&["serve"], words].concat());
    }

    /// `andrew serve` or `andrew up`, given with all arguments.
    pub fn start(&mut self, words: &[&str]) {
        let log = (0..).map(|n| self.home.join(format!("serve{n}.log"))).find(|log| !log.exists()).unwrap();
        let mut process = Daemon::start(self.command(words), &log);
        wait_for_word(&mut process, "its state is in");
        self.process = Some(process);
    }

    /// `andrew serve` with its existing configuration.
    pub fn serve_as_configured(&mut self) {
        let config = self.state().join("server.toml");
        self.serve(&["--config", config.to_str().unwrap()]);
    }

    /// Kills all its processes.
    pub fn kill(&mut self) {
        self.process.as_mut().unwrap().kill();
        self.etcd.as_mut().unwrap().kill();
    }

    /// Starts all its processes again.
    pub fn again(&mut self) {
        self.etcd.as_mut().unwrap().again(self.host.netns());
        self.serve_as_configured();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that can no longer reach its etcd would take long to stop.
        self.process.take();
        self.etcd.take();
    }
}
