//! Network namespaces, so that each cell has ports and addresses of its own.

use std::process::Command;

use super::process::{run, seconds};
use super::scratch::run_directory;

/// Search path for programs, independent of the caller's.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A network namespace. One that was created here is removed when this is dropped.
#[derive(Debug)]
pub struct Netns {
    /// `None`: the namespace of this test.
    name: Option<String>,
    made_here: bool,
    /// A process with mounts of its own, which the commands see.
    mounts_of: Option<u32>,
}

impl Netns {
    /// The same namespace for another user, who does not remove it.
    #[must_use]
    pub fn alias(&self) -> Self {
        Self { name: self.name.clone(), made_here: false, mounts_of: self.mounts_of }
    }

    /// Creates a namespace with nothing but its own loopback; replaces one with that name of an earlier run.
    #[must_use]
    pub fn fresh(name: &str) -> Self {
        let _ = Command::new("ip").env("PATH", PATH).args(["netns", "del", name]).output();
        run(ip(&["netns", "add", name]), seconds(60));
        run(ip(&["-n", name, "link", "set", "lo", "up"]), seconds(60));
        Self { name: Some(name.to_owned()), made_here: true, mounts_of: None }
    }

    /// An existing namespace, which this does not remove.
    #[must_use]
    pub fn existing(name: &str) -> Self {
        Self { name: Some(name.to_owned()), made_here: false, mounts_of: None }
    }

    /// The namespace of this test: it needs no root, and its sockets reach the cell. Such a cell listens at an address
    /// of its own ([`own_address`](super::loopback::own_address)).
    #[must_use]
    pub fn machine() -> Self {
        Self { name: None, made_here: false, mounts_of: None }
    }

    /// The same, with the mounts that a process sees.
    #[must_use]
    pub fn with_mounts_of(&self, process: u32) -> Self {
        Self { name: self.name.clone(), made_here: false, mounts_of: Some(process) }
    }

    /// Command that runs `program` in this namespace, with the machine's own files but for the sockets of mounts, which are this
    /// test's alone.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let network = self.name.as_ref().map(|name| format!("--net=/run/netns/{name}"));
        let mounts = self.mounts_of.map(|process| format!("--mount=/proc/{process}/ns/mnt"));
        let namespaces: Vec<String> = network.into_iter().chain(mounts).collect();
        let mut command = match namespaces.is_empty() {
            true => Command::new(program),
            false => {
                let mut command = Command::new("nsenter");
                command.args(namespaces).arg(program);
                command
            }
        };
        command.env("PATH", PATH);
        if let Some(run) = run_directory() {
            command.env("ANDREW_RUN", run);
        }
        command
    }
}

impl Netns {
    /// Runs `work` on a thread of this process that is in the namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.name {
            Some(name) => super::netns_thread::in_namespace(name, work),
            None => work(),
        }
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let (Some(name), true) = (&self.name, self.made_here) {
            let _ = ip(&["netns", "del", name]).output();
        }
    }
}

fn ip(arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.env("PATH", PATH).args(arguments);
    command
}
