//! `andrew fs getcalleraccess`: the rights of the user of the command.

use super::attribute;
use super::paths::Paths;
use crate::error::{CommandError, CommandResult};
use crate::output;
use serde::{Deserialize, Serialize};
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

/// Of the status that a mount has of an object, the rights.
#[derive(Deserialize)]
struct Told {
    access: String,
}

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

/// A right of everybody and a right of the user are one as far as the mount knows both.
fn rights(path: &Path) -> CommandResult<String> {
    // The mount learns the rights with the status.
    if let Err(error) = std::fs::metadata(path) {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        return Err(attribute::explain(path, errno));
    }
    let text = attribute::get_text(path, "afs.status")?;
    let told: Told = serde_json::from_str(&text).map_err(|error| {
        CommandError::failed(format!("fs: the mount sent an invalid reply for '{}': {error}", path.display()))
    })?;
    Ok(told.access)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|CallerAccess { path, rights }| {
            let rights = if rights.is_empty() { "none" } else { rights };
            writeln!(f, "Callers access to {} is {rights}", path.display())
        })
    }
}
