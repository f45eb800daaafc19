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
What is stored stays where it is, and is read from there. A store is complete when it is durable on the drive; copies are made in
the background, within about a minute, of old data too, and are read where the drive is away or has damage. `andrew vos setcopies` and
`andrew vos setwidth` have the stores of a volume wait for several of these drives, and large files go round them.

Examples:
  andrew drive use big
  andrew drive use big --copy other
  andrew drive use local --partition a")]
pub struct Args {
    /// Name of the drive; local is the disk of the partition
    #[arg(value_name = "NAME|local")]
    name: String,
    /// A drive that takes copies of all data, in the background; at most two
    #[arg(long = "copy", value_name = "NAME|local")]
    copies: Vec<String>,
    /// Permit two of the drives on one host
    #[arg(long)]
    same_host: bool,
    /// The partition [default: all of this host]
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
}

#[derive(Serialize)]
struct Used {
    name: String,
    copies: Vec<String>,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let Self { name, partition, copies, same_host } = self;
        let request = DriveRequest::Use { name: name.clone(), partition, copies: copies.clone(), same_host };
        match ask(request)? {
            DriveAnswer::Done => output::show(json, &Used { name, copies }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "new data go to drive {}", self.name)?;
        match self.copies.is_empty() {
            true => Ok(()),
            false => writeln!(f, "copies of all data are made on {}", self.copies.join(" and ")),
        }
    }
}
