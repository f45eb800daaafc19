//! Cells of ours: `andrew up` or `andrew serve`, as a process of the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::mount::wait_for_word;
use super::needs::target;
use super::netns::Netns;
use super::process::{Daemon, run, run_any, seconds};
use super::scratch::unmount;

/// The program under test: `$ANDREW`, else the release build of this tree.
#[must_use]
pub fn andrew() -> PathBuf {
    std::env::var_os("ANDREW").map_or_else(|| target().join("release/andrew"), PathBuf::from)
}

/// How a cell is to be started.
#[derive(Clone, Debug)]
pub struct CellOptions {
    /// Its name.
    pub cell: String,
    /// Where its servers listen.
    pub listen: String,
    /// Rights of everybody in the top directory.
    pub anyuser: String,
    /// Further words for the command.
    pub more: Vec<String>,
}

impl CellOptions {
    /// A cell on loopback where the owner may do everything and others may read.
    #[must_use]
    pub fn on_loopback() -> Self {
        Self::at("127.0.0.1", "rl")
    }

    /// A cell at an address, with rights for everybody.
    #[must_use]
    pub fn at(listen: &str, anyuser: &str) -> Self {
        Self {
            cell: CELL.to_owned(),
            listen: listen.to_owned(),
            anyuser: anyuser.to_owned(),
            more: Vec::new(),
        }
    }
}

/// A running cell. Stopped when this is dropped.
#[derive(Debug)]
pub struct Cell {
    /// The servers' process, and the mount's where there is one.
    pub process: Daemon,
    state: PathBuf,
    mount: Option<PathBuf>,
}

impl Cell {
    /// `andrew up`: a cell and its mount, in one process. What it keeps is below `folder`, and stays there.
    ///
    /// # Panics
    /// If it does not come up in half a minute.
    #[must_use]
    pub fn up(netns: &Netns, folder: &Path, options: &CellOptions) -> Self {
        let (state, mount) = (folder.join("state"), folder.join("afs"));
        let mut command = start(netns, "up", &state, options);
        command.arg("--mount").arg(&mount);
        Self::run(command, folder, state, Some(mount))
    }

    /// `andrew serve`: a cell without a mount.
    ///
    /// # Panics
    /// If it does not come up in half a minute.
    #[must_use]
    pub fn serve(netns: &Netns, folder: &Path, options: &CellOptions) -> Self {
        let state = folder.join("state");
        Self::run(start(netns, "serve", &state, options), folder, state, None)
    }

    fn run(command: Command, folder: &Path, state: PathBuf, mount: Option<PathBuf>) -> Self {
        // Each start has a log of its own, so that a word in it is of this start.
        let log = (0..).map(|n| folder.join(format!("cell{n}.log"))).find(|log| !log.exists());
        let mut process = Daemon::start(command, &log.unwrap_or_else(|| folder.join("cell.log")));
        wait_for_word(&mut process, "its state is in");
        Self { process, state, mount }
    }

    /// Where `andrew up` has mounted it.
    ///
    /// # Panics
    /// If it was `andrew serve`.
    #[must_use]
    pub fn mount(&self) -> &Path {
        self.mount.as_deref().unwrap_or_else(|| panic!("this cell has no mount"))
    }

    /// What it keeps.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Kills it where it stands: nothing is said to anybody, nothing is tidied up.
    pub fn kill(&mut self) {
        self.process.kill();
        if let Some(mount) = &self.mount {
            unmount(mount);
        }
    }

    /// Stops it in good order.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn stop(mut self) {
        let status = self.process.end(seconds(60));
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", self.process.said());
    }
}

fn start(netns: &Netns, verb: &str, state: &Path, options: &CellOptions) -> Command {
    let mut command = netns.command(andrew());
    command.arg(verb).arg("--state").arg(state).args(["--cell", &options.cell, "--listen", &options.listen]);
    command.args(["--anyuser", &options.anyuser]).args(&options.more);
    command
}

/// One `andrew` command that must succeed; answers what it prints.
#[must_use]
pub fn command(netns: &Netns, words: &[&str]) -> String {
    let mut command = netns.command(andrew());
    command.args(words);
    run(command, seconds(60))
}

/// One `andrew` command, whatever comes of it.
#[must_use]
pub fn try_command(netns: &Netns, words: &[&str]) -> Output {
    let mut command = netns.command(andrew());
    command.args(words);
    run_any(command, seconds(60))
}

/// The name of the cells in these tests.
pub const CELL: &str = "live.test";
