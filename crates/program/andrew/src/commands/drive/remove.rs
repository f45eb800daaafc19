//! `andrew drive remove`: removes a drive on which nothing is.

use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive remove`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Refused while new data go to the drive, or a file or a snapshot has bytes on it: `andrew drive drain` moves them.

Examples:
  andrew drive use local && andrew drive drain big --wait && andrew drive remove big")]
pub struct Args {
    /// Name of the drive
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Serialize)]
struct Removed {
    name: String,
    /// Why something of it remains in its bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let name = self.name;
        match ask(DriveRequest::Remove { name: name.clone() })? {
            DriveAnswer::Removed { left } => output::show(json, &Removed { name, left }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "drive {} is removed; a directory of it on another host can be deleted", self.name)?;
        match &self.left {
            Some(why) => writeln!(f, "objects of it remain in its bucket, and can be deleted: {why}"),
            None => Ok(()),
        }
    }
}
