//! `andrew status`.

use crate::cell::{Look, PartitionScrub};
use crate::commands::vos::dates;
use crate::control::ControlClient;
use crate::error::CommandResult;
use crate::mounts::{self, Mount};
use crate::output;
use crate::state::{Running, StateDir};
use afs_wire::ids::UnixSeconds;
use indicatif::HumanBytes;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew status\n  andrew status --json | jq .cell.pid")]
pub struct Args {
    /// State directory of the cell [default: ~/.local/state/andrew]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(serialize_with = "crate::output::path")]
    state: PathBuf,
    cell: Option<Running>,
    /// The looks for damage, by partition.
    scrubs: Vec<PartitionScrub>,
    mounts: Vec<Mount>,
}

impl Args {
    /// Prints the cell that runs on the state directory, and every mount of ours on this machine.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub fn run(self, json: bool) -> CommandResult {
        let state = StateDir::resolve(self.state.as_deref())?;
        let cell = state.running()?;
        let scrubs = if cell.is_some() { scrubs(&state) } else { Vec::new() };
        let answer = Answer { state: state.path().to_owned(), cell, scrubs, mounts: mounts::list()? };
        output::show(json, &answer);
        Ok(())
    }
}

/// Nothing where this user may not ask.
fn scrubs(state: &StateDir) -> Vec<PartitionScrub> {
    ControlClient::of(state).ok().and_then(|mut cell| cell.scrubs().ok()).unwrap_or_default()
}

/// What there is to say of a partition's data.
fn data(f: &mut fmt::Formatter<'_>, scrub: &PartitionScrub) -> fmt::Result {
    let Some(look) = scrub.now.or(scrub.last) else { return Ok(()) };
    let Look { began, ended, bytes, damaged, repaired } = look;
    let (when, read) = (if ended == 0 { began } else { ended }, HumanBytes(bytes));
    let when = dates::show(UnixSeconds(when));
    let verb = if ended == 0 { "being looked at since" } else { "looked at until" };
    write!(f, "data of partition {} {verb} {when}: {read} read", scrub.partition)?;
    match damaged {
        0 => writeln!(f, ", nothing damaged")?,
        _ => writeln!(f, ", {damaged} damaged, {repaired} of them repaired from replicas")?,
    }
    scrub.damaged.iter().try_for_each(|line| writeln!(f, "  damaged: {line}"))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cell {
            Some(cell) => {
                writeln!(f, "cell {} runs as process {} on {}", cell.cell, cell.pid, self.state.display())?;
                writeln!(f, "servers at {}, ports from {}", cell.listen, cell.base_port)?;
            }
            None => writeln!(f, "no cell runs on {}; `andrew up` starts one", self.state.display())?,
        }
        self.scrubs.iter().try_for_each(|scrub| data(f, scrub))?;
        for mount in &self.mounts {
            writeln!(f, "cell {} is mounted at {}", mount.source, mount.directory.display())?;
        }
        Ok(())
    }
}
