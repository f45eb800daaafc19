//! `andrew store repair`: a new store of what is left of each damaged one.

use super::text;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::stores::{self, OfflineStore, Repaired, StoreReport};
use jiff::Zoned;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

/// Longest answer read, in bytes.
const ANSWER_MAX: u64 = 1024;

/// Options of `andrew store repair`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Says what is lost, and asks before it does anything. The damaged store is kept beside the new one, in a directory with the date;
the new one needs as much space. Changes that came after the first lost one are left out, so that the store is as it was at one
moment; --all applies them too, and files and directories may then not fit one another.

Examples:
  andrew store repair /vicepb
  andrew store repair --yes ~/.local/state/andrew/db")]
pub struct Args {
    /// A state directory, the directory of a partition, or a store in one of them
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Apply also the changes that came after what is lost
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    report: StoreReport,
    /// Where the damaged store is now.
    #[serde(serialize_with = "output::path")]
    aside: PathBuf,
    /// Whether later batches were applied too.
    all: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Shown>);

impl Args {
    pub(super) fn run(self, json: bool) -> CommandResult {
        let damaged = self.damaged()?;
        if !self.yes {
            confirm(&damaged, io::stdin().lock(), io::stderr())?;
        }
        let stamp = Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
        let mut done = List(Vec::new());
        for (store, _) in damaged {
            match store.repair(&stamp, self.all) {
                Ok(Repaired { report, aside }) => done.0.push(Shown { report, aside, all: self.all }),
                Err(error) => {
                    output::show(json, &done);
                    return Err(CommandError::failed(error));
                }
            }
        }
        output::show(json, &done);
        Ok(())
    }

    /// The damaged stores, with what is damaged.
    fn damaged(&self) -> CommandResult<Vec<(OfflineStore, StoreReport)>> {
        let mut damaged = Vec::new();
        for store in stores::find(&self.directory).map_err(CommandError::usage)? {
            let report = store.check().map_err(CommandError::failed)?;
            if !report.whole {
                damaged.push((store, report));
            }
        }
        match damaged.is_empty() {
            true => Err(CommandError::failed(format!(
                "store: {} is whole; nothing was changed",
                self.directory.display()
            ))),
            false => Ok(damaged),
        }
    }
}

/// Shows what is damaged, and returns if `yes` is read.
fn confirm(damaged: &[(OfflineStore, StoreReport)], from: impl BufRead, mut to: impl Write) -> CommandResult {
    let mut shown = String::new();
    let _ = damaged.iter().try_for_each(|(_, report)| text::one(report, &mut shown));
    let _ = write!(to, "{shown}Type yes to make new stores of what can be kept: ");
    let _ = to.flush();
    let mut answer = String::new();
    let read = from.take(ANSWER_MAX).read_line(&mut answer);
    match read.is_ok() && answer.trim() == "yes" {
        true => Ok(()),
        false => {
            Err(CommandError::usage("store: nothing was changed: yes was not typed; --yes does not ask"))
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Shown { report, aside, .. } in &self.0 {
            text::one(report, f)?;
            writeln!(f, "  repaired; the damaged store is in {}", aside.display())?;
            writeln!(
                f,
                "  the next start frees what only lost rows named on the drive; copy that before, if you may find a \
                 better copy of the store"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(confirm(&[], &b"yes\n"[..], io::sink()).is_ok());
        for other in ["", "\n", "y\n", "no\n", "yes please\n"] {
            assert!(confirm(&[], other.as_bytes(), io::sink()).is_err(), "{other}");
        }
    }
}
