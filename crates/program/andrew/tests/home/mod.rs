//! Test kit: a home directory of its own for a test, from which no other cell, mount or token of this machine is
//! visible.
#![allow(clippy::unwrap_used, dead_code)]

use std::fs::File;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Variables through which a command would find other cells, mounts and tokens of this machine.
const OTHERS: [&str; 8] = [
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
    "ANDREW_TOKENS",
    "ANDREW_SESSION",
    "ANDREW_STATE",
];

/// A temporary home directory. Cells started in it are stopped when it is dropped.
pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A command that is not started yet.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.args(words).current_dir(self.path()).env("HOME", self.path()).env("USER", "admin");
        OTHERS.iter().for_each(|name| _ = command.env_remove(name));
        command.env("ANDREW_RUN", self.path().join("run"));
        command
    }

    /// Runs a command to its end, with any outcome. Words are separated by blanks.
    pub fn run(&self, line: &str) -> Output {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        self.command(&words).output().unwrap()
    }

    /// Output of a command that must succeed.
    pub fn done(&self, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "andrew {line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Error line of a command that must fail with this status.
    pub fn refused(&self, status: i32, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "andrew {line}: {said}");
        assert_eq!(said.lines().count(), 1, "andrew {line}: {said}");
        said
    }

    /// Path of a file in the home directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let states = std::fs::read_dir(self.path()).into_iter().flatten().flatten().map(|entry| entry.path());
        for state in states.chain([self.file(".local/state/andrew")]).filter(|s| s.join("lock").exists()) {
            let state = state.display().to_string();
            let _ = self.command(&["down", "--state", &state]).output();
        }
    }
}

/// A base port whose following ports are free too, and stay this process's: its number is locked while the process lives, since
/// tests that run at the same time are processes of their own. Below the range that the kernel gives to clients.
pub fn free_ports() -> u16 {
    let free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
    (20_000..32_000).step_by(8).find(|base| claimed(*base) && (0..8).all(|n| free(base + n))).unwrap()
}

fn claimed(base: u16) -> bool {
    let path = std::env::temp_dir().join(format!("andrew-tests-ports-{base}.lock"));
    let Ok(file) = File::options().create(true).truncate(false).write(true).open(path) else { return false };
    let locked = file.try_lock().is_ok();
    if locked {
        std::mem::forget(file);
    }
    locked
}
