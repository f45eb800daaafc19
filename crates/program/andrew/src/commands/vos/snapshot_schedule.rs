//! `andrew vos snapshot schedule`: the cell's schedule of snapshots.

use super::ops::Ops;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::operations::{SCHEDULED_MAX, SnapshotSchedule};
use clap::Subcommand;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos snapshot schedule`.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Every five minutes the server of a read-write volume checks whether the volume has changed since its last snapshot and has none
of this day (UTC); then it makes one, named by the date. It keeps the newest snapshots of the given number of days, and the newest
in each of the given number of weeks; other snapshots with a date as their name are removed, those with other names never. A volume
whose name has more than 20 characters has no room for the date, and gets none.

Examples:
  andrew vos snapshot schedule
  andrew vos snapshot schedule set --daily 14 --weekly 8
  andrew vos snapshot schedule off"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the schedule
    Show,
    /// Set how many snapshots of each volume to keep
    Set(Set),
    /// Stop making and removing snapshots; existing ones stay
    Off,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = true)]
struct Set {
    /// Number of days to keep a snapshot of
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(SCHEDULED_MAX)))]
    daily: Option<u32>,
    /// Number of weeks to keep a snapshot of
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(SCHEDULED_MAX)))]
    weekly: Option<u32>,
}

#[derive(Serialize)]
struct Schedule {
    on: bool,
    daily: u32,
    weekly: u32,
}

impl Args {
    /// Shows or changes the cell's schedule.
    ///
    /// # Errors
    /// The database servers do not reply, refuse this user, or are those of another implementation.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let found = ops.run(|admin| async move { admin.snapshot_schedule().await })?;
        let mut schedule = found.ok_or_else(|| {
            CommandError::usage("vos: the database servers of this cell keep no schedule; only Andrew's do")
        })?;
        match &self.command {
            None | Some(Command::Show) => {}
            Some(Command::Off) => schedule = SnapshotSchedule::default(),
            Some(Command::Set(set)) => {
                schedule.daily = set.daily.unwrap_or(schedule.daily);
                schedule.weekly = set.weekly.unwrap_or(schedule.weekly);
            }
        }
        if matches!(self.command, Some(Command::Set(_) | Command::Off)) {
            let new = schedule.clone();
            ops.run(|admin| async move { admin.set_snapshot_schedule(new).await })?;
        }
        let SnapshotSchedule { daily, weekly } = schedule;
        output::show(json, &Schedule { on: daily > 0 || weekly > 0, daily, weekly });
        Ok(())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on, daily, weekly } = self;
        if !on {
            return writeln!(
                f,
                "Snapshots are made by hand only; `andrew vos snapshot schedule set --daily 7` changes that"
            );
        }
        writeln!(
            f,
            "Each read-write volume has a snapshot of each day on which it changed; kept are the newest of {daily} days and of {weekly} weeks"
        )
    }
}
