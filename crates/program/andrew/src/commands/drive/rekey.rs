//! `andrew drive rekey`: gives a drive another key.

use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive rekey`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file server does this by itself when a key is 30 days old (rekey_days in server.toml). Programs notice nothing. Whoever had the
earlier key can do nothing with it any more. Interrupted, it is completed within an hour, or by the same command; `andrew drive list`
shows the epoch and the age of each key.

Examples:
  andrew drive rekey big")]
pub struct Args {
    /// Name of the drive, which is one on another host
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Serialize)]
struct Rekeyed {
    name: String,
}

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        let name = self.name;
        match ask(DriveRequest::Rekey { name: name.clone() })? {
            DriveAnswer::Done => output::show(json, &Rekeyed { name }),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Rekeyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "drive {} has another key; the earlier one is void", self.name)
    }
}
