//! A site: a network of its own with a cell, its mount and a drive, which are started on copies of the original again and again.

use std::path::{Path, PathBuf};
use std::process::Output;

use andrew_tests::live::cell::{CELL, andrew, command};
use andrew_tests::live::join_key;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{Daemon, run, seconds};
use andrew_tests::live::scratch::unmount;
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;

/// Where the cell and the drive listen: each site has a network of its own.
pub const ADDRESS: &str = "127.0.0.1";
pub const DRIVE_AT: &str = "127.0.0.1:7010";
/// The user, and the private volume.
pub const USER: &str = "resident";

/// The user's id; the next one is another user's.
pub fn uid() -> u32 {
    900_000 + 2 * (std::process::id() % 100_000)
}

#[derive(Debug)]
pub struct Site {
    cell: Option<Daemon>,
    drive: Option<Daemon>,
    starts: u32,
    netns: Netns,
    folder: PathBuf,
}

impl Site {
    pub fn new(name: &str, folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        Self { cell: None, drive: None, starts: 0, netns: Netns::fresh(name), folder }
    }

    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub fn drive(&self) -> PathBuf {
        self.folder.join("drive")
    }

    fn mount(&self) -> PathBuf {
        self.folder.join("afs")
    }

    /// A name in the top directory of the cell.
    pub fn top(&self, name: &str) -> PathBuf {
        self.mount().join(name)
    }

    /// A file of the volume that all may use.
    pub fn file(&self, name: &str) -> PathBuf {
        self.mount().join("vol").join(name)
    }

    /// Runs a command that must succeed.
    pub fn command(&self, words: &[&str]) -> String {
        command(&self.netns, words)
    }

    /// Starts a new drive; returns the path of a file with its join key.
    pub fn start_drive_alone(&mut self) -> String {
        self.start_drive().unwrap();
        let said = self.said();
        join_key::file(&said, &self.path().join("join-key"))
    }

    /// Starts the drive, and the cell with its mount.
    ///
    /// # Errors
    /// One of them does not start: what it said.
    pub fn start(&mut self) -> Result<(), String> {
        if self.drive.is_none() {
            self.start_drive()?;
        }
        let mut command = self.netns.command(andrew());
        command.args([
            "up",
            "--cell",
            CELL,
            "--listen",
            ADDRESS,
            "--anyuser",
            "rl",
            "--allow-other",
            "--state",
        ]);
        command.arg(self.state()).arg("--mount").arg(self.mount());
        self.cell = Some(started(Daemon::start(command, &self.log("cell")), "its state is in")?);
        Ok(())
    }

    fn start_drive(&mut self) -> Result<(), String> {
        let mut command = self.netns.command(andrew());
        command.args(["drive", "serve", "--listen", DRIVE_AT, "--dir"]).arg(self.drive());
        self.drive = Some(started(Daemon::start(command, &self.log("drive")), "the drive listens at")?);
        Ok(())
    }

    /// Each start has a log of its own.
    fn log(&mut self, name: &str) -> PathBuf {
        self.starts += 1;
        self.folder.join(format!("{name}{}.log", self.starts))
    }

    /// What the programs that run have said.
    pub fn said(&self) -> String {
        self.drive.iter().chain(&self.cell).map(Daemon::said).collect()
    }

    pub fn log_in(&self) {
        User::known(&self.netns, &self.folder, USER, uid()).log_in(CELL, ADDRESS);
    }

    /// Gives the user the same home as at another site.
    pub fn take_users_of(&self, other: &Self) {
        let home = format!("home-of-{USER}");
        let mut copy = std::process::Command::new("cp");
        copy.arg("-a").arg(other.folder.join(&home)).arg(self.folder.join(&home));
        run(copy, seconds(20));
    }

    /// Runs a line of the shell, in which `$A` is the private volume.
    pub fn sh(&self, uid: u32, line: &str) -> Output {
        User::known(&self.netns, &self.folder, USER, uid).sh(&self.top(USER), line)
    }

    /// Stops the cell in order, with unsaved data left, and the drive.
    pub fn stop(&mut self) {
        let ended = self.cell.take().and_then(|mut cell| cell.end(seconds(60)));
        assert!(ended.is_some(), "it does not end");
        self.kill();
    }

    /// Kills both.
    pub fn kill(&mut self) {
        if let Some(mut cell) = self.cell.take() {
            cell.kill();
            unmount(&self.mount());
        }
        self.drive.take().iter_mut().for_each(Daemon::kill);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a program has said a word, or has ended.
fn started(mut daemon: Daemon, word: &str) -> Result<Daemon, String> {
    let is_up = until(&format!("'{word}' or an end"), seconds(60), || {
        let is_over = daemon.is_over();
        if daemon.said().contains(word) { Some(true) } else { is_over.then_some(false) }
    });
    if is_up { Ok(daemon) } else { Err(daemon.said()) }
}
