//! `andrew vos tier`: keeps the old, large files of a volume on another drive of its file server.

use crate::commands::drive::ask;
use crate::commands::duration_text::in_words;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::drives::{DriveAnswer, DriveRequest, TierLine, TierRequest};
use serde::Serialize;
use std::fmt;

use super::route_options::RouteOptions;

/// Options of `andrew vos tier`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file server that runs here looks every hour for files of the volume that have at least this length and were not changed for as
long, and moves their data to the drive; names, attributes and data versions stay, and snapshots share what was moved. A file that is
read there stays there: that it was read once says nothing of the next time, and clients have it in their caches. What is written anew
goes to the drive that takes new data. To have all files back, name the drive `local`, with --older 0 --larger 0.

Without options the command tells how far it is.

Examples:
  andrew vos tier projects --drive cold --older 90 --larger 8
  andrew vos tier projects
  andrew vos tier projects --off")]
pub(super) struct Args {
    /// Name or number of the volume
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// The drive that takes the files: a name of `andrew drive list`
    #[arg(long, value_name = "NAME|local")]
    drive: Option<String>,
    /// Days since the last change
    #[arg(long, value_name = "DAYS", requires = "drive", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    older: u64,
    /// Least length, in MiB
    #[arg(long, value_name = "MIB", requires = "drive", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    larger: u64,
    /// Move no more files; those that were moved stay where they are
    #[arg(long, conflicts_with = "drive")]
    off: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Tier(TierLine);

#[derive(Serialize)]
struct Off {
    volume: String,
}

impl Args {
    pub(super) fn run(self, route: &RouteOptions, json: bool) -> CommandResult {
        if !route.servers.is_empty() {
            let why = "vos: drives belong to one file server: run this on its host, without --servers";
            return Err(CommandError::usage(why.to_owned()));
        }
        let Self { volume, drive, older, larger, off } = self;
        let ask = ask(route.state.clone());
        if off {
            ask(DriveRequest::EndTier { volume: volume.clone() })?;
            output::show(json, &Off { volume });
            return Ok(());
        }
        let order = drive.map(|drive| TierRequest { drive, age: older * 86_400, length: larger << 20 });
        match ask(DriveRequest::Tier { volume, order })? {
            DriveAnswer::Tier(line) => output::show(json, &Tier(line)),
            _ => return Err(CommandError::failed("vos: the cell gave an unknown answer".to_owned())),
        }
        Ok(())
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = &self.0;
        writeln!(
            f,
            "volume {}: files of {} MiB and more that were not changed for {} go to drive {}",
            line.volume,
            line.length >> 20,
            in_words(line.age),
            line.drive
        )?;
        let (files, moved) = (line.files, line.bytes >> 20);
        write!(f, "since the start of the file server {files} files were moved, {moved} MiB copied")?;
        match (&line.problem, line.rounds) {
            (Some(problem), _) => writeln!(f, " (waits: {problem})"),
            (None, 0) => writeln!(f, "; the first look is in progress"),
            (None, _) => writeln!(f),
        }
    }
}

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no more files of volume {} are moved; those that were stay where they are", self.volume)
    }
}
