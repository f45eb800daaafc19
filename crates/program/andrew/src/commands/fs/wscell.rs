//! `andrew fs wscell`: the cell of the first mount.

use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::mounts;
use serde::Serialize;
use std::fmt;

/// Options of `andrew fs wscell`.
#[derive(clap::Args, Debug)]
pub struct Args {}

#[derive(Serialize)]
struct WorkstationCell {
    cell: String,
}

impl Args {
    /// Prints the cell of the first mount of Andrew's on this machine.
    ///
    /// # Errors
    /// There is no mount.
    pub fn run(self, json: bool) -> CommandResult {
        let first = mounts::list()?.into_iter().next();
        let mount = first.ok_or_else(|| {
            CommandError::failed("fs: no cell is mounted here; `andrew up` or `andrew mount` mounts one")
        })?;
        output::show(json, &WorkstationCell { cell: mount.source });
        Ok(())
    }
}

impl fmt::Display for WorkstationCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "This workstation belongs to cell '{}'", self.cell)
    }
}
