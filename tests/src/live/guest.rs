//! Linux kernel with its own AFS client, in an emulated machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::needs::{peer, target};
use super::netns::PATH;
use super::peers::Hosts;
use super::process::{run, run_any, seconds};

/// A machine on the bridge of some hosts, at .50, whose kernel has a cell's volume root.cell mounted on `/afs`.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    hosts: &'a Hosts,
    cell: &'a str,
    servers: &'a str,
    share: Option<&'a Path>,
}

impl<'a> Guest<'a> {
    /// A guest for the cell with location servers at `servers`.
    #[must_use]
    pub fn new(hosts: &'a Hosts, cell: &'a str, servers: &'a str) -> Self {
        Self { hosts, cell, servers, share: None }
    }

    /// Shares a folder of this machine as `/share`, for reading and writing.
    #[must_use]
    pub fn with_share(self, folder: &'a Path) -> Self {
        Self { share: Some(folder), ..self }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> String {
        self.hosts.address(50)
    }

    /// Boots it, and runs a shell script in it as root: without a token, in a session keyring of its own.
    #[must_use]
    pub fn run(&self, script: &str) -> Output {
        build();
        let address = format!("{}/24", self.address());
        let mut command = guest("run");
        command.args(["--bridge", &self.hosts.bridge(), "--ip", &address]);
        command.args(["--afs-cell", self.cell, "--vlserver", self.servers, "--timeout", "240"]);
        if let Some(folder) = self.share {
            command.arg("--share").arg(folder);
        }
        command.args(["--", "bash", "-euc", script]);
        run_any(command, seconds(300))
    }
}

/// Builds the guest's kernel and programs once, and again when the scripts that build them have changed.
fn build() {
    if std::env::var_os(CHOSEN).is_none() {
        let mut command = guest("build");
        command.arg("--once");
        run(command, seconds(900));
    }
}

fn guest(verb: &str) -> Command {
    let mut command = Command::new(peer("guest"));
    command.env("PATH", PATH).arg(verb).arg("--state").arg(state());
    command
}

/// Directory of the guest: `$ANDREW_GUEST` (for another kernel, made with `guest build --kernel ... --state ...`), else
/// `target/guest`.
fn state() -> PathBuf {
    std::env::var_os(CHOSEN).map_or_else(|| target().join("guest"), PathBuf::from)
}

const CHOSEN: &str = "ANDREW_GUEST";
