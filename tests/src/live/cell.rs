//! Cells started by `andrew up` or `andrew serve`, as a process of the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::mount::wait_for_word;
use super::needs::{is_root, target};
use super::netns::Netns;
use super::process::{Daemon, run, run_any, seconds};
use super::residents::{Home, Residents};
use super::scratch::unmount;

/// The program under test: `$ANDREW`, else the quick build of this tree.
#[must_use]
pub fn andrew() -> PathBuf {
    std::env::var_os("ANDREW").map_or_else(|| target().join("quick/andrew"), PathBuf::from)
}

/// Options of a cell.
#[derive(Clone, Debug)]
pub struct CellOptions {
    /// Its name.
    pub cell: String,
    /// Where its servers listen.
    pub listen: String,
    /// Rights of `system:anyuser` in the top directory.
    pub anyuser: String,
    /// Further arguments of the command.
    pub more: Vec<String>,
}

impl CellOptions {
    /// A cell on loopback where the owner has all rights and others may read.
    #[must_use]
    pub fn on_loopback() -> Self {
        Self::at("127.0.0.1", "rl")
    }

    /// A cell at an address, with rights for `system:anyuser`.
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

/// A running cell; stopped when this is dropped.
#[derive(Debug)]
pub struct Cell {
    /// The process of the servers, and of the mount if there is one.
    pub process: Daemon,
    state: PathBuf,
    mount: Option<PathBuf>,
    residents: Option<Residents>,
}

impl Cell {
    /// Runs `andrew up`: a cell and its mount, in one process. Its state is below `folder`, and stays there. Its [`Residents`] look
    /// after theirs at each start and when it stops.
    ///
    /// # Panics
    /// If it does not start within half a minute, or the residents miss something.
    #[must_use]
    pub fn up(netns: &Netns, folder: &Path, options: &CellOptions) -> Self {
        let (state, mount) = (folder.join("state"), folder.join("afs"));
        let mut command = start(netns, "up", &state, options);
        command.arg("--mount").arg(&mount);
        if !options.more.iter().any(|word| word == "--allow-other") {
            command.arg("--allow-other");
        }
        let mut cell = Self::run(command, folder, state, Some(mount));
        let (name, servers) = (&*options.cell, &*options.listen);
        let home = Home { state: &cell.state, cell: name, servers, site: &[], top: cell.mount() };
        // Other users of the machine are root's to play.
        cell.residents = is_root().then(|| Residents::of(netns, folder, &home));
        cell
    }

    /// Runs `andrew serve`: a cell without a mount.
    ///
    /// # Panics
    /// If it does not start within half a minute.
    #[must_use]
    pub fn serve(netns: &Netns, folder: &Path, options: &CellOptions) -> Self {
        let state = folder.join("state");
        Self::run(start(netns, "serve", &state, options), folder, state, None)
    }

    fn run(command: Command, folder: &Path, state: PathBuf, mount: Option<PathBuf>) -> Self {
        // Each start has a log of its own, so that a line in it belongs to this start.
        let log = (0..).map(|n| folder.join(format!("cell{n}.log"))).find(|log| !log.exists());
        let mut process = Daemon::start(command, &log.unwrap_or_else(|| folder.join("cell.log")));
        wait_for_word(&mut process, "its state is in");
        Self { process, state, mount, residents: None }
    }

    /// The mount point of `andrew up`.
    ///
    /// # Panics
    /// If the command was `andrew serve`.
    #[must_use]
    pub fn mount(&self) -> &Path {
        self.mount.as_deref().unwrap_or_else(|| panic!("this cell has no mount"))
    }

    /// Its state directory.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Kills it with SIGKILL: it neither notifies clients nor cleans up.
    pub fn kill(&mut self) {
        self.process.kill();
        if let Some(mount) = &self.mount {
            unmount(mount);
        }
    }

    /// The user who lives in every cell logs in once more, at these servers.
    pub fn residents_log_in(&self, servers: &str) {
        self.residents.iter().for_each(|residents| residents.log_in(CELL, servers));
    }

    /// Stops it in an orderly way.
    ///
    /// # Panics
    /// If it fails.
    pub fn stop(mut self) {
        self.residents.take().iter().for_each(Residents::check);
        let status = self.process.end(seconds(60));
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", self.process.said());
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.process.is_over() {
            self.residents.iter().for_each(Residents::check);
        }
    }
}

fn start(netns: &Netns, verb: &str, state: &Path, options: &CellOptions) -> Command {
    let mut command = netns.command(andrew());
    command.arg(verb).arg("--state").arg(state).args(["--cell", &options.cell, "--listen", &options.listen]);
    command.args(["--anyuser", &options.anyuser]).args(&options.more);
    command
}

/// Runs an `andrew` command that must succeed; returns its output.
#[must_use]
pub fn command(netns: &Netns, words: &[&str]) -> String {
    let mut command = netns.command(andrew());
    command.args(words);
    run(command, seconds(60))
}

/// Runs an `andrew` command with any outcome.
#[must_use]
pub fn try_command(netns: &Netns, words: &[&str]) -> Output {
    let mut command = netns.command(andrew());
    command.args(words);
    run_any(command, seconds(60))
}

/// The name of the cells in these tests.
pub const CELL: &str = "live.test";
