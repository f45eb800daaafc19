//! `andrew import`: imports the databases of an OpenAFS cell.

use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::running_cells;
use afs_cell::control::ControlClient;
use afs_cell::mounts::absolute;
use afs_cell::{Collisions, ImportRequest, Imported, ImportedFile};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew import`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Imports users, groups, memberships, volumes and servers of an OpenAFS cell from copies of its database files, made while its
database servers were stopped; a redo log (vldb.DBSYS1) beside a file is applied. All files are checked before anything
is written, and a damaged file is refused. Names, numbers and counters are preserved, so that access lists stay valid.
If interrupted, run the same command again to resume.

Examples:
  andrew import --prdb prdb.DB0 --vldb vldb.DB0 --dry-run
  andrew import --prdb prdb.DB0 --vldb vldb.DB0")]
pub struct Args {
    /// Copy of the location database
    #[arg(long, value_name = "FILE", required_unless_present = "prdb")]
    vldb: Option<PathBuf>,
    /// Copy of the protection database
    #[arg(long, value_name = "FILE")]
    prdb: Option<PathBuf>,
    /// Show the result without writing it
    #[arg(long)]
    dry_run: bool,
    /// Import into a cell that has volumes or users: these stay, and entries that contradict them are refused
    #[arg(long, conflicts_with = "replace")]
    merge: bool,
    /// Import into a cell that has volumes or users: entries that contradict the files are replaced
    #[arg(long)]
    replace: bool,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Args {
    /// Requests the import from the cell that runs here.
    ///
    /// # Errors
    /// No cell runs here, a file cannot be read or is damaged, or the cell has contradicting entries.
    pub fn run(self, json: bool) -> CommandResult {
        let state = running_cells::of_process(self.state.as_deref())?;
        let request = ImportRequest {
            vldb: self.vldb.as_deref().map(absolute).transpose()?,
            prdb: self.prdb.as_deref().map(absolute).transpose()?,
            dry_run: self.dry_run,
            collisions: match (self.merge, self.replace) {
                (true, _) => Collisions::Merge,
                (_, true) => Collisions::Replace,
                _ => Collisions::Refuse,
            },
        };
        let imported = ControlClient::of(&state)?.import(&request).map_err(CommandError::failed)?;
        output::show(json, &ImportReport(imported));
        Ok(())
    }
}

/// Report of an import.
#[derive(Serialize)]
#[serde(transparent)]
struct ImportReport(Imported);

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.0.dry_run { "would be" } else { "are" };
        if let Some(file) = &self.0.people {
            let ImportedFile { users, groups, added, memberships, .. } = file;
            head(f, file, &format!("{users} users and {groups} groups"))?;
            writeln!(f, "  {added} of them and {memberships} memberships {verb} new here")?;
            tail(f, file)?;
        }
        if let Some(file) = &self.0.locations {
            let ImportedFile { volumes, added, servers, deleted, .. } = file;
            head(f, file, &format!("{volumes} volumes"))?;
            writeln!(f, "  {added} of them and {servers} servers {verb} new here")?;
            if *deleted > 0 {
                writeln!(f, "  {deleted} entries were deleted in it, and are left out")?;
            }
            tail(f, file)?;
        }
        if self.0.dry_run { writeln!(f, "nothing was written") } else { Ok(()) }
    }
}

fn head(f: &mut fmt::Formatter<'_>, file: &ImportedFile, what: &str) -> fmt::Result {
    writeln!(f, "{} (version {}): {what}", file.file.display(), file.version)
}

fn tail(f: &mut fmt::Formatter<'_>, file: &ImportedFile) -> fmt::Result {
    if file.there > 0 {
        writeln!(f, "  {} were here already, and stay", file.there)?;
    }
    if file.replaced > 0 {
        writeln!(f, "  {} existing ones were replaced", file.replaced)?;
    }
    for note in &file.notes {
        writeln!(f, "  {note}")?;
    }
    let more = file.notes_total.saturating_sub(file.notes.len() as u64);
    if more > 0 { writeln!(f, "  and {more} more of this kind") } else { Ok(()) }
}
