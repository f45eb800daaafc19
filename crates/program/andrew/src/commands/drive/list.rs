//! `andrew drive list`: the drives of the file server.

use super::drain::DrainText;
use super::unexpected;
use crate::error::CommandResult;
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveKeyLine, DriveLine, DriveRequest};
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
            if let Some(key) = &drive.key {
                write!(f, "  {}", KeyText(key))?;
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

/// A key in a few words.
struct KeyText<'a>(&'a DriveKeyLine);

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.0.epoch)?;
        match self.0.age.map(|seconds| seconds / 86_400) {
            Some(0) => write!(f, ", less than a day old")?,
            Some(1) => write!(f, ", 1 day old")?,
            Some(days) => write!(f, ", {days} days old")?,
            None => {}
        }
        if self.0.changing { write!(f, ", being changed") } else { Ok(()) }
    }
}
