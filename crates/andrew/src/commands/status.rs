//! `andrew status`.

use crate::error::CommandResult;
use crate::mounts::{self, Mount};
use crate::output;
use crate::state::{Running, StateDir};
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
    state: PathBuf,
    cell: Option<Running>,
    mounts: Vec<Mount>,
}

impl Args {
    /// Prints the cell that runs on the state directory, and every mount of ours on this machine.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub fn run(self, json: bool) -> CommandResult {
        let state = StateDir::resolve(self.state.as_deref())?;
        let answer =
            Answer { state: state.path().to_owned(), cell: state.running()?, mounts: mounts::list()? };
        output::show(json, &answer);
        Ok(())
    }
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
        for mount in &self.mounts {
            writeln!(f, "cell {} is mounted at {}", mount.source, mount.directory.display())?;
        }
        Ok(())
    }
}
