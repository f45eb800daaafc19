//! `andrew fs getcalleraccess`: the rights of the user of the command.

use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs getcalleraccess`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
`andrew fs access` shows the rights of others, and the reasons.

Examples:
  andrew fs getcalleraccess ~/afs/projects")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct CallerAccess {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    /// Letters of `rlidwka`.
    rights: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<CallerAccess>);

impl Args {
    /// Prints the rights on the paths.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| Ok(CallerAccess { rights: rights(&path)?, path });
        let all = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &Answer(all));
        Ok(())
    }
}

/// As the mount knows them, or the server tells.
fn rights(path: &Path) -> CommandResult<String> {
    attribute::get_text(path, "afs.access")
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|CallerAccess { path, rights }| {
            let rights = if rights.is_empty() { "none" } else { rights };
            writeln!(f, "Callers access to {} is {rights}", path.display())
        })
    }
}
