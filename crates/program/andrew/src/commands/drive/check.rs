//! `andrew drive check`: reads everything on a drive.

use super::unexpected;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveCheck, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Reads one chunk at a time. Status 1 if anything is damaged.

Examples:
  andrew drive check big")]
pub struct Args {
    /// Name of the drive; local is the disk of the partitions
    #[arg(value_name = "NAME|local")]
    name: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Checked(DriveCheck);

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let DriveAnswer::Checked(checked) = ask(DriveRequest::Check { name: self.name })? else {
            return Err(unexpected());
        };
        let bad = checked.bad;
        output::show(json, &Checked(checked));
        match bad {
            0 => Ok(()),
            _ => Err(CommandError::failed(format!("drive: {bad} chunks are damaged or missing"))),
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} chunks with {} MiB were read, {} are bad",
            self.0.chunks,
            self.0.bytes >> 20,
            self.0.bad
        )?;
        self.0.first_bad.iter().try_for_each(|bad| writeln!(f, "  {bad}"))
    }
}
