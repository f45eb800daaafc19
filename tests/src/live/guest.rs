//! The AFS client of the Linux kernel, in an emulated machine.

use std::path::PathBuf;
use std::process::{Command, Output};

use super::needs::{peers, target};
use super::netns::PATH;
use super::peers::Hosts;
use super::process::{run, run_any, seconds};

/// Runs a shell script as root in the guest, with `cell`'s volume root.cell mounted on /afs by the kernel's client.
pub fn run_in_guest(hosts: &Hosts, cell: &str, server: &str, script: &str) -> Output {
    build();
    let address = format!("{}/24", hosts.address(50));
    let mut command = guest("run");
    command.args(["--netns", "-", "--bridge", &hosts.bridge(), "--ip", &address]);
    command.args(["--afs-cell", cell, "--vlserver", server, "--timeout", "240"]);
    command.args(["--", "bash", "-euc", script]);
    run_any(command, seconds(300))
}

/// The guest's kernel and programs are made once.
fn build() {
    if !state().join("vmlinux").exists() {
        run(guest("build"), seconds(900));
    }
}

fn guest(verb: &str) -> Command {
    let mut command = Command::new("bash");
    command.env("PATH", PATH).arg(peers().join("guest")).arg(verb).arg("--state").arg(state());
    command
}

/// Where the guest is: `$ANDREW_GUEST` (for one with another kernel, made with `guest build --kernel ... --state ...`),
/// else `target/guest`.
fn state() -> PathBuf {
    std::env::var_os("ANDREW_GUEST").map_or_else(|| target().join("guest"), PathBuf::from)
}
