//! `andrew drive drain`: moves everything on a drive to another one.

use super::unexpected;
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::plain::plain;
use afs_cell::drives::{DrainLine, DrainState, DriveAnswer, DriveRequest};
use serde::Serialize;
use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

/// How often progress is asked for.
const POLL: Duration = Duration::from_secs(1);

/// Options of `andrew drive drain`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file server moves the data of all volumes and their snapshots while they are used; nothing of them changes. It resumes after a
restart, and ends when the drive is empty. The command starts it, or tells how far it is. New data must go to another drive.

Examples:
  andrew drive use local && andrew drive drain big --wait && andrew drive remove big
  andrew drive drain big --to other --rate 20
  andrew drive drain big --cancel")]
pub struct Args {
    /// Name of the drive; local is the disk of the partitions
    #[arg(value_name = "NAME|local")]
    name: String,
    /// The drive that takes the data [default: the one that takes new data]
    #[arg(long, value_name = "NAME|local", conflicts_with = "cancel")]
    to: Option<String>,
    /// MiB a second at most [default: 64]
    #[arg(long, value_name = "MIB", conflicts_with = "cancel", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    rate: Option<u64>,
    /// Wait until nothing is on the drive; if interrupted, the file server goes on
    #[arg(long, conflicts_with = "cancel")]
    wait: bool,
    /// End it; what was moved stays where it is
    #[arg(long)]
    cancel: bool,
}

#[derive(Serialize)]
struct Draining {
    name: String,
    #[serde(flatten)]
    line: DrainLine,
}

#[derive(Serialize)]
struct Cancelled {
    name: String,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let Self { name, to, rate, wait, cancel } = self;
        if cancel {
            let DriveAnswer::Done = ask(DriveRequest::CancelDrain { name: name.clone() })? else {
                return Err(unexpected());
            };
            output::show(json, &Cancelled { name });
            return Ok(());
        }
        let rate = rate.map(|mebibytes| mebibytes << 20);
        let mut line = drain(ask(DriveRequest::Drain { name: name.clone(), to, rate })?)?;
        let shows = std::io::stderr().is_terminal() && !json;
        while wait && line.state == DrainState::Draining {
            if shows {
                eprint!("\r{}\x1b[K", plain(&DrainText(&line).to_string()));
            }
            std::thread::sleep(POLL);
            line = drain(ask(DriveRequest::Drained { name: name.clone() })?)?;
        }
        if shows && wait {
            eprint!("\r\x1b[K");
        }
        output::show(json, &Draining { name, line });
        Ok(())
    }
}

fn drain(answer: DriveAnswer) -> Result<DrainLine, CommandError> {
    match answer {
        DriveAnswer::Drain(line) => Ok(line),
        _ => Err(unexpected()),
    }
}

/// A drain in a few words.
pub(super) struct DrainText<'a>(pub(super) &'a DrainLine);

impl fmt::Display for DrainText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.0;
        match line.state {
            DrainState::Drained => write!(f, "drained, {} MiB moved", line.moved_bytes >> 20)?,
            DrainState::Draining => write!(
                f,
                "draining, {} MiB moved, {} chunks with {} MiB left",
                line.moved_bytes >> 20,
                line.left_chunks,
                line.left_bytes >> 20
            )?,
        }
        if line.bad > 0 {
            write!(f, ", {} are damaged", line.bad)?;
        }
        line.problem.iter().try_for_each(|problem| write!(f, " (waits: {problem})"))
    }
}

impl fmt::Display for Draining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, DrainText(&self.line))
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "drive {} is not drained any longer; what was moved stays where it is", self.name)
    }
}
