//! Users of the machine who are users of the cell, too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::cell::{andrew, command};
use super::netns::Netns;
use super::process::{run, run_any, seconds};

/// One user: a user id without an account on the machine, a name and a passphrase in the cell.
#[derive(Debug)]
pub struct User<'a> {
    netns: &'a Netns,
    uid: u32,
    name: String,
    home: PathBuf,
}

impl<'a> User<'a> {
    /// Creates a user of the cell with this state directory, and a home directory for the user id, in `folder`.
    ///
    /// # Panics
    /// If the cell or the machine refuses.
    #[must_use]
    pub fn new(netns: &'a Netns, state: &Path, folder: &Path, name: &str, uid: u32) -> Self {
        let user = Self::known(netns, folder, name, uid);
        if let Err(error) = user.make_home() {
            panic!("{}: {error}", user.home.display());
        }
        let (state, secret) = (state.display().to_string(), user.secret());
        let _ = command(netns, &["pts", "createuser", name, "--state", &state]);
        let _ = command(netns, &["passwd", name, "--state", &state, "--passphrase-file", &secret]);
        if let Err(error) = chown(&secret, Some(uid), Some(uid)) {
            panic!("{secret}: {error}");
        }
        user
    }

    /// A user of the machine who was created in `folder` before, or is none of the cell's.
    #[must_use]
    pub fn known(netns: &'a Netns, folder: &Path, name: &str, uid: u32) -> Self {
        Self { netns, uid, name: name.to_owned(), home: folder.join(format!("home-of-{name}")) }
    }

    fn make_home(&self) -> std::io::Result<()> {
        fs::create_dir(&self.home)?;
        let secret = self.secret();
        fs::write(&secret, "correct horse battery")?;
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
        chown(&self.home, Some(self.uid), Some(self.uid))
    }

    fn secret(&self) -> String {
        self.home.join("passphrase").display().to_string()
    }

    /// Home directory of the user.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A command that runs a program as this user.
    #[must_use]
    pub fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = self.netns.command("setpriv");
        let uid = self.uid.to_string();
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", program]).args(words);
        command.env("HOME", &self.home).current_dir("/");
        command
    }

    /// Runs a line of the shell, in which `$A` is `path`.
    #[must_use]
    pub fn sh(&self, path: &Path, line: &str) -> Output {
        let mut command = self.command("sh", &["-c", line]);
        command.env("A", path);
        run_any(command, seconds(60))
    }

    /// Runs an `andrew` command that must succeed.
    ///
    /// # Panics
    /// If it fails.
    pub fn andrew(&self, words: &[&str]) -> String {
        run(self.command(&andrew().display().to_string(), words), seconds(60))
    }

    /// Runs an `andrew` command with any outcome.
    #[must_use]
    pub fn andrew_any(&self, words: &[&str]) -> Output {
        run_any(self.command(&andrew().display().to_string(), words), seconds(60))
    }

    /// Logs in to the cell; all mounts of the machine that the user trusts get the token.
    ///
    /// # Panics
    /// If the login fails.
    pub fn log_in(&self, cell: &str, servers: &str) {
        let secret = self.secret();
        let words = ["login", &self.name, "--cell", cell, "--servers", servers, "--passphrase-file", &secret];
        let said = self.andrew(&words);
        assert!(said.contains("logged in"), "{said}");
    }
}
