//! `andrew drive list`: the drives of the file server.

use super::drain::DrainText;
use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveLine, DriveRequest};
use serde::Serialize;
use std::fmt;

/// Options of `andrew drive list`.
#[derive(clap::Args, Debug)]
pub struct Args {}

#[derive(Serialize)]
#[serde(transparent)]
struct Drives(Vec<DriveLine>);

impl Args {
    pub(super) fn run(
        self,
        ask: &impl Fn(DriveRequest) -> CommandResult<DriveAnswer>,
        json: bool,
    ) -> CommandResult {
        match ask(DriveRequest::List)? {
            DriveAnswer::List(drives) => output::show(json, &Drives(drives)),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

impl fmt::Display for Drives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for drive in &self.0 {
            write!(f, "{}", drive.name)?;
            if !drive.at.is_empty() {
                write!(f, "  {} at {}", drive.kind, drive.at)?;
            }
            if let (Some(free), Some(total)) = (drive.free, drive.total) {
                write!(f, "  {} MiB free of {} MiB", free >> 20, total >> 20)?;
            }
            if !drive.partitions.is_empty() {
                write!(f, "  new data of {}", drive.partitions.join(", "))?;
            }
            if !drive.copies.is_empty() {
                write!(f, "  copies of {}", drive.copies.join(", "))?;
            }
            if drive.missing_copies > 0 {
                write!(f, "  {} copies are missing", drive.missing_copies)?;
            }
            if let Some(drain) = &drive.drain {
                write!(f, "  {}", DrainText(drain))?;
            }
            if let Some(problem) = &drive.problem {
                write!(f, "  ({problem})")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
