//! `andrew top`: what the mounts on this machine do, shown again at an interval.

mod report;

use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::plain::plain;
use afs_cell::tokens::Mounts;
use report::{MountReport, Reports};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Options of `andrew top`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Shows your mounts and root's: how much of the caches is used and how often they were hit, the bytes moved, the
file servers with the mean time of a call, the calls in progress, and the slowest calls of the last five
minutes. Counts are those since the start of a mount. In a terminal it is refreshed until ctrl-C, and shows
what was moved in each second.

A call that failed is one that got an error or no reply: programs that look for files that do not exist, or
may not use them, make failed calls as well. Time spent waiting between two attempts is no part of a call.

Examples:
  andrew top
  andrew top --once ~/afs
  andrew top --json | jq '.[].slowest[0]'")]
pub struct Args {
    /// Mount points [default: all mounts]
    #[arg(value_name = "DIRECTORY")]
    directories: Vec<std::path::PathBuf>,
    /// Show it once, as without a terminal and with --json
    #[arg(long)]
    once: bool,
    /// Seconds between two refreshes
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

impl Args {
    /// Prints what the mounts do, once or until the process is ended.
    ///
    /// # Errors
    /// No mount of this user's or of root's runs, or none at a directory that was given.
    pub fn run(self, json: bool) -> CommandResult {
        let mut reports = self.reports()?;
        if json || self.once || !io::stdout().is_terminal() {
            output::show(json, &reports);
            return Ok(());
        }
        loop {
            if draw(&reports.to_string()).is_err() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_secs(self.interval));
            let mut now = self.reports()?;
            now.compare(&reports);
            reports = now;
        }
    }

    fn reports(&self) -> CommandResult<Reports> {
        let mut all: Vec<MountReport> =
            Mounts::running().activities(false).into_iter().filter_map(MountReport::of).collect();
        if all.is_empty() {
            return Err(CommandError::failed(
                "top: no mount runs here that you may ask; `andrew up` or `andrew mount` makes one",
            ));
        }
        if !self.directories.is_empty() {
            let wanted = self.directories.iter().map(|path| wanted(path, &all));
            let wanted = wanted.collect::<CommandResult<Vec<_>>>()?;
            all.retain(|report| wanted.contains(&report.directory));
        }
        all.sort_by(|a, b| a.directory.cmp(&b.directory));
        Ok(Reports(all))
    }
}

/// The directory of the mount that is meant.
fn wanted(path: &Path, all: &[MountReport]) -> CommandResult<std::path::PathBuf> {
    let shown = path.display();
    let path = afs_cell::mounts::absolute(path)?;
    match all.iter().any(|report| report.directory == path) {
        true => Ok(path),
        false => Err(CommandError::usage(format!(
            "top: no mount at '{shown}' that you may ask; `andrew status` shows those there are"
        ))),
    }
}

/// Draws over what is on the terminal, cut to its height and width.
fn draw(text: &str) -> io::Result<()> {
    let (rows, columns) = match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 1 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => (24_usize, 80_usize),
    };
    let mut out = io::stdout().lock();
    // To the upper left corner; each line erases what follows it, and the last one what is below.
    write!(out, "\x1b[H")?;
    for line in text.lines().take(rows - 1) {
        let line: String = plain(line).chars().take(columns).collect();
        write!(out, "{line}\x1b[K\r\n")?;
    }
    write!(out, "\x1b[J")?;
    out.flush()
}
