//! Mounts of a cell by `andrew mount`, as processes of the test.

use std::path::{Path, PathBuf};

use super::cell::andrew;
use super::netns::Netns;
use super::process::{Daemon, seconds};
use super::scratch::unmount;
use super::user::User;
use super::wait::until;

/// A running client; unmounted when this is dropped.
#[derive(Debug)]
pub struct Mount {
    /// The client's process.
    pub process: Daemon,
    folder: PathBuf,
}

impl Mount {
    /// Mounts the cell with location servers at `servers` on `folder`/`name`, with a cache beside it.
    ///
    /// # Panics
    /// If it is not mounted within two minutes.
    #[must_use]
    pub fn new(netns: &Netns, cell: &str, servers: &str, folder: &Path, name: &str, more: &[&str]) -> Self {
        let point = folder.join(name);
        let mut command = netns.command(andrew());
        command.args(["mount", "--cell", cell, "--servers", servers, "--cache"]);
        command.arg(folder.join(format!("{name}.cache"))).args(more).arg(&point);
        let mut process = Daemon::start(command, &new_log(folder, name));
        wait_for_word(&mut process, "its cache is in");
        Self { process, folder: point }
    }

    /// A user's own mount of the cell, on a directory in the user's home with that name. The kernel reads and writes none of its cache files
    /// itself.
    ///
    /// # Panics
    /// As [`Mount::new`].
    #[must_use]
    pub fn of_user(user: &User<'_>, cell: &str, servers: &str, name: &str) -> Self {
        Self::of_user_with(user, cell, servers, name, &[])
    }

    /// The same with more options.
    ///
    /// # Panics
    /// As [`Mount::new`].
    #[must_use]
    pub fn of_user_with(user: &User<'_>, cell: &str, servers: &str, name: &str, more: &[&str]) -> Self {
        let (point, cache) = (user.home().join(name), user.home().join(format!("{name}.cache")));
        let (shown, cache) = (point.display().to_string(), cache.display().to_string());
        let words = ["mount", "--cell", cell, "--servers", servers, "--cache", &cache, &shown];
        let command = user.command(&andrew().display().to_string(), &[&words, more].concat());
        let mut process = Daemon::start(command, &new_log(user.home(), name));
        wait_for_word(&mut process, "its cache is in");
        Self { process, folder: point }
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Kills the client with SIGKILL, and unmounts the dead mount.
    pub fn kill(&mut self) {
        self.process.kill();
        unmount(&self.folder);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.process.end(seconds(20));
        unmount(&self.folder);
    }
}

/// A log of its own for each start.
fn new_log(folder: &Path, name: &str) -> PathBuf {
    let log = (0..).map(|n| folder.join(format!("{name}{n}.log"))).find(|log| !log.exists());
    log.unwrap_or_else(|| folder.join("mount.log"))
}

/// Waits for a word in the output of a starting process.
///
/// # Panics
/// If the process ends, or has not printed it after two minutes.
pub fn wait_for_word(process: &mut Daemon, word: &str) {
    until(&format!("'{word}' from a process that starts"), seconds(120), || {
        let said = process.said();
        let is_over = process.is_over();
        if said.contains(word) && !is_over {
            return Some(());
        }
        assert!(!is_over, "it ended instead of saying '{word}':\n{said}");
        None
    });
}
