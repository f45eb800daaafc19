//! `andrew drive use`: which drive takes new data.

use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive use`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is stored stays where it is, and is read from there.

Examples:
  andrew drive use big
  andrew drive use local --partition a")]
pub struct Args {
    /// Name of the drive; local is the disk of the partition
    #[arg(value_name = "NAME|local")]
    name: String,
    /// The partition [default: all of this host]
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
}

#[derive(Serialize)]
struct Used {
    name: String,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let Self { name, partition } = self;
        match ask(DriveRequest::Use { name: name.clone(), partition })? {
            DriveAnswer::Done => output::show(json, &Used { name }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "new data go to drive {}", self.name)
    }
}
