//! `andrew fs snapshots`: what snapshots show of a directory, and the word that closes them.

use super::attribute;
use crate::commands::vos::dates;
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::units;
use afs_wire::ids::UnixSeconds;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs snapshots`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A snapshot shows a directory to those whom the list of its day and the list of today both let in; one that is removed, as the
nearest directory above it that still is. What you delete stays in the snapshots of before, for weeks.

--close hides all earlier states of DIR and of what was below it, from everybody: snapshots, and the backup volume. Who may
change the list of DIR may do so; only an administrator can --open them again. Of a DIR in a snapshot, which need not be there
any more, it hides that state and older ones.

Examples:
  andrew fs snapshots ~/afs/alice/letters
  andrew fs snapshots --close ~/afs/alice/letters
  andrew fs snapshots --close ~/afs/alice/.snapshots/2026-11-27/removed")]
pub struct Args {
    /// The directory
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Hide its earlier states from everybody
    #[arg(long, conflicts_with = "open")]
    close: bool,
    /// Show its earlier states again (administrators)
    #[arg(long)]
    open: bool,
}

/// A snapshot, and the directory in it.
#[derive(Serialize, Deserialize)]
struct Shown {
    name: String,
    #[serde(serialize_with = "units::time")]
    created: u32,
    /// The user's rights there; `None` where it has no such directory.
    rights: Option<String>,
}

/// What was done.
#[derive(Serialize)]
struct Changed {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    past: &'static str,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Snapshots(Vec<Shown>);

impl Args {
    /// Shows, closes or opens.
    ///
    /// # Errors
    /// A path that is no directory in AFS, or a right that is lacking.
    pub fn run(self, json: bool) -> CommandResult {
        let directory = &self.directory;
        if self.close {
            self.set("close").map_err(|error| not_closed(directory, error))?;
        } else if self.open {
            self.set("open").map_err(|error| not_opened(directory, error))?;
        } else {
            output::show(json, &Snapshots(shown_of(directory)?));
            return Ok(());
        }
        let past = if self.close { "closed" } else { "open" };
        output::show(json, &Changed { path: self.directory, past });
        Ok(())
    }

    fn set(&self, word: &str) -> Result<(), Errno> {
        attribute::try_set(&self.directory, "afs.past", word.as_bytes())
    }
}

fn shown_of(directory: &Path) -> CommandResult<Vec<Shown>> {
    let text = attribute::get(directory, "afs.past")?;
    serde_json::from_slice(&text).map_err(|error| {
        let shown = directory.display();
        CommandError::failed(format!("fs: the mount sent an invalid reply for '{shown}': {error}"))
    })
}

fn not_closed(directory: &Path, error: Errno) -> CommandError {
    let shown = directory.display();
    match error {
        Errno::SRCH => {
            CommandError::failed(format!("fs: no snapshot has '{shown}': there is nothing to close"))
        }
        Errno::NOSPC => CommandError::failed(format!(
            "fs: the past of 64 directories of this volume is closed, which is the most; close that of a directory above '{shown}'"
        )),
        Errno::NOTDIR => CommandError::usage(format!("fs: '{shown}' is not a directory; give its directory")),
        other => attribute::explain(directory, other),
    }
}

fn not_opened(directory: &Path, error: Errno) -> CommandError {
    let shown = directory.display();
    match error {
        Errno::SRCH => {
            CommandError::failed(format!("fs: no snapshot has '{shown}': there is nothing to open"))
        }
        Errno::NOENT => CommandError::failed(format!(
            "fs: the past of '{shown}' is not closed; if its snapshots are, open the directory above it that is"
        )),
        Errno::PERM | Errno::ACCESS => {
            CommandError::failed(format!("fs: only administrators can open the past of '{shown}'"))
        }
        other => attribute::explain(directory, other),
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.past {
            "closed" => writeln!(
                f,
                "The past of {path} is closed: earlier states of it are shown to nobody. Administrators open it again with `andrew fs snapshots --open`"
            ),
            _ => writeln!(
                f,
                "The past of {path} is open to those whom the lists of the day and of today let in"
            ),
        }
    }
}

impl fmt::Display for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(
                f,
                "The volume has no snapshots; servers make one a day (`andrew vos snapshot schedule`)"
            );
        }
        self.0.iter().try_for_each(|Shown { name, created, rights }| {
            let told = match rights.as_deref() {
                None => "not in it",
                Some("") => "closed to you",
                Some(rights) => rights,
            };
            writeln!(f, "{name:<24} {}  {told}", dates::show(UnixSeconds(*created)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_snapshot_tells_what_it_shows() {
        let text = r#"[{"name":"a","created":0,"rights":"rl"},{"name":"b","created":0,"rights":""},{"name":"c","created":0,"rights":null}]"#;
        let shown = Snapshots(serde_json::from_str(text).unwrap()).to_string();
        let ends: Vec<_> = shown.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(ends, ["rl", "closed to you", "not in it"]);
        assert!(Snapshots(Vec::new()).to_string().starts_with("The volume has no snapshots"));
    }
}
