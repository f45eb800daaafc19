//! Test kit: a home directory of its own for a test, from which no other cell, mount or token of this machine is
//! visible.
#![allow(clippy::unwrap_used, dead_code)]

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_andrew"));
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

/// A base port whose following ports are free too. Each test searches in a range of its own.
pub fn free_ports(range: u16) -> u16 {
    let free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
    (range..range + 1000).step_by(8).find(|base| (0..8).all(|n| free(base + n))).unwrap()
}
